package refs

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// source is a query whose objects name those of queries with Refs.
//
//	a batch ──▶ names ──▶ waiting ──all known?──▶ the next batch
//	              │                    ▲
//	              └──▶ a stream each ──┘ present, or absent
//
// A new state of an object waits until each object that it names is known to be present or
// absent. Meanwhile the reader has the old state, if there was one, and the objects that it names.
// All other objects go on.
//
// Only the goroutine that has the reader's turn uses the fields, but for the atomic ones.
type source struct {
	query.Running
	*reading
}

// reading is what a source has read. A query that takes the place of another one goes on with it.
type reading struct {
	of   atomic.Pointer[source] // the query that is shown
	host query.Host
	to   []naming
	// released are the objects that the reader has, or will have with the next batch; waiting are
	// those that wait for the objects that they name.
	released map[object.Key]nameable
	waiting  held
	readAll  atomic.Pointer[source] // the query in all of whose objects the names have been read
	absent   bool                   // the query is optional, and its kind is gone
	breaks   query.Breaks           // of the batches of waiting objects
	// first is the first batch of a query that takes the place of another one, and next what Follow
	// has taken in advance.
	first, next query.Batch
	pending     pending
	// unread: what was logged of objects whose names cannot be read
	unread map[object.Key]string
	coming coming
}

// pending is what a source has taken that the reader does not have.
type pending struct {
	news atomic.Bool  // a change that is worth a signal
	any  atomic.Bool  // a change
	held atomic.Int64 // how many objects wait
}

// naming is one way in which objects name those of another query.
type naming struct {
	to    *followed
	names func(object.Object) ([]object.Key, error)
	// wide: the names have no namespace, since the kind has none. A kind that is unknown counts
	// as namespaced.
	wide bool
}

// nameable is an object and the names in it, for each naming.
type nameable struct {
	object object.Object // nil: it is gone
	names  [][]object.Key
}

func newSource(h query.Host, q query.Running) *source {
	s := &source{q, &reading{host: h, released: make(map[object.Key]nameable)}}
	s.of.Store(s)
	s.waiting.perKey = h.PerKey
	return s
}

// State: at rest, no object waits. Those that do may come with time alone.
func (s *source) State() query.State {
	st, held := s.Running.State(), int(s.pending.held.Load())
	st.News = st.News || s.pending.news.Load()
	st.AtRest = st.AtRest && held == 0 && !s.pending.any.Load()
	st.Held += held
	return st
}

func (s *source) Take(present bool) query.Batch {
	if !s.read(present) && !present {
		return query.Batch{} // what Follow has taken may lack own writes that a stream has given up since
	}
	b := s.next
	s.next = query.Batch{}
	s.pending.any.Store(false)
	s.pending.news.Store(false)
	return b
}

func (s *source) Untake() {
	s.first, s.next = query.Batch{}, query.Batch{}
	s.pending.any.Store(false)
	s.Running.Untake()
}

func (s *source) Follow(present bool, next query.Running) (patience time.Duration) {
	s.read(present)
	patience = s.foresee(next)
	for _, w := range s.waiting.keys {
		if left := max(1, s.patience(w)); patience == 0 || left < patience {
			patience = left
		}
	}
	return patience
}

// read takes the changes, and adds to the next batch those that need not wait. It returns false if
// there is nothing yet that may be shown.
func (s *source) read(present bool) bool {
	news := s.State().News
	s.rescope()
	var b query.Batch
	if first := s.first; first.OK() {
		s.first = query.Batch{}
		b, news = query.TakeMore(s.Running, first), true
	} else {
		b = s.Running.Take(present)
	}
	s.next = s.next.Then(s.hold(b, news))
	if b.OK() {
		s.readAll.Store(s)
	}
	s.pending.any.Store(s.next.OK())
	if b.Breaks.Has(query.Anew) {
		s.forgetComing(nil) // they have come
	}
	return b.OK()
}

// releasedOf returns the object of a key that the reader has, or will have with the next batch.
func (s *reading) releasedOf(key object.Key) (object.Object, bool) {
	r, had := s.released[key]
	return r.object, had
}

// hold holds objects back until it is known whether the objects that they name exist.
func (s *reading) hold(b query.Batch, news bool) query.Batch {
	if b.OK() {
		s.absent = b.Absent
	}
	there := make(map[object.Key]bool, len(b.Changes))
	for _, c := range b.Changes {
		there[c.Key] = true
		old, waits := s.waiting.keys[c.Key]
		before := old.names
		if !waits {
			before = s.released[c.Key].names
		}
		now := s.namesIn(c.Object, before)
		s.count(now, 1)
		s.count(old, -1)
		s.waiting.add(c.Key, now)
		if b.Whole() || b.Signals[c.Key] || !s.host.PerKey && news {
			s.waiting.signal(c.Key)
		}
	}
	if b.Renews() {
		s.leave(b, there)
	}
	s.breaks |= b.Breaks
	out := b
	out.Changes, out.Breaks, out.Absent = nil, s.breaks, s.absent
	s.host.Streams.Reach(stream.AtNames)
	worth := s.waiting.settle(&out, s.releasedOf, func(key object.Key, w nameable) bool {
		if s.patience(w) > 0 {
			return false
		}
		s.release(key, w)
		return true
	})
	s.pending.held.Store(int64(len(s.waiting.keys)))
	if worth || b.Renews() && news {
		s.pending.news.Store(true)
	}
	if len(s.waiting.keys) == 0 {
		s.breaks = 0
	}
	return out
}

