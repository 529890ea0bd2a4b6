package accumulator

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// modelChange is queries of a reader that were replaced together: their kinds, each with a number
// of its own, by slot.
type modelChange map[int]string

// replace replaces one, two or all queries of a reader at once. A change that waits already, and
// has one of them, is part of this one from now on.
func (m *model) replace(r *modelReader, s sim.Step) error {
	if r.inUpdate() {
		return nil
	}
	now := modelChange{}
	var waiting []modelChange
	for i := range r.slots {
		if r.isNew(i, s) {
			now[i] = m.want(r, i, s)
		}
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
	r.waiting = append(waiting, now)
	return r.atOnce(now)
}

// want draws the next query of a slot, and returns its kind.
func (m *model) want(r *modelReader, i int, s sim.Step) (kind string) {
	r.changes++
	q := m.queries[(s.A+i*(1+s.C/4))*modelStride%len(m.queries)]
	q.Name, q.Kind = modelFields[i], fmt.Sprintf("%s #%d", q.Kind, r.changes)
	r.wanted[i] = q
	return q.Kind
}

// removeAndAdd removes a query of a reader, and adds another one of its name.
func (m *model) removeAndAdd(r *modelReader, s sim.Step) error {
	i := s.C % len(r.slots)
	if r.inUpdate() {
		return nil
	}
	if err := r.a.Remove(context.Background(), modelFields[i]); err != nil {
		return err
	}
	r.slots[i].removed = true
	var waiting []modelChange
	for _, w := range r.waiting { // it is no part of them any more
		if delete(w, i); len(w) > 0 {
			waiting = append(waiting, w)
		}
	}
	now := modelChange{i: m.want(r, i, s)}
	if err := r.a.Add(context.Background(), r.wanted[i]); err != nil {
		return err
	}
	r.waiting = append(waiting, now)
	return r.atOnce(now)
}

// inUpdate reports whether an Update that is held up has a change take effect. Until it ends, the
// reader cannot say so.
func (r *modelReader) inUpdate() bool {
	return r.running != nil && slices.ContainsFunc(r.waiting, func(c modelChange) bool {
		effective, _ := r.effective(c)
		return effective
	})
}

// atOnce adopts a change that has taken effect at once.
func (r *modelReader) atOnce(c modelChange) error {
	effective, err := r.effective(c)
	if effective && err == nil {
		r.waiting = slices.DeleteFunc(r.waiting, func(w modelChange) bool { return maps.Equal(w, c) })
		r.adopt(c) // there was no snapshot to complete
	}
	return err
}

// isNew reports whether a step replaces a slot.
func (r *modelReader) isNew(i int, s sim.Step) bool {
	return (1+s.B)&(1<<i) != 0 || i == s.C%len(r.slots)
}

// effective reports whether a change has taken effect. A part of it alone must not.
func (r *modelReader) effective(c modelChange) (bool, error) {
	has := 0
	for i, kind := range c {
		if f := r.field(i); f != nil && f.Query.Query().Kind == kind {
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
		q := r.field(i).Query.Query()
		resource, _ := q.Resolve(context.Background())
		old := r.slots[i]
		r.queries[i], r.slots[i] = q, newSlot(resource, q)
		r.slots[i].replay, r.slots[i].anew = old.replay, true
		if r.past == nil {
			r.past = map[storedSlot]map[object.Key]int{}
		}
		r.past[storedSlot{i, old.resource}] = old.since
		if since := r.past[storedSlot{i, resource.Resource}]; since != nil {
			r.slots[i].since = since
		}
	}
}
