package query

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// replaceable is a query that can be replaced. Its successor is another union beside it, with
// streams and upkeep of its own; equal streams are shared. The reader has the old union
// until the switch, which happens in its turn:
//
//	Succeed ─▶ Await ─▶ Settled ─▶ Try ─▶ Switch: the next batch has all objects
//	             │                  └───▶ Untry: it goes on with the old one
//	             └── Await of another, or of none: the successor ends
//
// The switch waits until the successor's streams have reached the position of what was shown. So
// nothing that was shown is taken back, and nothing of the old union is left after the switch
// (G5).
type replaceable struct {
	host Host
	wake func()

	mu     lockorder.Mutex[lockorder.Replaceable]
	now    *union
	next   *union // it waits to be shown; nil: there is none
	closed bool

	// These belong to the reader's turn, but where nothing was shown yet, see Switch.
	tried *tried
	first atomic.Pointer[Batch] // of now; the reader has not taken it
	begun atomic.Bool           // the reader has had a batch
}

// position is a version of a stored resource.
type position struct {
	storage, rv string
	deletion    int64 // the number of the latest one that may be newer than rv, see Listener.Newest
}

// tried is the first batch of a successor.
type tried struct {
	of    *union
	batch Batch
}

// Successor is a query that runs, and waits to replace another one.
type Successor struct{ union *union }

// Close ends a successor that nobody awaits.
func (s *Successor) Close() { s.union.Close() }

func newReplaceable(h Host, k kind) *replaceable {
	return &replaceable{host: h, wake: h.Wake, now: newUnion(h, k)}
}

// wakeBy replaces what is called when there may be news. It is called before Connect.
func (r *replaceable) wakeBy(wake func()) { r.wake, r.now.wake = wake, wake }

// both returns the union that is shown, and the successor, if there is one.
func (r *replaceable) both() (now, next *union) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now, r.next
}

// all returns the unions that run.
func (r *replaceable) all() []*union {
	now, next := r.both()
	if next == nil {
		return []*union{now}
	}
	return []*union{now, next}
}

func (r *replaceable) current() *union {
	now, _ := r.both()
	return now
}

// latest returns the union that the user wants.
func (r *replaceable) latest() *union {
	now, next := r.both()
	if next != nil {
		return next
	}
	return now
}

func (r *replaceable) Succeed(ctx context.Context, q Found) (*Successor, error) {
	u := newUnion(r.host, q.kind)
	u.wake = func() {
		r.wake()
		if u.awaited.Load() {
			r.host.Attend() // its streams may be late
		}
	}
	if err := u.Connect(ctx); err != nil {
		u.Close()
		return nil, err
	}
	return &Successor{u}, nil
}

func (r *replaceable) Await(s *Successor) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	former := r.next
	r.next = nil
	switch {
	case s == nil:
	case r.closed:
		return s.union.Close
	default:
		r.next = s.union
		r.next.awaited.Store(true)
		r.note(false)
	}
	if former == nil {
		return func() {}
	}
	return former.Close
}

// note notes how new what the reader has is, if it can have anything. Called with mu held.
func (r *replaceable) note(newHistory bool) {
	if !r.begun.Load() {
		return
	}
	r.host.Past.note(r.now.Query().Name, r.now.position(), newHistory)
}

// past returns how new what the reader has had of the query is, as far as a union can show it.
func (r *replaceable) past(u *union) position {
	return r.host.Past.of(u.Query().Name, u.position().storage)
}

func (r *replaceable) Fresh() bool {
	now, _ := r.both()
	return now.passed(r.past(now))
}

// Settled also waits for a right to come back that the successor lacks, and that the union had
// which it replaces: objects that are shown do not go away by a refusal that may pass (G8).
func (r *replaceable) Settled() bool {
	now, next := r.both()
	return next != nil && next.Phase() >= Complete && next.passed(r.past(next)) && !next.lacks(now)
}

