package wire

import (
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/client/wire/ordered"
)

// backlog are the events of a watch that have come and were not handed out. An event that comes
// alone is decoded at once. Where many have come together, they are decoded in batches, on the
// cores that are idle, and handed out one by one, in their order. All are handed out before the
// connection is read again: no event waits for the next one, and no more is held than what one
// read has brought.
//
// It is for one goroutine, which closes it.
type backlog struct {
	decode func(frames.Event) (watch.Event, error)
	hand   func(watch.Event, error) error
	pool   *ordered.Pool
	line   *ordered.Line[[]cameOut]
	batch  *eventBatch // that is being filled, or nil
}

// cameOut is what became of an event.
type cameOut struct {
	event watch.Event
	err   error
}

// eventBatchBytes is how many bytes of events are decoded by one goroutine at a time: a few pods.
// A read brings some tens of kilobytes, and all cores are to have a part of them.
const eventBatchBytes = 8 << 10

// eventBatch has the events that one goroutine decodes, with their bytes.
type eventBatch struct {
	raw    []byte
	ends   []int // of the objects in raw
	events []frames.Event
}

// eventBatches are those that can be used again.
var eventBatches = sync.Pool{New: func() any { return new(eventBatch) }}

// newBacklog hands events out with a function, in calls of its own methods. The function gets the
// error of an event that cannot be decoded, too. An error of the function ends the backlog.
func newBacklog(
	p *ordered.Pool, decode func(frames.Event) (watch.Event, error),
	hand func(watch.Event, error) error,
) *backlog {
	b := &backlog{decode: decode, hand: hand, pool: p}
	b.line = ordered.NewLine(p, b.handAll)
	return b
}

func (b *backlog) handAll(all []cameOut) error {
	for _, c := range all {
		if err := b.hand(c.event, c.err); err != nil {
			return err
		}
	}
	return nil
}

// add takes in an event, which is the caller's again when it returns. With more, others have come
// with it, and follow.
func (b *backlog) add(e frames.Event, more bool) error {
	alone := !more && b.batch == nil && b.line.Len() == 0
	if alone || !b.pool.Helps() {
		if err := b.flush(); err != nil {
			return err
		}
		return b.hand(b.decode(e))
	}
	if b.batch == nil {
		b.batch = eventBatches.Get().(*eventBatch)
	}
	b.batch.add(e)
	if len(b.batch.raw) < eventBatchBytes {
		return nil
	}
	full := b.batch
	b.batch = nil
	return b.line.Add(int64(len(full.raw)), func() []cameOut { return full.decode(b.decode) })
}

// flush hands out all events that were added.
func (b *backlog) flush() error {
	last := b.batch
	b.batch = nil
	switch {
	case last == nil:
		return b.line.Flush()
	case b.line.Len() == 0:
		return b.handAll(last.decode(b.decode))
	}
	err := b.line.Add(int64(len(last.raw)), func() []cameOut { return last.decode(b.decode) })
	if err != nil {
		return err
	}
	return b.line.Flush()
}

// close drops what was not handed out, and waits for what is being decoded.
func (b *backlog) close() { b.line.Close() }

// add copies an event.
func (b *eventBatch) add(e frames.Event) {
	b.raw = append(b.raw, e.Object...)
	b.ends = append(b.ends, len(b.raw))
	e.Object = nil
	b.events = append(b.events, e)
}

// decode decodes the events up to the first error. The batch is free afterwards.
func (b *eventBatch) decode(d func(frames.Event) (watch.Event, error)) []cameOut {
	all := make([]cameOut, 0, len(b.events))
	at := 0
	for i, e := range b.events {
		e.Object = b.raw[at:b.ends[i]:b.ends[i]]
		at = b.ends[i]
		var c cameOut
		c.event, c.err = d(e)
		if all = append(all, c); c.err != nil {
			break
		}
	}
	if cap(b.raw) <= 8*eventBatchBytes { // one large object does not keep its memory
		clear(b.events)
		*b = eventBatch{raw: b.raw[:0], ends: b.ends[:0], events: b.events[:0]}
		eventBatches.Put(b)
	}
	return all
}

// caughtUp reads a connection. Before each read, which may wait, it hands out what has come.
type caughtUp struct {
	io.Reader
	flush func() error
}

func (c *caughtUp) Read(p []byte) (int, error) {
	if err := c.flush(); err != nil {
		return 0, err
	}
	return c.Reader.Read(p)
}
