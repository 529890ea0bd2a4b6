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

// field is a query at work: one stream, or, over several namespaces or selections,
// several, whose objects are one set.
//
//	parts ──merge──▶ rows of one table ──▶ the struct's field
//
// A part counts from when it has its whole first list. One that the query no longer wants
// counts until those that come in its place do, so that there is neither gap nor double; but what
// is in a namespace that is no longer wanted leaves at once.
type field struct {
	name string

	// Guarded by the accumulator's lock:
	query    Query
	resource Resource
	parts    []*part          // replaced, never changed
	spaces   *stream.Listener // to the namespaces that count; nil if all do
	err      error            // why the kind is not known
	known    bool             // the kind is
	absent   bool             // it is certainly not served
	since    time.Time
	// regroup: the parts have changed, so that everything is to be put together again.
	regroup bool
	// upTo is how far parts had come that are gone: until the others have, what these bring may be
	// older than what is shown. anew: the parts that are gone were of another resource.
	upTo string
	anew bool
	// taken: some of it is in a snapshot.
	taken bool
	// reshaped: the query that replaced another has a form or a transform of its own.
	reshaped bool
	// counted: it was complete once, and so may be what the first signal was given for.
	counted atomic.Bool
	// waiting: these streams have not come to version until, and what is shown waits for them; caughtUp: no more.
	waiting  []*stream.Listener
	until    string
	caughtUp bool

	// aligned: every stream of a union has come to where the newest of them began, which is target. Before
	// that one may lack an object because it left, and the other because it has not come yet.
	aligned atomic.Bool
	target  string

	// Of references: what a query with Refs watches, and what a field whose objects name others knows. rank is that of the longest chain
	// of names to the field. None of them is ever replaced.
	refs   *references
	source *source
	rank   int

	// Of the reader's turn. Others look at the table with reader.mu held.
	table    *snapshot.Table
	last     map[Key]Object // in place of a table, for a Reader
	index    *index         // in place of a table, for partitions
	spans    bool           // the table's keys have the namespace
	present  bool           // it is in the snapshot
	got      taken          // by the Update that runs
	within   map[string]bool
	held     held[coherence.Departure] // keys whose decision is open: rule U2 of package coherence
	looks    looks                     // of the key that is decided; empty between two merges
	late     []*stream.Listener        // streams that have not reached farthest
	farthest string                    // the newest version that an open decision waits for
	lost     bool                      // some stream has nothing new to show
}

// part is one stream of a field.
type part struct {
	sub *stream.Listener
	// outgoing: it is no longer wanted, and leaves when nothing is incoming. Guarded by the accumulator's lock.
	outgoing bool
	// merged: its first list is in the field. Of the reader's turn.
	merged bool
}

// ready reports whether the part has its whole first list.
func (p *part) ready() bool { return p.sub.State().Ready() }

// settled reports whether the part does not hold up an optional field.
func (p *part) settled(optional bool) bool { return p.sub.State().Settled(optional) }

// of returns what a field consists of now. Parts that are no longer wanted are among it until others come in their place.
func (a *Accumulator) of(f *field) (parts []*part, spaces *stream.Listener, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f.retire()
	return f.parts, f.spaces, f.known
}

// wanted is of without the parts that are no longer wanted.
func (a *Accumulator) wanted(f *field) (parts []*part, spaces *stream.Listener, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f.retire()
	parts = slices.DeleteFunc(slices.Clone(f.parts), func(p *part) bool { return p.outgoing })
	return parts, f.spaces, f.known
}

// retire lets parts go that are no longer wanted, if nothing is to come in their place. Called with the
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

// fieldComplete reports whether the field has its whole first list, or, if it is optional, certainly none.
func (a *Accumulator) fieldComplete(f *field) bool {
	complete := a.allParts(f)
	if complete {
		f.counted.Store(true)
	}
	return complete
}

// stillComplete reports whether a field that was complete can be taken, though the query that came in place of
// its own is not complete yet: what is left of it is there.
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

// align starts, once all streams of a union have their first lists, to note what leaves them, and
// reports whether they have come to one version since. Until they have, the late ones are waited for.
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

// news reports whether there is something of the field worth a signal.
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

// unserved reports whether a stream of the field is told that there is no such resource.
func (f *field) unserved() bool {
	for _, p := range f.parts {
		if !p.outgoing && p.sub.State().Health == Missing {
			return true
		}
	}
	return false
}

// attach makes a field consist of what its query wants of a resource, in the namespaces that count. What it has already stays.
// It closes the namespaces that counted before, if those are others. On an error nothing has changed, and spaces is the caller's to close.
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
	f.spaces = spaces // at once: without it the parts would be too much
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

// joinAll subscribes to every list+watch of a query.
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

// swap puts parts in place of the field's. It returns those that leave at once: of its own those in
// namespaces that are not wanted, of the new ones those that it has already. Called with the
// accumulator's lock held.
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

// hears is what an accumulator wants to hear of a stream.
func (a *Accumulator) hears() stream.ListenOptions {
	return stream.ListenOptions{PerKey: a.keyed != nil, QuietOwn: a.options.QuietOwnWrites, Wake: a.pacer.poke, Trouble: a.kick}
}

func closeAll(parts []*part) {
	for _, p := range parts {
		p.sub.Close()
	}
}

// missed notes why the kind of a field is not known. Once certain, a kind stays absent: an outage
// does not bring it back. Called with the accumulator's lock held.
func (f *field) missed(err error) {
	f.err, f.absent = err, f.absent || errors.Is(err, ErrNotServed)
}
