package accumulator

import (
	"context"
	"fmt"

	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/internal/suite/sim"
)

// modelChange is queries of a reader that were replaced together: their kinds, each with a number
// of its own, by slot.
type modelChange map[int]string

// replace replaces one, two or all queries of a reader at once. A change that waits already, and
// has one of them, is part of this one from now on.
func (m *model) replace(r *modelReader, s sim.Step) error {
	now := modelChange{}
	var waiting []modelChange
	for i := range r.slots {
		if !r.isNew(i, s) {
			continue
		}
		r.changes++
		q := m.queries[(s.A+i*(1+s.C/4))*modelStride%len(m.queries)]
		q.Name, q.Kind = modelFields[i], fmt.Sprintf("%s #%d", q.Kind, r.changes)
		now[i] = q.Kind
		r.wanted[i] = q
	}
	for _, w := range r.waiting {
		overlaps := false
		for i := range w {
			overlaps = overlaps || now[i] != ""
		}
		if effective, _ := r.effective(w); effective || !overlaps {
			waiting = append(waiting, w)
			continue
		}
		for i, kind := range w {
			if now[i] == "" {
				now[i] = kind
			}
		}
	}
	var queries []query.Query
	for i := range now {
		if q := r.wanted[i]; r.isNew(i, s) {
			queries = append(queries, q)
		}
	}
	if err := r.a.Replace(context.Background(), queries...); err != nil {
		return err
	}
	if atOnce, err := r.effective(now); atOnce || err != nil {
		r.adopt(now) // there was no snapshot to complete
		return err
	}
	r.waiting = append(waiting, now)
	return nil
}

// isNew reports whether a step replaces a slot.
func (r *modelReader) isNew(i int, s sim.Step) bool {
	return (1+s.B)&(1<<i) != 0 || i == s.C%len(r.slots)
}

// effective reports whether a change has taken effect. A part of it alone must not.
func (r *modelReader) effective(c modelChange) (bool, error) {
	fields, has := r.a.collector.Fields(), 0
	for i, kind := range c {
		if fields[i].Query.Query().Kind == kind {
			has++
		}
	}
	if has > 0 && has < len(c) {
		return true, fmt.Errorf("of the queries %v, which were replaced together, %d have taken effect", c, has)
	}
	return has > 0, nil
}

// switched notes which changes an Update has shown.
func (r *modelReader) switched() error {
	var waiting []modelChange
	for _, c := range r.waiting {
		effective, err := r.effective(c)
		if err != nil {
			return err
		}
		if !effective {
			waiting = append(waiting, c)
			continue
		}
		r.adopt(c)
	}
	r.waiting = waiting
	return nil
}

// adopt notes that the queries of a change are those that are shown.
func (r *modelReader) adopt(c modelChange) {
	for i := range c {
		q := r.a.collector.Fields()[i].Query.Query()
		resource, _ := q.Resolve(context.Background())
		old := r.slots[i]
		r.queries[i], r.slots[i] = q, newSlot(resource, q)
		r.slots[i].replay, r.slots[i].anew = old.replay, true
		if old.resource == resource.Resource {
			r.slots[i].since = old.since
		}
	}
}
