package fleet

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/kates"
)

// shown is what the reader of a watch was given. It belongs to the reader's turn.
type shown struct {
	turn    chan struct{}
	parts   map[string]*part // by cluster, those whose objects are shown
	names   []string         // of parts, in order; nil: to be made anew
	members int              // which clusters there are, as of the last take, see watching.members
	last    reflect.Value    // the last snapshot's fields
	missing []Missing
	deltas  []*Delta // since the last snapshot
	changed bool     // something differs from the last snapshot
	stale   []bool   // which fields differ from it
	witness collect.Witness
}

func newShown() shown {
	return shown{turn: make(chan struct{}, 1), parts: make(map[string]*part)}
}

// errNotYet says of a cluster that took a name what is shown in its place.
var errNotYet = errors.New("another cluster has taken the name, and is not complete yet: the former one's objects are shown")

var errNoClient = errors.New("its client is not made yet")

// update fills a struct with the current snapshot.
func (w *watching) update(ctx context.Context, into reflect.Value) (changed, complete bool, err error) {
	select {
	case w.shown.turn <- struct{}{}:
	default:
		return false, false, kates.ErrSecondReader
	}
	defer func() { <-w.shown.turn }()
	if err := cmp.Or(w.over(), ctx.Err()); err != nil {
		return false, false, err
	}
	if _, complete := w.begin(time.Now()); !complete {
		return false, false, nil
	}
	w.take(context.WithoutCancel(ctx)) // whole, or some clusters would seem to fail
	if err := w.over(); err != nil {   // and with it the clusters' own watches
		return false, false, err
	}
	return w.show(into), true, nil
}

// over returns why the watch has ended, if it has.
func (w *watching) over() error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	if w.fleet.ctx.Err() != nil {
		return kates.ErrClosed
	}
	return nil
}

// take takes what is new from every cluster. What is taken stays new until a snapshot shows it.
func (w *watching) take(ctx context.Context) {
	s := &w.shown
	if s.stale == nil {
		s.stale, s.changed = make([]bool, len(w.shape.fields)), true
	}
	parts, lost, members := w.now()
	for _, p := range parts {
		if p.news() {
			w.takePart(ctx, p)
		}
	}
	if members != s.members {
		s.members = members
		w.leave(parts, lost)
	}
	if now := w.missing(parts, lost); !sameMissing(now, s.missing) {
		s.missing, s.changed = now, true
	}
}

// leave takes out clusters that are no longer in the fleet.
func (w *watching) leave(parts []*part, lost []seated) {
	s := &w.shown
	names := make(map[string]bool, len(parts))
	for _, p := range parts {
		names[p.cluster.name] = true
	}
	for _, l := range lost {
		names[l.name] = true
	}
	for name, p := range s.parts {
		if !names[name] {
			w.farewell(p)
			delete(s.parts, name)
			s.names = nil
		}
	}
}

// takePart takes what is new from one cluster.
func (w *watching) takePart(ctx context.Context, p *part) {
	if !p.complete() {
		return
	}
	s := &w.shown
	name := p.cluster.name
	former, before := s.parts[name], p.value
	now, deltas, err := p.take(ctx, w.shape.part, w.shape.deltas != nil)
	p.troubled(err)
	if err != nil || !now.IsValid() {
		return
	}
	if former != p {
		w.farewell(former)
		s.parts[name], s.names = p, nil
	} else if now != before {
		w.shape.differs(before, now, s.stale)
		s.changed = true
	}
	s.deltas = append(s.deltas, deltas...)
}

// farewell notes that a cluster's objects are shown no more, or another cluster's in their place.
// There may have been none.
func (w *watching) farewell(former *part) {
	s := &w.shown
	s.changed = true
	for i := range s.stale {
		s.stale[i] = true
	}
	if former != nil {
		s.deltas = append(s.deltas, former.farewell()...)
	}
}

