package accumulator

import (
	"context"
	"slices"
	"time"

	"github.com/kates-go/kates/accumulator/stream"
)

// References: the objects of a query that objects of other queries name are watched, and no
// others.
//
//	Ingresses ──take──▶ names ──▶ waiting ──all known?──▶ the next snapshot
//	                      │                    ▲
//	                      └──▶ a stream each ──┘ present, or absent
//
// A new state of an object waits until each object that it names is known to be present or
// absent. Meanwhile the snapshot shows the old state, if there was one, and the objects that it
// names. All other objects go on. After the first snapshot an object waits for refPatience at
// most, and not for what the server refuses.
//
// A goroutine takes the reader's turn to read the names as soon as the watch brings an object.
// Otherwise a program that waits for a signal would start the lists of the named objects only
// after it.

// follower holds a value when there may be names to read.
type follower chan struct{}

func (f follower) kick() {
	select {
	case f <- struct{}{}:
	default:
	}
}

// following reads the names in objects as they come, until ctx ends.
func (a *Accumulator) following(ctx context.Context) {
	for {
		var late <-chan time.Time
		if patience := a.followAll(ctx); patience > 0 {
			late = time.After(patience)
		}
		select {
		case <-ctx.Done():
			return
		case <-a.follows:
		case <-late:
		}
	}
}

// followAll takes the changes of fields whose objects name others, and keeps them for the next
// snapshot. It returns how long objects may still wait, 0 if none does.
func (a *Accumulator) followAll(ctx context.Context) (patience time.Duration) {
	if a.enter(ctx) != nil {
		return 0
	}
	all := a.fieldsNow()
	for _, f := range ranked(all) {
		if f.source == nil || !f.present && !a.fieldComplete(f) && !a.stillComplete(f) {
			continue
		}
		a.takeFollowed(f)
		for _, w := range f.source.waiting.keys {
			if left := max(1, a.unsettled(f.source, w.names)); patience == 0 || left < patience {
				patience = left
			}
		}
	}
	a.know(all)
	a.leave()
	a.pacer.poke()
	return patience
}

// ranked orders the fields: those whose objects name others come before the named ones. The order
// is stable.
func ranked(all []*field) []*field {
	most := 0
	for _, f := range all {
		most = max(most, f.rank)
	}
	if most == 0 {
		return all
	}
	sorted := make([]*field, 0, len(all))
	for rank := range most + 1 {
		for _, f := range all {
			if f.rank == rank {
				sorted = append(sorted, f)
			}
		}
	}
	return sorted
}

// know marks the fields whose names are known: all fields that name their objects have been
// taken.
func (a *Accumulator) know(all []*field) {
	for _, f := range all {
		if f.refs == nil || f.refs.known.Load() {
			continue
		}
		known := true
		wide, _ := a.wide(f)
		for _, from := range f.refs.from {
			known = known && (from.source.names(f, wide) || a.fieldComplete(from) && a.without(from))
		}
		f.refs.known.Store(known)
	}
}

// names reports whether the names in a field's objects were read with the present scope of the
// named kind.
func (s *source) names(f *field, wide bool) bool {
	return s.taken && !slices.ContainsFunc(s.to, func(n naming) bool { return n.to == f && n.wide != wide })
}

// rename reads all names again if the named kind turns out to have another scope. The scope of a
// kind that is not served is unknown.
func (a *Accumulator) rename(f *field) {
	s, stale := f.source, false
	for i := range s.to {
		n := &s.to[i]
		if wide, _ := a.wide(n.to); wide != n.wide {
			n.wide, stale = wide, true
		}
	}
	if !stale {
		return
	}
	again := func(o Object, old named) named {
		now := a.namesIn(f, o, old)
		a.count(s, now, 1)
		a.count(s, old, -1)
		return now
	}
	for key, w := range s.waiting.keys {
		w.names = again(w.object, w.names)
		s.waiting.add(key, w)
	}
	for key, r := range s.shown {
		r.names = again(r.object, r.names)
		s.shown[key] = r
	}
}

// takeFollowed takes the changes of a field whose objects name others.
func (a *Accumulator) takeFollowed(f *field) {
	loud := a.fieldNews(f)
	a.rename(f)
	f.got = f.got.then(a.follow(f, a.takeField(f), loud))
	for _, n := range f.source.to {
		a.settle(n.to)
	}
}

