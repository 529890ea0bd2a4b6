package katestest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// buffered is how many bytes may wait in one direction before the writer has to wait.
const buffered = 256 << 10

// link is a connection in memory: two directions between two ends. The network's lock guards it.
type link struct {
	network *Network
	frozen  int // how many callers have frozen it
	reset   bool
}

// direction holds what one end has written and the other has not read yet.
type direction struct {
	chunks       []arriving
	size         int
	writerClosed bool
	readerClosed bool
}

type arriving struct {
	data []byte
	due  time.Time
}

// conn is one end of a link.
type conn struct {
	link          *link
	in, out       *direction
	local, remote net.Addr

	// Guarded by the network's lock:
	closed                      bool
	readDeadline, writeDeadline time.Time
}

// link connects two ends. Called with mu held.
func (n *Network) link(local, remote net.Addr) (client, server *conn) {
	l, up, down := &link{network: n}, &direction{}, &direction{}
	n.links[l] = struct{}{}
	n.dialed++
	n.wake()
	return &conn{link: l, in: down, out: up, local: local, remote: remote},
		&conn{link: l, in: up, out: down, local: remote, remote: local}
}

func (c *conn) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	return c.wait("read", &c.readDeadline, func(now time.Time) (int, time.Time, error) {
		switch {
		case len(p) == 0:
			return 0, now, io.ErrNoProgress
		case c.link.frozen > 0:
			return 0, time.Time{}, nil
		case len(c.in.chunks) > 0:
			first := &c.in.chunks[0]
			if first.due.After(now) {
				return 0, first.due, nil
			}
			n := copy(p, first.data)
			if first.data = first.data[n:]; len(first.data) == 0 {
				c.in.chunks = c.in.chunks[1:]
			}
			c.in.size -= n
			return n, now, nil
		case c.in.writerClosed:
			return 0, now, io.EOF
		}
		return 0, time.Time{}, nil
	})
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n, err := c.wait("write", &c.writeDeadline, func(now time.Time) (int, time.Time, error) {
			if c.out.readerClosed && c.link.frozen == 0 {
				return 0, now, syscall.EPIPE
			}
			n := min(len(p)-written, buffered-c.out.size)
			if n > 0 {
				c.out.chunks = append(c.out.chunks, arriving{bytes.Clone(p[written : written+n]), now.Add(c.link.network.delay)})
				c.out.size += n
			}
			return n, time.Time{}, nil
		})
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}

// wait calls try until something is done or fails. try runs with the network's lock held. It may
// return the time of the next try; otherwise that is the next change.
func (c *conn) wait(op string, deadline *time.Time, try func(now time.Time) (int, time.Time, error)) (int, error) {
	n := c.link.network
	for {
		n.mu.Lock()
		now := time.Now()
		done, again, err := c.attempt(now, *deadline, try)
		if done > 0 || err != nil {
			n.wake()
		}
		if !deadline.IsZero() && (again.IsZero() || deadline.Before(again)) {
			again = *deadline
		}
		changed := n.changed
		n.mu.Unlock()
		switch {
		case errors.Is(err, io.EOF):
			return done, io.EOF
		case errors.Is(err, io.ErrNoProgress):
			return 0, nil
		case err != nil:
			return done, c.failed(op, err)
		case done > 0:
			return done, nil
		}
		var timer *time.Timer
		var due <-chan time.Time
		if !again.IsZero() {
			timer = time.NewTimer(again.Sub(now))
			due = timer.C
		}
		select {
		case <-changed:
		case <-due:
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// attempt calls try once, unless the connection has ended at this end.
func (c *conn) attempt(now, deadline time.Time, try func(time.Time) (int, time.Time, error)) (int, time.Time, error) {
	switch {
	case c.closed:
		return 0, now, net.ErrClosed
	case c.link.reset:
		return 0, now, syscall.ECONNRESET
	case !deadline.IsZero() && !deadline.After(now):
		return 0, now, os.ErrDeadlineExceeded
	}
	return try(now)
}

// Close ends this end. The other end reads what is under way, then io.EOF. If the link is frozen,
// it reads that when the link is thawed.
func (c *conn) Close() error {
	n := c.link.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.closed {
		return c.failed("close", net.ErrClosed)
	}
	c.closed, c.out.writerClosed, c.in.readerClosed = true, true, true
	if c.out.readerClosed {
		delete(n.links, c.link) // both ends are closed
	}
	n.wake()
	return nil
}

// abort resets the link.
func (c *conn) abort() {
	n := c.link.network
	n.mu.Lock()
	defer n.mu.Unlock()
	c.link.reset = true
	delete(n.links, c.link)
	n.wake()
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return c.set(func() { c.readDeadline, c.writeDeadline = t, t })
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { return c.set(func() { c.readDeadline = t }) }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.set(func() { c.writeDeadline = t }) }

func (c *conn) set(change func()) error {
	n := c.link.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.closed {
		return c.failed("set", net.ErrClosed)
	}
	change()
	n.wake()
	return nil
}
