package accumulator

import (
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/snapshot"

	"github.com/kates-go/kates/internal/object"
)

// Shares reports whether o is a value that the last snapshot shows, or points into one of its
// slices.
func (a *Accumulator) Shares(o any) bool {
	if a.keyed != nil && a.keyed.shows(o) {
		return true
	}
	a.reader.mu.Lock()
	defer a.reader.mu.Unlock()
	obj, isObject := o.(Object)
	for _, f := range a.fieldsNow() {
		if f.index != nil && (isObject && f.index.holds(obj) || f.index.shared.Contains(o)) {
			return true
		}
		if f.table == nil {
			continue
		}
		if f.table.Contains(o) {
			return true
		}
		if isObject {
			if row, ok := f.table.Get(object.KeyOf(obj)); ok && row.Value == snapshot.Value(o) {
				return true
			}
		}
	}
	return false
}

// shows reports whether o points into a slice of a partition's last turn. The index knows the
// elements of such slices.
func (p *Partitions) shows(o any) bool {
	fields := p.binding.SlicesOf(o)
	if fields == nil {
		return false // the usual case: o is an object, and slices hold pointers to objects
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.a.reader.mu.Lock()
	defer p.a.reader.mu.Unlock()
	for _, part := range p.parts {
		for _, i := range fields {
			if table := part.shares[i].table; table != nil && table.Contains(o) {
				return true
			}
		}
	}
	return false
}

// Of returns the accumulators of a set, in no particular order.
func Of(s *stream.Set) (all []*Accumulator) {
	for _, u := range s.Users() {
		if a, ok := u.(*Accumulator); ok {
			all = append(all, a)
		}
	}
	return all
}
