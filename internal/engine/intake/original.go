package intake

import (
	"sync"
	"sync/atomic"

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

// originals counts the bytes of the originals that a stream holds, by key.
type originals struct {
	budget *Budget
	any    atomic.Bool // of has something

	mu sync.Mutex
	of map[object.Key]int64
}

// receiveOriginals has the source deliver originals, where a function may reject an object of which
// the stream holds a part, or which the function has changed.
func (s *Intake) receiveOriginals() {
	judges := s.Transform != nil || s.Key.Form != object.Whole && (s.Where != nil || s.Valid != nil)
	if source, ok := s.Source.(source.Receiver); ok && judges {
		s.Source = source.Receiving()
	}
}

// Bounded returns an object that the stream is to hold. It goes without its original where the
// budget is spent.
func (s *Intake) Bounded(o object.Object) object.Object {
	bytes, key := object.FaultOriginal(o).Bytes(), object.KeyOf(o)
	if !s.originals.set(key, bytes) {
		s.originals.set(key, 0)
		return object.WithoutOriginal(o)
	}
	return o
}

// set notes how many bytes the original of a key has, 0 for none. It reports whether there are so
// many.
func (o *originals) set(key object.Key, bytes int64) bool {
	if bytes == 0 && !o.any.Load() {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.budget.replace(o.of[key], bytes) {
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

// Forget notes that the stream no longer holds what has a key.
func (s *Intake) Forget(key object.Key) { s.originals.set(key, 0) }

// ForgetExcept notes that the stream holds what some keys have, and nothing else.
func (s *Intake) ForgetExcept(held func(object.Key) bool) {
	o := s.originals
	if !o.any.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, bytes := range o.of {
		if !held(key) {
			o.budget.replace(bytes, 0)
			delete(o.of, key)
		}
	}
	o.any.Store(len(o.of) > 0)
}
