package e2e

import (
	"context"
	"io"
	"net"
	"sync"
)

// bridge makes a server in memory reachable through the network of the machine, for tests whose
// clients have a network with faults.
type bridge struct {
	listener net.Listener
	dial     func(ctx context.Context) (net.Conn, error)
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]struct{}
}

func newBridge(dial func(ctx context.Context) (net.Conn, error)) (*bridge, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &bridge{listener: l, dial: dial, open: map[net.Conn]struct{}{}}
	b.running.Go(b.accept) // it ends with close
	return b, nil
}

func (b *bridge) accept() {
	for {
		client, err := b.listener.Accept()
		if err != nil {
			return
		}
		server, err := b.dial(context.Background())
		if err != nil {
			_ = client.Close()
			continue
		}
		if !b.keep(client, server) {
			return
		}
		for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
			b.running.Go(func() { // it ends with either connection
				_, _ = io.Copy(way[0], way[1])
				b.end(client, server)
			})
		}
	}
}

// keep remembers connections until they end. It closes them if the bridge is closed.
func (b *bridge) keep(all ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range all {
		if b.closed {
			_ = c.Close()
		} else {
			b.open[c] = struct{}{}
		}
	}
	return !b.closed
}

func (b *bridge) end(all ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
		delete(b.open, c)
	}
}

// close ends all connections and waits for them.
func (b *bridge) close() {
	_ = b.listener.Close()
	b.mu.Lock()
	b.closed = true
	for c := range b.open {
		_ = c.Close()
	}
	b.mu.Unlock()
	b.running.Wait()
}