// show fills a struct, and reports whether it differs from the last one.
func (w *watching) show(into reflect.Value) (changed bool) {
	s := &w.shown
	if s.changed {
		parts := make([]clusterPart, 0, len(s.parts))
		for _, name := range s.inOrder() {
			parts = append(parts, clusterPart{name, s.parts[name].value})
		}
		next := reflect.New(w.shape.whole).Elem()
		w.shape.fill(next, parts, s.last, s.stale)
		w.report(next)
		s.last = next
		clear(s.stale)
	}
	w.shape.copy(into, s.last)
	if w.shape.deltas != nil {
		sortDeltas(s.deltas)
		into.FieldByIndex(w.shape.deltas).Set(reflect.ValueOf(slices.Clip(s.deltas)))
	}
	changed, s.changed, s.deltas = s.changed, false, nil
	w.handed(changed)
	return changed
}

// handed tells the witness of a client, if there is one, what the reader gets of several clusters.
// Those of the clusters' own watches know the rest.
func (w *watching) handed(changed bool) {
	s := &w.shown
	for i := 0; changed && s.witness == nil && i < len(s.names); i++ {
		if by := s.parts[s.names[i]].noted.witness; by != nil {
			s.witness = by(w.shape.whole.String())
		}
	}
	if s.witness == nil {
		return
	}
	d := collect.Delivery{Moment: collect.SameSnapshot}
	if changed {
		d.Moment = collect.NewSnapshot
	}
	for _, f := range w.shape.fields {
		d.Filled = append(d.Filled, collect.Filled{
			Query: w.shape.whole.FieldByIndex(f.index).Name, Value: s.last.FieldByIndex(f.index),
		})
	}
	lockorder.CallOut("Options.Witness")
	s.witness.Delivered(d)
}

// inOrder returns the names of the clusters that are shown.
func (s *shown) inOrder() []string {
	if s.names == nil {
		s.names = slices.Sorted(maps.Keys(s.parts))
	}
	return s.names
}

// report sets the fields of missing clusters and invalid objects.
func (w *watching) report(into reflect.Value) {
	s := &w.shown
	if w.shape.missing != nil {
		into.FieldByIndex(w.shape.missing).Set(reflect.ValueOf(s.missing))
	}
	if w.shape.invalid == nil {
		return
	}
	var all []Invalid
	for _, name := range s.inOrder() {
		for _, i := range s.parts[name].invalid {
			all = append(all, Invalid{name, i})
		}
	}
	into.FieldByIndex(w.shape.invalid).Set(reflect.ValueOf(slices.Clip(all)))
}

// missing returns the clusters that the snapshot lacks, or of which it may be outdated, by name.
func (w *watching) missing(parts []*part, lost []seated) (all []Missing) {
	s := &w.shown
	for _, l := range lost {
		_, was := s.parts[l.name]
		err := cmp.Or(l.err, errNoClient)
		all = append(all, Missing{Cluster: l.name, Shown: was, Since: l.since, Err: err, kind: err.Error()})
	}
	for _, p := range parts {
		name := p.cluster.name
		switch former := s.parts[name]; {
		case former == nil:
			kind, err := p.lacks()
			all = append(all, Missing{Cluster: name, Since: p.began, Err: err, kind: kind})
		case former != p:
			all = append(all, Missing{Cluster: name, Shown: true, Since: p.began, Err: errNotYet, kind: "another"})
		case p.trouble.Load() != nil:
			all = append(all, Missing{Cluster: name, Shown: true, Since: p.began, Err: *p.trouble.Load(), kind: "trouble"})
		default:
			if since, why := p.stale(); why != nil {
				all = append(all, Missing{Cluster: name, Shown: true, Since: since, Err: why, kind: "stale"})
			}
		}
	}
	slices.SortFunc(all, func(a, b Missing) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return slices.Clip(all)
}

// sameMissing reports whether two lists say the same. The texts of errors differ from attempt to
// attempt, and do not count.
func sameMissing(a, b []Missing) bool {
	return slices.EqualFunc(a, b, func(a, b Missing) bool {
		return a.Cluster == b.Cluster && a.Shown == b.Shown && a.Since.Equal(b.Since) && a.kind == b.kind
	})
}
