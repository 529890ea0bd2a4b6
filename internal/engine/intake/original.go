package intake

import (
	"sync/atomic"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// A program can report on an object that is left out. So the stream holds that object as the server
// has it ([object.Original]). A source that decodes objects delivers their originals where a
// function of the stream may reject them. The original of any other object is dropped at once.

// Budget bounds the bytes of all originals that the streams of a client hold. It needs no lock.
type Budget struct {
	most  int64
	taken atomic.Int64
}

// NewBudget returns a budget of so many bytes.
func NewBudget(most int64) *Budget { return &Budget{most: most} }

// Taken is how many bytes are taken.
func (b *Budget) Taken() int64 { return b.taken.Load() }

// replace takes so many bytes in place of others, if there are so many.
func (b *Budget) replace(before, now int64) bool {
	more := now - before
	if b.taken.Add(more) > b.most && more > 0 {
		b.taken.Add(-more)
		return false
	}
	return true
}

// originals counts the bytes of the originals that a stream holds.
type originals struct {
	budget *Budget
	any    atomic.Bool // of has something

	mu     lockorder.Mutex[lockorder.Originals]
	of     map[object.Key]int64
	closed bool // nothing is held any more
}

// receiveOriginals has the source deliver originals, where a function may reject an object of which
// the stream holds a part, or which the function has changed.
func (s *Intake) receiveOriginals() {
	judges := s.Transform.Changes() || s.Key.Form != object.Whole && (s.Where != nil || s.Valid != nil)
	if source, ok := s.Source.(source.Receiver); ok && judges {
		s.Source = source.Receiving()
	}
}

// Bounded returns an object that the stream is to hold. An object that is left out goes without its
// original where the budget is spent, and where its key may be that of several. Any other object
// always does.
func (s *Intake) Bounded(o object.Object) object.Object {
	if r, received := o.(*object.Received); received {
		o = r.Object
	}
	key, bytes := object.KeyOf(o), object.FaultOriginal(o).Bytes()
	if bytes > 0 && object.Ambiguous(key) || !s.originals.set(key, bytes) {
		s.originals.set(key, 0)
		return object.WithoutOriginal(o)
	}
	return o
}

// Note notes what the stream holds of a key; nil: nothing.
func (s *Intake) Note(key object.Key, held object.Object) {
	s.originals.set(key, object.FaultOriginal(held).Bytes())
}

// set notes how many bytes the original of a key has, 0 for none. It reports whether there are so
// many.
func (o *originals) set(key object.Key, bytes int64) bool {
	if bytes == 0 && !o.any.Load() {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.setLocked(key, bytes)
}

// setLocked is set with mu held.
func (o *originals) setLocked(key object.Key, bytes int64) bool {
	if bytes > 0 && o.closed || !o.budget.replace(o.of[key], bytes) {
		return false
	}
	if bytes > 0 {
		o.of[key] = bytes
	} else {
		delete(o.of, key)
	}
	o.any.Store(len(o.of) > 0)
	return true
}

// Recount notes what the stream holds of the keys that had originals; nil: nothing.
func (s *Intake) Recount(held func(object.Key) object.Object) {
	o := s.originals
	if !o.any.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.recountLocked(held)
}

// recountLocked is Recount with mu held.
func (o *originals) recountLocked(held func(object.Key) object.Object) {
	for key := range o.of {
		o.setLocked(key, object.FaultOriginal(held(key)).Bytes())
	}
}

// CloseOriginals notes that the stream holds nothing any more.
func (s *Intake) CloseOriginals() {
	s.originals.mu.Lock()
	defer s.originals.mu.Unlock()
	s.originals.recountLocked(func(object.Key) object.Object { return nil })
	s.originals.closed = true
}
