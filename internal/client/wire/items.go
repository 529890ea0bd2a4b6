package wire

import (
	"sync"

	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/client/wire/ordered"
	objects "github.com/kates-go/kates/internal/object"
)

// items are the items of a list that is being read. They are decoded in batches, on the cores that
// are idle, and taken in one by one, in their order. With one core, and in a list of a few items,
// each is decoded as it is read.
type items struct {
	decode decode
	take   func(o objects.Object, silent bool) error
	pool   *ordered.Pool
	line   *ordered.Line[[]decoded]
	batch  *batch // that is being filled, or nil
}

// decoded is what a decode has returned.
type decoded struct {
	object objects.Object
	silent bool
	err    error
}

// batchBytes is how many bytes are decoded by one goroutine at a time. It is some ten pods: enough
// that handing them over costs nothing beside decoding them.
const batchBytes = 64 << 10

// batch has the bytes of items, of which many are decoded by one goroutine.
type batch struct {
	raw      []byte
	ends     []int // of the items in raw
	encoding frames.Encoding
}

// batches are those that can be used again.
var batches = sync.Pool{New: func() any { return new(batch) }}

// newItems takes items in with a function, in calls of its own methods. The caller closes it.
func newItems(p *ordered.Pool, d decode, take func(o objects.Object, silent bool) error) *items {
	i := &items{decode: d, take: take, pool: p}
	i.line = ordered.NewLine(p, i.takeAll)
	return i
}

// takeAll takes in the items of a batch, up to the first error.
func (i *items) takeAll(all []decoded) error {
	for _, d := range all {
		if d.err != nil {
			return d.err
		}
		if err := i.take(d.object, d.silent); err != nil {
			return err
		}
	}
	return nil
}

// add reads an item, and may write to its bytes. They are the caller's again when it returns. An
// error may be that of an item before.
func (i *items) add(raw []byte, e frames.Encoding) error {
	if !i.pool.Helps() {
		if err := i.flush(); err != nil {
			return err
		}
		o, silent, err := i.decode(raw, e)
		if err != nil {
			return err
		}
		return i.take(o, silent)
	}
	if i.batch == nil {
		i.batch = batches.Get().(*batch)
		i.batch.encoding = e
	}
	i.batch.raw = append(i.batch.raw, raw...)
	i.batch.ends = append(i.batch.ends, len(i.batch.raw))
	if len(i.batch.raw) < batchBytes {
		return nil
	}
	full := i.batch
	i.batch = nil
	return i.line.Add(int64(len(full.raw)), func() []decoded { return full.decode(i.decode) })
}

// flush takes in all items that were read.
func (i *items) flush() error {
	if err := i.line.Flush(); err != nil || i.batch == nil {
		return err
	}
	last := i.batch
	i.batch = nil
	return i.takeAll(last.decode(i.decode))
}

// close drops what was not taken in, and waits for what is being decoded.
func (i *items) close() { i.line.Close() }

// decode decodes the items up to the first error. The batch is free afterwards.
func (b *batch) decode(d decode) []decoded {
	all := make([]decoded, 0, len(b.ends))
	at := 0
	for _, end := range b.ends {
		var one decoded
		one.object, one.silent, one.err = d(b.raw[at:end:end], b.encoding)
		all = append(all, one)
		if at = end; one.err != nil {
			break
		}
	}
	if cap(b.raw) <= 4*batchBytes { // one large object does not keep its memory
		*b = batch{raw: b.raw[:0], ends: b.ends[:0]}
		batches.Put(b)
	}
	return all
}
