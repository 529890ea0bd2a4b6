package katestest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Network is the connections between a program and its servers, which can fail in ways that a transport cannot: go
// silent without an error (half-open), be reset, refused, or slow, below TLS and HTTP/2, whose pings stay
// unanswered too.
//
//	network := katestest.NewNetwork(t)
//	config.Dial = network.DialContext // a *rest.Config, before a client is made of it
//	thaw := network.Freeze()
//
// To an address that [Network.Listen] serves, connections are in memory, so that a server and its clients can be within a synctest
// bubble; to any other, they go through the machine's network:
//
//	listener, err := network.Listen("api.test:80")
//	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
//	server.Start() // its clients dial with network.DialContext
//
// [NewNetwork] makes one. It is safe for concurrent use. Time is package time's. TCP's keep-alive is not modelled.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	links     map[*link]struct{}
	delay     time.Duration
	refusing  int // how many have said so
	holes     int
	dialed    int
	closed    bool
	changed   chan struct{} // closed, and replaced, at every change

	pumps sync.WaitGroup // to the machine's network
}

// NewNetwork returns a network without faults. It is closed when the test ends. Outside of tests t is nil, and the caller closes it.
func NewNetwork(t testing.TB) *Network {
	n := &Network{listeners: map[string]*listener{}, links: map[*link]struct{}{}, changed: make(chan struct{})}
	if t != nil {
		t.Cleanup(n.Close)
	}
	return n
}

// Freeze makes all connections that are open half-open: nothing arrives in either direction, and nobody gets an error;
// what is written waits, up to a buffer's size. New connections work. The function that it returns ends it, and what
// was written arrives; it may be called more than once.
func (n *Network) Freeze() (thaw func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.freeze()
}

// Blackhole is Freeze for connections to come too: they are attempted until the caller's context ends, or the
// function that it returns is called.
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

// Refuse refuses new connections (syscall.ECONNREFUSED), until the function that it returns is called. Open ones stay.
func (n *Network) Refuse() (heal func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refusing++
	n.tell()
	return n.once(func() { n.refusing-- })
}

// Reset ends all connections that are open, for both sides (syscall.ECONNRESET). What is under way is lost. It returns
// how many they were.
func (n *Network) Reset() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := len(n.links)
	for l := range n.links {
		l.reset = true
	}
	clear(n.links)
	n.tell()
	return count
}

// Delay makes everything that is written from now on, in either direction, arrive d later. Order stays. It panics if d is negative.
func (n *Network) Delay(d time.Duration) {
	if d < 0 {
		panic(fmt.Sprintf("katestest: Delay(%s): it cannot be negative", d))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delay = d
}

// Open returns how many connections are open, on either side.
func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.links)
}

// Dialed returns how many connections have been made since the start.
func (n *Network) Dialed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dialed
}

// Wait returns when the condition is true. It is asked at once, and whenever something happens in the network. It may call the Network.
// If ctx ends first, Wait returns its cause.
func (n *Network) Wait(ctx context.Context, condition func() bool) error {
	for {
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the network: %w", context.Cause(ctx))
		}
	}
}

// Close resets all connections, refuses new ones, closes the listeners, and waits for what was started. It may be called more than once.
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

// DialContext connects to an address ("host:port"): in memory where the network has a listener for just that address. It is
// made for rest.Config's Dial and http.Transport's DialContext.
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

// dialMachine connects through the machine's network. Between the program and the real connection is a link, with the faults.
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
		_, _ = near.Close(), far.Close() // which ends the other direction too
	}
	// Both end when either side closes or resets, at the latest by Close, which waits for them.
	n.pumps.Go(func() { pump(far, near) })
	n.pumps.Go(func() { pump(near, far) })
	return client, nil
}

// Listen serves an address ("host:port") in memory. The listener is closed by the caller or with the network. It is an error to
// serve one twice.
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

// freeze is Freeze, called with mu held.
func (n *Network) freeze() (thaw func()) {
	var frozen []*link
	for l := range n.links {
		l.frozen++
		frozen = append(frozen, l)
	}
	n.tell()
	return n.once(func() {
		for _, l := range frozen {
			l.frozen--
		}
	})
}

// once makes a change that can be made once, with mu held.
func (n *Network) once(change func()) func() {
	var once sync.Once
	return func() {
		once.Do(func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			change()
			n.tell()
		})
	}
}

// tell wakes all who wait. Called with mu held.
func (n *Network) tell() {
	close(n.changed)
	n.changed = make(chan struct{})
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

// close is Close, called with network.mu held.
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
	l.network.tell()
}

// addr is an address in memory.
type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }
