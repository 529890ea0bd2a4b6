package accumulator

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/snapshot"
)

// field is a query that runs. It has one stream, or several over namespaces or selections, whose
// objects form one set.
//
//	parts ──merge──▶ rows of one table ──▶ the struct's field
//
// A part counts once it has its whole first list. A part that the query no longer wants counts
// until the parts that replace it do, so there is neither a gap nor a duplicate. But objects in a
// namespace that is no longer wanted leave at once.
type field struct {
	name string

	// Guarded by the accumulator's lock:
	query    Query
	resource Resource
	parts    []*part          // replaced, never changed
	spaces   *stream.Listener // lists the selected namespaces; nil selects all
	err      error            // why the kind is not known
	known    bool             // the kind is known
	absent   bool             // the kind is certainly not served
	since    time.Time
	// regroup: the parts have changed, so the next batch has all objects.
	regroup bool
	// upTo is the newest position of the parts that have left. Until the other parts have reached
	// it, they may deliver objects older than those shown. anew: the parts that have left
	// belonged to another resource.
	upTo string
	anew bool
	// taken: a snapshot shows objects of the field.
	taken bool
	// reshaped: the query was replaced by one with another form or transform.
	reshaped bool
	// counted: the field was complete once, so the first signal may rely on it.
	counted atomic.Bool
	// waiting are the streams that have not reached the version until, while a shown object waits
	// for them. caughtUp: some stream has left the list.
	waiting  []*stream.Listener
	until    string
	caughtUp bool

	// aligned: every stream of a union has reached target, the version at which the newest of
	// them began. Before that, one stream may lack an object that has left it, and another may
	// not have it yet.
	aligned atomic.Bool
	target  string

	// refs is what a query with Refs watches, source what a field knows whose objects name
	// others. rank is the length of the longest chain of names that leads to the field. None of
	// them is ever replaced.
	refs   *references
	source *source
	rank   int

	// The rest belongs to the reader's turn. Others read the table with reader.mu held.
	table    *snapshot.Table
	last     map[Key]Object // replaces the table in a Reader
	index    *index         // replaces the table in partitions
	spans    bool           // the table's keys have the namespace
	present  bool           // the snapshot has the field
	got      taken          // what the current Update has taken
	within   map[string]bool
	held     held[coherence.Departure] // open decisions: rule U2 of package coherence
	looks    looks                     // of the current key; empty between two merges
	late     []*stream.Listener        // streams that have not reached farthest
	farthest string                    // the newest version that an open decision waits for
	lost     bool                      // some stream has nothing new to show
}

// part is one stream of a field.
type part struct {
	sub *stream.Listener
	// outgoing: the query no longer wants the part. It leaves when no part is incoming. Guarded
	// by the accumulator's lock.
	outgoing bool
	// merged: the field has its first list. Belongs to the reader's turn.
	merged bool
}

// ready reports whether the part has its whole first list.
func (p *part) ready() bool { return p.sub.State().Ready() }

// settled reports whether an optional field need not wait for the part.
func (p *part) settled(optional bool) bool { return p.sub.State().Settled(optional) }

// of returns the parts of a field, including those that are no longer wanted but not yet
// replaced.
func (a *Accumulator) of(f *field) (parts []*part, spaces *stream.Listener, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f.retire()
	return f.parts, f.spaces, f.known
}

// wanted returns what of returns, but only the parts that the query wants.
func (a *Accumulator) wanted(f *field) (parts []*part, spaces *stream.Listener, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f.retire()
	parts = slices.DeleteFunc(slices.Clone(f.parts), func(p *part) bool { return p.outgoing })
	return parts, f.spaces, f.known
}

// retire removes the parts that are no longer wanted, once no part is incoming. Called with the
// accumulator's lock held.
func (f *field) retire() {
	outgoing, incoming := false, false
	for _, p := range f.parts {
		outgoing = outgoing || p.outgoing
		incoming = incoming || !p.outgoing && !p.settled(f.query.Optional)
	}
	if !outgoing || incoming {
		return
	}
	kept := f.parts[:0:0]
	for _, p := range f.parts {
		if p.outgoing {
			if p.sub.Storage() != f.resource.Storage {
				f.anew = true
			} else {
				f.upTo = coherence.Newest(f.upTo, p.sub.State().PositionRV)
			}
			p.sub.Close()
		} else {
			kept = append(kept, p)
		}
	}
	f.parts, f.regroup = kept, true
}

// fieldComplete reports whether the field has its whole first list, or is optional and certainly
// empty.
func (a *Accumulator) fieldComplete(f *field) bool {
	complete := a.allParts(f)
	if complete {
		f.counted.Store(true)
	}
	return complete
}

// stillComplete reports whether a replaced query, which was complete, can still be read while the
// new one is incomplete.
func (a *Accumulator) stillComplete(f *field) bool {
	if !f.counted.Load() {
		return false
	}
	parts, _, _ := a.of(f)
	there := false
	for _, p := range parts {
		switch st := p.sub.State(); {
		case st.Ready():
			there = true
		case st.Phase == stream.Dropped:
			return false
		}
	}
	return there
}

func (a *Accumulator) allParts(f *field) bool {
	parts, spaces, known := a.wanted(f)
	switch {
	case !known:
		return a.isAbsent(f)
	case f.refs != nil:
		return f.refs.known.Load() && !slices.ContainsFunc(parts, func(p *part) bool { return !a.refReady(f, p) })
	}
	q := a.queryOf(f)
	if spaces != nil && !spaces.State().Settled(q.Optional) {
		return false
	}
	for _, p := range parts {
		if !p.settled(q.Optional) {
			return false
		}
	}
	return !q.union() || f.aligned.Load()
}

// align starts to note departures once all streams of a union have their first lists. It reports
// whether all streams have since reached one version. Until then, the manager helps the late
// ones.
func (a *Accumulator) align(f *field) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !f.query.union() || f.aligned.Load() || !f.known {
		return true
	}
	var ready []*part
	for _, p := range f.parts {
		if !p.settled(f.query.Optional) {
			return true // not yet
		}
		if p.ready() {
			ready = append(ready, p)
		}
	}
	if f.target == "" {
		for _, p := range ready {
			f.target = coherence.Newest(f.target, p.sub.Track())
		}
	}
	f.waiting, f.until = nil, f.target
	for _, p := range ready {
		if coherence.Newer(f.target, p.sub.State().PositionRV) {
			f.waiting = append(f.waiting, p.sub)
		}
	}
	if f.waiting != nil {
		return false
	}
	f.regroup = true
	f.aligned.Store(true)
	return true
}

// queryOf returns the field's query; Replace changes it.
func (a *Accumulator) queryOf(f *field) Query {
	a.mu.Lock()
	defer a.mu.Unlock()
	return f.query
}

func (a *Accumulator) isAbsent(f *field) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return f.absent
}

// subscriptions of the field. Called with the accumulator's lock held.
func (f *field) subscriptions() (all []*stream.Listener) {
	for _, p := range f.parts {
		all = append(all, p.sub)
	}
	if f.spaces != nil {
		all = append(all, f.spaces)
	}
	return all
}

// fieldNews reports whether the field has a change that is worth a signal.
func (a *Accumulator) fieldNews(f *field) bool {
	if f.refs != nil {
		return f.refs.news()
	}
	if f.source != nil && f.source.kept.Load() {
		return true
	}
	a.mu.Lock()
	parts, spaces, regroup := f.parts, f.spaces, f.regroup || f.caughtUp
	a.mu.Unlock()
	if regroup || spaces != nil && spaces.State().News {
		return true
	}
	return slices.ContainsFunc(parts, func(p *part) bool { return p.sub.State().News })
}

// unserved reports whether the server has told a stream of the field that the resource does not
// exist.
func (f *field) unserved() bool {
	for _, p := range f.parts {
		if !p.outgoing && p.sub.State().Health == Missing {
			return true
		}
	}
	return false
}

// attach gives a field the streams that its query wants of a resource, in the selected
// namespaces. Streams that it already has stay. It closes the previous listener of namespaces if
// there is another. On an error nothing has changed, and the caller closes spaces.
func (a *Accumulator) attach(f *field, q Query, r Resource, spaces *stream.Listener) error {
	if f.refs != nil {
		a.mu.Lock()
		if wide := f.known && !f.resource.Namespaced; wide == r.Namespaced {
			f.refs.known.Store(false) // the names are read again
		}
		f.query, f.resource, f.known, f.err, f.absent = q, r, true, nil, false
		a.mu.Unlock()
		a.rejoin(f)
		a.pacer.poke()
		return nil
	}
	wanted := q.Watches(r)
	parts, err := a.joinAll(f, q, r, wanted)
	if err != nil {
		return err
	}
	a.mu.Lock()
	if a.err != nil {
		err := a.err
		a.mu.Unlock()
		closeAll(parts)
		return err
	}
	leaving, old := f.swap(parts, wanted, r), f.spaces
	f.reshaped = f.reshaped || f.taken && reshapes(f.query, q)
	f.query, f.resource, f.known, f.err, f.absent = q, r, true, nil, false
	f.spaces = spaces // at once: the parts would show too much without it
	a.mu.Unlock()
	closeAll(leaving)
	if old != spaces {
		closeSpaces(old)
	}
	a.pacer.poke() // a first list may have been in before the field was
	return nil
}

func closeSpaces(spaces *stream.Listener) {
	if spaces != nil {
		spaces.Close()
	}
}

// joinAll joins every stream of a query.
func (a *Accumulator) joinAll(f *field, q Query, r Resource, wanted []stream.Spec) (parts []*part, err error) {
	union := q.selects(r)
	for _, w := range wanted {
		l := a.hears()
		if f.source != nil {
			l.Wake = a.follows.kick
		}
		if l.Union, l.Optional, l.Signal = union, q.Optional, q.Signal; union != nil {
			wake := l.Wake
			l.Wake = func() {
				wake()
				if !f.aligned.Load() {
					a.kick()
				}
			}
		}
		sub, err := a.streams.Join(r, w, l)
		if err != nil {
			closeAll(parts)
			return nil, queryError(q, err)
		}
		parts = append(parts, &part{sub: sub})
	}
	return parts, nil
}

// swap replaces the parts of a field. It returns the parts that leave at once: old ones in
// namespaces that are not wanted, and new ones that it already has. Called with the accumulator's
// lock held.
func (f *field) swap(fresh []*part, wanted []stream.Spec, r Resource) (leaving []*part) {
	namespaces := make(map[string]bool)
	for _, w := range wanted {
		namespaces[w.Namespace] = true
	}
	kept := f.parts[:0:0]
	had := make(map[stream.ID]bool)
	isFresh := make(map[stream.ID]bool)
	for _, p := range fresh {
		isFresh[p.sub.Stream()] = true
	}
	for _, p := range f.parts {
		ns := p.sub.Namespace()
		p.outgoing = !isFresh[p.sub.Stream()]
		if p.outgoing && ns != "" && r.Namespaced && !namespaces[ns] && !namespaces[""] {
			leaving = append(leaving, p)
			f.regroup = true
			continue
		}
		kept = append(kept, p)
		had[p.sub.Stream()] = true
	}
	for _, p := range fresh {
		if had[p.sub.Stream()] {
			leaving = append(leaving, p)
			continue
		}
		had[p.sub.Stream()] = true // a query may say one thing twice
		kept = append(kept, p)
	}
	f.regroup = f.regroup || f.taken || f.parts != nil
	f.parts = kept
	return leaving
}

// hears returns the options of an accumulator's listeners.
func (a *Accumulator) hears() stream.ListenOptions {
	return stream.ListenOptions{PerKey: a.keyed != nil, QuietOwn: a.options.QuietOwnWrites, Wake: a.pacer.poke, Trouble: a.kick}
}

func closeAll(parts []*part) {
	for _, p := range parts {
		p.sub.Close()
	}
}

// missed notes why the kind of a field is unknown. Once certain, absence stays: an outage does
// not end it. Called with the accumulator's lock held.
func (f *field) missed(err error) {
	f.err, f.absent = err, f.absent || errors.Is(err, ErrNotServed)
}