func (r *replaceable) Try() bool {
	now, next := r.both()
	if next == nil || !r.Settled() {
		return false
	}
	at, then := now.position().storage, next.position().storage
	moved := at != "" && then != "" && at != then
	b := next.Take(false)
	switch {
	case b.OK():
	case next.Phase() == Empty:
		b = Batch{Extent: Some, Absent: true}
	default:
		next.Untake()
		return false
	}
	b.Extent = All
	b.Breaks = b.Breaks&NewHistory | Anew | when(moved, NewHistory) | when(Reshapes(now.Query(), next.Query()), Reshaped)
	if untaken := r.first.Load(); untaken != nil { // nor has the reader taken that
		b.Breaks |= untaken.Breaks & (NewHistory | Reshaped)
	}
	r.tried = &tried{next, b}
	return true
}

func (r *replaceable) Untry() {
	if r.tried != nil {
		r.tried.of.Untake()
		r.tried = nil
	}
}

func (r *replaceable) Switch() (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		return func() {}
	}
	former := r.now
	r.now, r.next = r.next, nil
	r.now.awaited.Store(false)
	if t := r.tried; t != nil && t.of == r.now {
		r.tried = nil
		r.first.Store(&t.batch)
	}
	return former.Close
}

func (r *replaceable) Take(present bool) Batch {
	b := r.take(present)
	if b.OK() {
		r.begun.Store(true)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next != nil || b.Breaks.Has(NewHistory) { // a batch without changes, too, says how new this is
		r.note(b.Breaks.Has(NewHistory))
	}
	return b
}

func (r *replaceable) take(present bool) Batch {
	now, first := r.current(), r.first.Swap(nil)
	if first != nil {
		return TakeMore(now, *first)
	}
	return now.Take(present && r.begun.Load()) // what is shown may be of an earlier query
}

// AtRest: a query that has had no batch is at rest while it has no list. A successor changes
// nothing before Switch.
func (r *replaceable) AtRest() bool {
	now := r.current()
	parts, _, _ := now.now()
	return now.AtRest() && (r.begun.Load() || !slices.ContainsFunc(parts, (*part).ready))
}

func (r *replaceable) Untake() {
	r.first.Store(nil)
	r.begun.Store(false)
	r.current().Untake()
}

func (r *replaceable) Query() Query   { return r.current().Query() }
func (r *replaceable) Wanted() Query  { return r.latest().Query() }
func (r *replaceable) Phase() Phase   { return r.current().Phase() }
func (r *replaceable) News() bool     { return r.current().News() }
func (r *replaceable) Status() Status { return r.latest().Status() }
func (r *replaceable) Rank() int      { return 0 }

func (r *replaceable) Get(key object.Key) object.Object { return r.current().Get(key) }

func (r *replaceable) Each(namespace string, f func(object.Key, object.Object)) {
	r.current().Each(namespace, f)
}

func (r *replaceable) Connect(ctx context.Context) error { return r.current().Connect(ctx) }

func (r *replaceable) Unresolved() bool { return slices.ContainsFunc(r.all(), (*union).Unresolved) }

func (r *replaceable) Late() (all []Late) {
	for _, u := range r.all() {
		all = append(all, u.Late()...)
	}
	return all
}

func (r *replaceable) Resolve(ctx context.Context) {
	for _, u := range r.all() {
		if u.Unresolved() {
			u.Resolve(ctx)
		}
	}
}

func (r *replaceable) Tend() {
	for _, u := range r.all() {
		u.Tend()
	}
	if r.Settled() { // if not, the server is asked on behalf of streams that are late
		r.host.Wake() // nobody else may have seen it
	}
}

func (r *replaceable) Listeners() (all []*stream.Listener) {
	for _, u := range r.all() {
		all = append(all, u.Listeners()...)
	}
	return all
}

func (r *replaceable) Waits() (all Waits) {
	for _, u := range r.all() {
		w := u.Waits()
		all.Held, all.Late = all.Held+w.Held, all.Late+w.Late
	}
	return all
}

func (r *replaceable) Close() {
	r.mu.Lock()
	if !r.closed {
		r.note(false) // another query may get the name
	}
	r.closed = true
	now, next := r.now, r.next
	r.mu.Unlock()
	now.Close()
	if next != nil {
		next.Close()
	}
}