// follow delays objects until it is known whether the objects that they name exist.
func (a *Accumulator) follow(f *field, t taken, loud bool) taken {
	s := f.source
	s.taken = s.taken || t.ok
	there := make(map[Key]bool, len(t.changes))
	for _, c := range t.changes {
		there[c.Key] = true
		old, waits := s.waiting.keys[c.Key]
		before := old.names
		if !waits {
			before = s.shown[c.Key].names
		}
		now := waiting{c.Object, a.namesIn(f, c.Object, before)}
		a.count(s, now.names, 1)
		a.count(s, old.names, -1)
		s.waiting.add(c.Key, now)
		if t.whole || t.loud[c.Key] || a.keyed == nil && loud {
			s.waiting.signal(c.Key)
		}
	}
	if t.whole {
		s.leave(a, there)
	}
	s.anew, s.reshaped = s.anew || t.anew, s.reshaped || t.reshaped
	out := taken{whole: t.whole, anew: s.anew, reshaped: s.reshaped, ok: t.ok, loud: t.loud}
	a.streams.Reach(stream.AtNames)
	s.waiting.perKey = a.keyed != nil
	news := s.waiting.settle(&out, s.object, func(key Key, w waiting) decision[waiting] {
		if a.unsettled(s, w.names) > 0 {
			return decision[waiting]{kept: true, open: true, w: w}
		}
		a.release(s, key, w)
		return decision[waiting]{object: w.object}
	})
	if news || t.whole && loud {
		s.kept.Store(true)
	}
	if len(s.waiting.keys) == 0 {
		s.anew, s.reshaped = false, false
	}
	return out
}

// object returns the object of a key that is in the snapshot, or will be with the next one.
func (s *source) object(key Key) (Object, bool) {
	r, had := s.shown[key]
	return r.object, had
}

// leave drops the keys that a batch of all objects lacks.
func (s *source) leave(a *Accumulator, there map[Key]bool) {
	for key, w := range s.waiting.keys {
		if !there[key] {
			a.count(s, w.names, -1)
			s.waiting.drop(key)
		}
	}
	for key, old := range s.shown {
		if !there[key] {
			a.count(s, old.names, -1)
			delete(s.shown, key)
		}
	}
}

// release notes that the next snapshot shows an object.
func (a *Accumulator) release(s *source, key Key, w waiting) {
	a.count(s, s.shown[key].names, -1)
	if w.object == nil {
		delete(s.shown, key)
	} else {
		s.shown[key] = released(w)
	}
}

// unsettled returns how long an object may still wait for what it names; 0 if it need not wait.
func (a *Accumulator) unsettled(s *source, names named) (patience time.Duration) {
	for i, keys := range names {
		for _, key := range keys {
			patience = max(patience, a.unsettledOne(s.to[i], key))
		}
	}
	return patience
}

func (a *Accumulator) unsettledOne(n naming, key Key) time.Duration {
	f := n.to
	f.refs.mu.Lock()
	ref := *f.refs.named[key]
	f.refs.mu.Unlock()
	switch wide, known := a.wide(f); {
	case ref.part != nil && a.refReady(f, ref.part), ref.part == nil && a.isAbsent(f):
		return 0
	case ref.part == nil && known && wide == n.wide && nowhere(key, wide):
		return 0
	case !a.ready.Load():
		return refPatience // however long it takes
	}
	return max(0, refPatience-time.Since(ref.since))
}

// refReady reports whether a named object is known to be present or absent. If the server refuses
// to read it, it counts as absent: for an optional query from the start, for others after the
// first snapshot.
func (a *Accumulator) refReady(f *field, p *part) bool {
	st := p.sub.State()
	return st.Ready() || st.Gone || (a.queryOf(f).Optional || a.ready.Load()) && st.Refused
}

// takeNamed takes the changes of named objects.
func (a *Accumulator) takeNamed(f *field) taken {
	r := f.refs
	if !r.known.Load() {
		return taken{}
	}
	a.streams.Reach(stream.AtNamed)
	r.mu.Lock()
	dropped, fresh := r.dropped, make(map[Key]*part)
	r.dropped = nil
	for ref := range r.fresh.take() {
		if ref.part != nil {
			fresh[ref.key] = ref.part
		}
	}
	r.mu.Unlock()
	out := taken{ok: true, loud: make(map[Key]bool, len(dropped))}
	now := make(map[Key]Object, len(fresh)+len(dropped))
	for key := range dropped {
		now[key], out.loud[key] = nil, true
	}
	for key, p := range fresh {
		t := p.sub.Take()
		if t.Extent == stream.Everything {
			now[key], out.loud[key] = nil, true
		}
		for _, c := range t.Changes {
			if c.Key != key {
				continue // the kind has namespaces by now, and this object is in another one
			}
			now[c.Key] = c.Object
			out.loud[c.Key] = out.loud[c.Key] || t.Signals[c.Key]
		}
		out.anew = out.anew || t.NewHistory
	}
	for key, o := range now {
		out.changes = append(out.changes, stream.Change{Key: key, Object: o})
		if !out.loud[key] {
			delete(out.loud, key)
		}
	}
	return out
}

// then combines two takes, t before next.
func (t taken) then(next taken) taken {
	switch {
	case !t.ok:
		return next
	case !next.ok:
		return t
	}
	next.anew, next.reshaped = next.anew || t.anew, next.reshaped || t.reshaped
	for key := range t.loud {
		if next.loud == nil {
			next.loud = make(map[Key]bool)
		}
		next.loud[key] = true
	}
	if next.whole {
		return next
	}
	next.whole = t.whole
	later := make(map[Key]bool, len(next.changes))
	for _, c := range next.changes {
		later[c.Key] = true
	}
	for _, c := range t.changes {
		if !later[c.Key] {
			next.changes = append(next.changes, c)
		}
	}
	return next
}
