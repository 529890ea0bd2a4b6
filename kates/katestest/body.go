package katestest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"time"
)

// ahead is how much is read from the server before the client asks for it, if no rule delays it.
// Without this, the server would notice a slow client.
const ahead = 64 << 10

// body is an answer that the client reads with the rules applied.
//
//	server ─▶ fill (goroutine) ─▶ chunks, with the time they came ─▶ Read
type body struct {
	faults *Faults
	ctx    context.Context // the request's context, which ends the answer too
	inner  io.ReadCloser

	// Guarded by faults.mu:
	request  *Request // set once the client has the answer
	applied  []applied
	chunks   []chunk
	held     int       // bytes in chunks
	position int64     // bytes that the client has read
	broken   error     // a rule broke the answer; what has arrived is lost
	end      error     // the server's end, after the chunks
	endCame  time.Time // when end came
	closed   bool
	notify   chan struct{} // one of these has changed; for Read
	room     chan struct{} // there is less to read; for fill
}

// applied is a rule that applies to the answer.
type applied struct {
	rule *Rule
	at   int64 // the position at which the rule begins to act
}

type chunk struct {
	data []byte
	came time.Time
}

// open makes the client's body from the server's.
func (f *Faults) open(ctx context.Context, inner io.ReadCloser, rules []*Rule) *body {
	b := &body{
		faults: f, ctx: ctx, inner: inner,
		notify: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
	for _, r := range rules {
		if r.kind >= delay {
			b.applied = append(b.applied, applied{rule: r, at: r.bytes})
		}
	}
	go b.fill() // ends when the inner body ends, at the latest on Close
	return b
}

// fill reads what the server sends.
func (b *body) fill() {
	buffer := make([]byte, 32<<10)
	for {
		n, err := b.inner.Read(buffer)
		b.faults.mu.Lock()
		now := time.Now()
		if n > 0 && b.broken == nil {
			b.chunks = append(b.chunks, chunk{bytes.Clone(buffer[:n]), now})
			b.held += n
		}
		if err != nil {
			b.end, b.endCame = err, now
		}
		full := b.full()
		b.faults.mu.Unlock()
		wake(b.notify)
		if err != nil {
			return
		}
		for full {
			<-b.room
			b.faults.mu.Lock()
			full = b.full()
			b.faults.mu.Unlock()
		}
	}
}

// full reports whether enough waits to be read. Delayed chunks do not count: the server does not
// wait for them. Called with faults.mu held.
func (b *body) full() bool {
	return b.held >= ahead && !b.closed && b.broken == nil && b.delay() == 0
}

// Read waits until the rules let something be read.
func (b *body) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		b.faults.mu.Lock()
		n, wait, err := b.next(p, time.Now())
		if n > 0 || err != nil {
			b.faults.wake()
		}
		changed := b.faults.changed
		b.faults.mu.Unlock()
		wake(b.room)
		if n > 0 || err != nil {
			return n, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-b.notify:
		case <-timer.C:
		case <-b.ctx.Done():
			timer.Stop()
			return 0, b.ctx.Err()
		}
		timer.Stop()
	}
}

// next reads what may be read now. A result of nothing and no error means: try again after a
// change, or after the wait. Called with faults.mu held.
func (b *body) next(p []byte, now time.Time) (n int, wait time.Duration, err error) {
	const forever = 24 * time.Hour
	if b.closed {
		return 0, 0, http.ErrBodyReadAfterClose
	}
	most := b.most()
	switch {
	case b.broken != nil:
		return 0, 0, b.broken
	case most == 0 && b.end != nil && b.end != io.EOF: // a stall does not hide a broken connection
		return 0, 0, b.end
	case most == 0:
		return 0, forever, nil
	case len(b.chunks) > 0:
		if wait = b.chunks[0].came.Add(b.delay()).Sub(now); wait > 0 {
			return 0, wait, nil
		}
		return b.take(p[:min(int64(len(p)), most)]), 0, nil
	case b.end != nil:
		if wait = b.endCame.Add(b.delay()).Sub(now); wait > 0 {
			return 0, wait, nil
		}
		return 0, 0, b.end
	}
	return 0, forever, nil
}

// most returns how many bytes may be read before a rule acts. If a rule has broken the answer at
// this position, most records that. Called with faults.mu held.
func (b *body) most() int64 {
	most := int64(1 << 62)
	for _, a := range b.applied {
		if a.rule.stopped || a.rule.kind < stall || a.rule.kind == corrupt {
			continue
		}
		left := max(a.at-b.position, 0)
		most = min(most, left)
		if left > 0 || b.broken != nil {
			continue
		}
		switch a.rule.kind {
		case cut:
			b.broken = io.ErrUnexpectedEOF
		case truncate:
			b.broken = io.EOF
		}
	}
	if b.broken != nil {
		b.chunks, b.held = nil, 0
	}
	return most
}

// take reads from the first chunk. Called with faults.mu held.
func (b *body) take(p []byte) int {
	first := &b.chunks[0]
	n := copy(p, first.data)
	if first.data = first.data[n:]; len(first.data) == 0 {
		b.chunks = b.chunks[1:]
	}
	for _, a := range b.applied {
		if a.rule.kind == corrupt && !a.rule.stopped {
			for i := max(a.at-b.position, 0); i < int64(n); i++ {
				p[i] = a.rule.garbage(b.position + i)
			}
		}
	}
	b.held -= n
	b.position += int64(n)
	return n
}

// garbage returns the byte at a position. It is never a tab or a line end, which JSON takes for
// white space.
func (r *Rule) garbage(position int64) byte {
	const control = "\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f"
	return control[r.random(uint64(position)).IntN(len(control))]
}

// delay returns the longest delay of the rules. Called with faults.mu held.
func (b *body) delay() (d time.Duration) {
	for _, a := range b.applied {
		if a.rule.kind == delay && !a.rule.stopped {
			d = max(d, a.rule.delay)
		}
	}
	return d
}

// Close ends the answer, and a Read that is under way.
func (b *body) Close() error {
	b.faults.mu.Lock()
	b.closed = true
	b.faults.bodies = slices.DeleteFunc(b.faults.bodies, func(other *body) bool { return other == b })
	b.faults.wake()
	b.faults.mu.Unlock()
	wake(b.notify)
	wake(b.room)
	return b.inner.Close()
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
