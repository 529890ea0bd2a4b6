package connection

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// Conns are the connections of one client, and its requests under way. HTTP/2 needs a moment after
// the context of a request has ended until the connection has forgotten the request. Only then is
// the connection idle, and nothing says when. So Close asks for the connections to be closed until
// none is left.
type Conns struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	beneath http.RoundTripper // the transport that dials; nil if the caller has made it

	mu       lockorder.Mutex[lockorder.Connections]
	open     map[*conn]bool
	requests map[*pending]context.Context
	dials    context.Context // of the dials under way
	stop     context.CancelFunc
	retired  *retirement // nil until Retire
}

// retirement is what becomes of connections that nobody needs for new requests.
type retirement struct {
	idle   func()        // closes the connections that are idle
	closed func()        // is called when no connection is left
	closer chan struct{} // is closed when the goroutine that closes has ended; nil if there is none
}

const (
	firstPause = time.Millisecond
	// patience is how long a connection that nobody uses may take to become idle.
	patience = time.Second
)

// OwnConnections changes a configuration so that its client shares no connection with others:
// client-go gives the same connections to all configurations that are equal. The result tracks open
// connections and requests, and can close them. If the caller has made the transport, the
// configuration stays as it is, and the result has nothing to close.
func OwnConnections(config *rest.Config) *Conns {
	c := &Conns{dial: config.Dial, open: make(map[*conn]bool), requests: make(map[*pending]context.Context)}
	c.dials, c.stop = context.WithCancel(context.Background())
	if config.Transport != nil {
		return c
	}
	if c.dial == nil { // as client-go does
		c.dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	config.Dial = c.connect
	config.WrapTransport = transport.Wrappers(
		func(next http.RoundTripper) http.RoundTripper {
			c.beneath = next
			return &counting{next, c}
		},
		config.WrapTransport)
	return c
}

// Close closes the connections, and waits until they are closed. idle closes those that are idle.
// If the caller has requests under way, theirs stay open, and Close waits for none. Later requests
// make new connections.
func (c *Conns) Close(idle func()) {
	c.endDials()
	for wait, end := firstPause, time.Now().Add(patience); ; wait *= 2 {
		idle()
		unused := c.unused()
		if len(unused) == 0 {
			return
		}
		if time.Now().After(end) { // they shake hands, or the network does not take their last words
			for _, each := range unused {
				_ = each.Close()
			}
			return
		}
		time.Sleep(wait)
	}
}

// Retire closes the connections as soon as no request uses them, and then calls closed. It returns
// at once. If a request comes late, its connection is closed after it.
func (c *Conns) Retire(idle, closed func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired = &retirement{idle: idle, closed: closed}
	c.retire()
}

// retire starts to close connections that are retired, if no request uses them. Called with mu
// held.
func (c *Conns) retire() {
	r := c.retired
	if r == nil || r.closer != nil || len(c.requests) > 0 {
		return
	}
	ended := make(chan struct{})
	r.closer = ended
	go func() {
		defer close(ended)
		for !c.closedAll() {
		}
	}()
}

// closedAll closes what is retired. It reports whether the closer may end: nothing is left, or a
// request is under way, and its end starts another closer.
func (c *Conns) closedAll() bool {
	c.Close(c.retired.idle)
	c.mu.Lock()
	used, left := len(c.requests) > 0, len(c.open) > 0
	if used || !left {
		c.retired.closer = nil
	}
	c.mu.Unlock()
	if !used && !left {
		c.retired.closed()
	}
	return used || !left
}

// Wait waits until no goroutine closes connections.
func (c *Conns) Wait() {
	c.mu.Lock()
	var closer chan struct{}
	if c.retired != nil {
		closer = c.retired.closer
	}
	c.mu.Unlock()
	if closer != nil {
		<-closer
	}
}

// unused returns the open connections. While somebody waits for an answer, it returns none.
func (c *Conns) unused() []*conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy() {
		return nil
	}
	return slices.Collect(maps.Keys(c.open))
}

// busy reports whether somebody waits for an answer. The caller holds mu.
func (c *Conns) busy() bool {
	for _, ctx := range c.requests {
		if ctx.Err() == nil {
			return true
		}
	}
	return false
}

// endDials ends the dials under way, unless somebody may wait for one. net/http finishes a dial
// though its request has been cancelled.
func (c *Conns) endDials() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.busy() {
		c.stop()
		c.dials, c.stop = context.WithCancel(context.Background())
	}
}

func (c *Conns) connect(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.mu.Lock()
	dials := c.dials
	c.mu.Unlock()
	defer context.AfterFunc(dials, func() { cancel(net.ErrClosed) })()
	raw, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	made := &conn{Conn: raw, of: c}
	c.mu.Lock()
	c.open[made] = true
	c.retire()
	c.mu.Unlock()
	if dials.Err() != nil { // Close may not have seen it
		_ = made.Close()
		return nil, net.ErrClosed
	}
	return made, nil
}

// conn is an open connection.
type conn struct {
	net.Conn
	of *Conns
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	delete(c.of.open, c)
	return err
}

// counting is the transport that notes the requests.
type counting struct {
	next http.RoundTripper
	of   *Conns
}

func (t *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	a := &pending{of: t.of}
	t.of.mu.Lock()
	t.of.requests[a] = r.Context()
	t.of.mu.Unlock()
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols { // its body is written to, too
		a.over()
		return response, err
	}
	a.ReadCloser, response.Body = response.Body, a
	return response, nil
}

// WrappedRoundTripper returns the transport beneath.
func (t *counting) WrappedRoundTripper() http.RoundTripper { return t.next }

// pending is a request under way, and then the body of the answer.
type pending struct {
	io.ReadCloser
	of *Conns
}

func (a *pending) Close() error {
	defer a.over()
	return a.ReadCloser.Close()
}

func (a *pending) over() {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	delete(a.of.requests, a)
	a.of.retire()
}
