package intake

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

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
	of     map[originalID]int64
	closed bool // nothing is held any more
}

// originalID tells originals apart. Several objects may have one key.
type originalID struct {
	key object.Key
	uid types.UID // only where the key is ambiguous
}

func originalIDOf(o object.Object) originalID {
	id := originalID{key: object.KeyOf(o)}
	if object.Ambiguous(id.key) {
		id.uid = o.GetUID()
	}
	return id
}

// receiveOriginals has the source deliver originals, where a function may reject an object of which
// the stream holds a part, or which the function has changed.
func (s *Intake) receiveOriginals() {
	judges := s.changes() || s.Key.Form != object.Whole && (s.Where != nil || s.Valid != nil)
	if source, ok := s.Source.(source.Receiver); ok && judges {
		s.Source = source.Receiving()
	}
}

// changes reports whether the Transform makes another object of an object.
func (s *Intake) changes() bool { return s.Transform != nil && !s.Transform.Harmless }

// Bounded returns an object that the stream is to hold. An object that is left out goes without its
// original where the budget is spent. Any other one does in any case.
func (s *Intake) Bounded(o object.Object) object.Object {
	if r, received := o.(*object.Received); received {
		o = r.Object
	}
	if s.originals.set(o, object.FaultOriginal(o).Bytes()) {
		return o
	}
	s.originals.set(o, 0)
	return object.WithoutOriginal(o)
}

// set notes how many bytes the original of an object has, 0 for none. It reports whether there are
// so many.
func (o *originals) set(of object.Object, bytes int64) bool {
	if bytes == 0 && !o.any.Load() {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.setLocked(originalIDOf(of), bytes)
}

// setLocked is set with mu held.
func (o *originals) setLocked(id originalID, bytes int64) bool {
	if bytes > 0 && o.closed || !o.budget.replace(o.of[id], bytes) {
		return false
	}
	if bytes > 0 {
		o.of[id] = bytes
	} else {
		delete(o.of, id)
	}
	o.any.Store(len(o.of) > 0)
	return true
}

// Note notes what the stream holds of the key of an object that came; nil: nothing.
func (s *Intake) Note(came, held object.Object) {
	switch id := originalIDOf(came); {
	case held == nil:
		s.originals.set(came, 0)
	case id.uid == "":
		s.originals.set(came, object.FaultOriginal(held).Bytes())
	}
}

// Recount notes what the stream holds of the keys that had originals; nil: nothing.
func (s *Intake) Recount(held func(object.Key) object.Object) {
	o := s.originals
	if !o.any.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.of {
		switch now := held(id.key); {
		case now == nil:
			o.setLocked(id, 0)
		case id.uid == "":
			o.setLocked(id, object.FaultOriginal(now).Bytes())
		}
	}
}

// CloseOriginals notes that the stream holds nothing any more.
func (s *Intake) CloseOriginals() {
	s.Recount(func(object.Key) object.Object { return nil })
	s.originals.mu.Lock()
	defer s.originals.mu.Unlock()
	s.originals.closed = true
}