// leave drops the keys that are gone, see Batch.Gone.
func (s *reading) leave(b query.Batch, there map[object.Key]bool) {
	for key, w := range s.waiting.keys {
		if !there[key] && b.Gone(key) {
			s.count(w, -1)
			s.waiting.drop(key)
		}
	}
	for key, old := range s.released {
		if !there[key] && b.Gone(key) {
			s.count(old, -1)
			delete(s.released, key)
			delete(s.unread, key)
		}
	}
}

// release notes that the next batch has an object.
func (s *reading) release(key object.Key, w nameable) {
	s.count(s.released[key], -1)
	if w.object == nil {
		delete(s.released, key)
		delete(s.unread, key)
	} else {
		s.released[key] = w
	}
}

// patience returns how long an object may still wait for those that it names; 0 if it need not
// wait.
func (s *reading) patience(w nameable) (most time.Duration) {
	for i, keys := range w.names {
		for _, key := range keys {
			most = max(most, s.to[i].to.patience(key, s.to[i].wide))
		}
	}
	return most
}

// count notes that an object names others, or, with -1, that it no longer does.
func (s *reading) count(w nameable, by int) {
	for i, keys := range w.names {
		for _, key := range keys {
			s.to[i].to.count(key, by, 0)
		}
	}
}

// readFor reports whether the names of r's objects have been read, with the present scope of its
// kind.
func (s *reading) readFor(r *followed, wide bool) bool {
	return s.readAll.Load() == s.of.Load() && !slices.ContainsFunc(s.to, func(n naming) bool { return n.to == r && n.wide != wide })
}

// rescope reads all names again if a named kind turns out to have another scope. The scope of a
// kind that is not served is unknown.
func (s *reading) rescope() {
	stale := false
	for i := range s.to {
		n := &s.to[i]
		if wide := n.to.isWide(); wide != n.wide {
			n.wide, stale = wide, true
		}
	}
	if !stale {
		return
	}
	again := func(old nameable) nameable {
		now := s.namesIn(old.object, old.names)
		s.count(now, 1)
		s.count(old, -1)
		return now
	}
	for key, w := range s.waiting.keys {
		s.waiting.add(key, again(w))
	}
	for key, r := range s.released {
		s.released[key] = again(r)
	}
	s.forgetComing(nil) // they are read again, too
}

// namesIn returns an object with the names in it. It calls the user's functions. If one fails, the
// names from before count.
func (s *reading) namesIn(o object.Object, before [][]object.Key) nameable {
	all := nameable{o, make([][]object.Key, len(s.to))}
	if o == nil {
		return all
	}
	if before == nil {
		before = all.names
	}
	if object.Fault(o) != nil {
		return nameable{o, before}
	}
	var failures []failure
	for i, n := range s.to {
		var keys []object.Key
		err := guard.Named("the function of RefsOf panicked", func() (err error) {
			keys, err = n.names(o)
			return err
		})
		if err != nil {
			failures = append(failures, failure{n.to, err})
			all.names[i] = before[i]
			continue
		}
		for _, key := range keys {
			if key.Name != "" {
				all.names[i] = append(all.names[i], n.complete(key, o))
			}
		}
	}
	s.log(o, failures)
	return all
}

// failure says why an object's names of one query cannot be read.
type failure struct {
	of  *followed
	err error
}

// log logs failures, once for each version of an object.
func (s *reading) log(o object.Object, failures []failure) {
	key := object.KeyOf(o)
	if failures == nil {
		delete(s.unread, key)
		return
	}
	told := fmt.Sprint(o.GetUID(), " ", o.GetResourceVersion(), " ", failures[0].err)
	if s.unread[key] == told {
		return
	}
	if s.unread == nil {
		s.unread = make(map[object.Key]string)
	}
	s.unread[key] = told
	for _, f := range failures {
		const what = "cannot read what an object refers to: " +
			"it keeps the references of its last version that could be read"
		details := []any{"query", s.of.Load().Query().Name, "object", key.String(), "referred", f.of.Query().Name}
		s.host.Streams.Logger().Error(f.err, what, append(details, guard.Attribute(f.err)...)...)
	}
}

// complete completes a name: without a namespace it is in the object's namespace, unless the kind
// has none.
func (n naming) complete(key object.Key, by object.Object) object.Key {
	switch {
	case n.wide:
		key.Namespace = ""
	case key.Namespace == "":
		key.Namespace = by.GetNamespace()
	}
	return key
}
