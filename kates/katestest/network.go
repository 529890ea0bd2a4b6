package katestest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Network holds the connections between a program and its servers. They can fail in ways that a
// transport cannot: go silent without an error (half-open), be reset, refused, or slow. This
// happens below TLS and HTTP/2, so that HTTP/2 pings stay unanswered too.
//
//	network := katestest.NewNetwork(t)
//	config.Dial = network.DialContext // a *rest.Config, before a client is made of it
//	thaw := network.Freeze()
//
// Connections to an address that [Network.Listen] serves are in memory, so that a server and its
// clients can live inside a synctest bubble. Connections to other addresses use the machine's
// network:
//
//	listener, err := network.Listen("api.test:80")
//	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
//	server.Start() // its clients dial with network.DialContext
//
// [NewNetwork] makes one. It is safe for concurrent use. It uses the clock of package time. It
// does not model TCP's keep-alive.
type Network struct {
	watched
	listeners map[string]*listener
	links     map[*link]struct{}
	delay     time.Duration
	refusing  int // how many calls of Refuse are in force
	holes     int
	dialed    int
	closed    bool

	pumps sync.WaitGroup // copy to and from the machine's network
}

// NewNetwork returns a network without faults. It is closed when the test ends. Outside of tests
// t is nil, and the caller closes it.
func NewNetwork(t testing.TB) *Network {
	n := &Network{listeners: map[string]*listener{}, links: map[*link]struct{}{}, watched: watched{changed: make(chan struct{})}}
	if t != nil {
		t.Cleanup(n.Close)
	}
	return n
}

// Freeze makes all open connections half-open: nothing arrives in either direction, and neither
// side gets an error. Writes wait in a buffer of limited size. New connections work. The returned
// function ends the freeze; then what was written arrives. It may be called more than once.
func (n *Network) Freeze() (thaw func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.freeze()
}

// Blackhole is Freeze for new connections, too: a dial waits until the caller's context ends, or
// until the returned function is called.
func (n *Network) Blackhole() (heal func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	thaw := n.freeze()
	n.holes++
	open := n.once(func() { n.holes-- })
	return func() {
		thaw()
		open()
	}
}

// Refuse refuses new connections (syscall.ECONNREFUSED), until the returned function is called.
// Open ones stay.
func (n *Network) Refuse() (heal func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refusing++
	n.wake()
	return n.once(func() { n.refusing-- })
}

// Reset ends all open connections, for both sides (syscall.ECONNRESET). What is under way is
// lost. It returns their number.
func (n *Network) Reset() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := len(n.links)
	for l := range n.links {
		l.reset = true
	}
	clear(n.links)
	n.wake()
	return count
}

// Delay makes everything that is written from now on arrive d later, in both directions. The
// order stays. It panics if d is negative.
func (n *Network) Delay(d time.Duration) {
	notNegative("Delay", d)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delay = d
}

// Open returns the number of connections that are open at either side.
func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.links)
}

// Dialed returns the number of connections that were made since the start.
func (n *Network) Dialed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dialed
}

// Wait returns when the condition is true. It calls the condition at once, and whenever something
// happens in the network. The condition may call the Network. If ctx ends first, Wait returns its
// cause.
func (n *Network) Wait(ctx context.Context, condition func() bool) error {
	return n.wait(ctx, "the network", condition)
}

// Close resets all connections, refuses new ones, closes the listeners, and waits for the
// goroutines it started. It may be called more than once.
func (n *Network) Close() {
	n.mu.Lock()
	n.closed = true
	for _, l := range n.listeners {
		l.close()
	}
	n.mu.Unlock()
	n.Reset()
	n.pumps.Wait()
}

// DialContext connects to an address ("host:port"): in memory if the network has a listener for
// exactly that address. It is made for rest.Config's Dial and http.Transport's DialContext.
func (n *Network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	failed := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: addr(address), Err: err}
	}
	for {
		n.mu.Lock()
		l, refused, lost, changed := n.listeners[address], n.closed || n.refusing > 0, n.holes > 0, n.changed
		if l != nil && !refused && !lost {
			defer n.mu.Unlock()
			client, server := n.link(addr("client"), addr(address))
			l.queue = append(l.queue, server)
			return client, nil
		}
		n.mu.Unlock()
		switch {
		case refused:
			return failed(syscall.ECONNREFUSED)
		case !lost:
			return n.dialMachine(ctx, network, address)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return failed(ctx.Err())
		}
	}
}

// dialMachine connects through the machine's network. A link with the faults lies between the
// program and the real connection.
func (n *Network) dialMachine(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	far, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		_ = far.Close()
		return nil, &net.OpError{Op: "dial", Net: network, Addr: addr(address), Err: syscall.ECONNREFUSED}
	}
	client, near := n.link(far.LocalAddr(), far.RemoteAddr())
	pump := func(to, from net.Conn) {
		if _, err := io.Copy(to, from); errors.Is(err, syscall.ECONNRESET) {
			near.abort()
			if tcp, ok := far.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // close with RST
			}
		}
		_, _ = near.Close(), far.Close() // this ends the other direction too
	}
	// Both pumps end when either side closes or resets, at the latest on Close, which waits for
	// them.
	n.pumps.Go(func() { pump(far, near) })
	n.pumps.Go(func() { pump(near, far) })
	return client, nil
}

// Listen serves an address ("host:port") in memory. The listener is closed by the caller or with
// the network. Serving an address twice is an error.
func (n *Network) Listen(address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: addr(address), Err: err}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.listeners[address] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: addr(address), Err: syscall.EADDRINUSE}
	}
	l := &listener{network: n, address: addr(address)}
	n.listeners[address] = l
	return l, nil
}

// freeze is Freeze with mu held.
func (n *Network) freeze() (thaw func()) {
	var frozen []*link
	for l := range n.links {
		l.frozen++
		frozen = append(frozen, l)
	}
	n.wake()
	return n.once(func() {
		for _, l := range frozen {
			l.frozen--
		}
	})
}

// once returns a function that makes a change, with mu held, the first time it is called.
func (n *Network) once(change func()) func() {
	var once sync.Once
	return func() {
		once.Do(func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			change()
			n.wake()
		})
	}
}

// listener accepts connections in memory.
type listener struct {
	network *Network
	address addr

	// Guarded by network.mu:
	queue  []net.Conn
	closed bool
}

func (l *listener) Addr() net.Addr { return l.address }

func (l *listener) Accept() (net.Conn, error) {
	for {
		l.network.mu.Lock()
		closed, changed := l.closed, l.network.changed
		if len(l.queue) > 0 && !closed {
			c := l.queue[0]
			l.queue = l.queue[1:]
			l.network.mu.Unlock()
			return c, nil
		}
		l.network.mu.Unlock()
		if closed {
			return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.address, Err: net.ErrClosed}
		}
		<-changed
	}
}

// Close ends Accept. Connections that were not accepted are reset.
func (l *listener) Close() error {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	l.close()
	return nil
}

// close is Close with network.mu held.
func (l *listener) close() {
	if l.closed {
		return
	}
	l.closed = true
	delete(l.network.listeners, string(l.address))
	for _, c := range l.queue {
		c.(*conn).link.reset = true
		delete(l.network.links, c.(*conn).link)
	}
	l.network.wake()
}

// addr is an address in memory.
type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }
