package partition

import (
	"maps"
	"slices"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

// keysMost is how many keys an inspection has.
const keysMost = 100

// Inspect returns what the partitions have and have done.
func (p *Partitions) Inspect() collect.Inspection {
	in := p.collector.Inspect()
	keys := p.scheduler.inspect()
	in.Keys = &keys
	return in
}

// Names returns the names of the objects of a query that turns are made from, in order. It returns
// nil if there is no such query.
func (p *Partitions) Names(query string) []object.Key {
	f := p.named(query)
	if f == nil {
		return nil
	}
	p.indexes.mu.Lock()
	keys := slices.AppendSeq(make([]object.Key, 0, len(f.Shown.objects)), maps.Keys(f.Shown.objects))
	p.indexes.mu.Unlock()
	slices.SortFunc(keys, object.Compare)
	return keys
}

// Examine returns what there is of an object of a query. It returns false if there is no such
// query.
func (p *Partitions) Examine(query string, key object.Key) (collect.Examined, bool) {
	f := p.named(query)
	e, ok := p.collector.Examine(query, key)
	if f == nil || !ok {
		return e, ok
	}
	p.indexes.mu.Lock()
	defer p.indexes.mu.Unlock()
	if held := f.Shown.objects[key]; held != nil {
		e.Shown, e.Err = held.row.Source, held.row.Err
	}
	return e, true
}

func (p *Partitions) named(query string) *field {
	all := p.collector.Fields()
	i := slices.IndexFunc(all, func(f *field) bool { return f.Name == query })
	if i < 0 {
		return nil
	}
	return all[i]
}

// inspect counts the keys by their states.
func (s *scheduler) inspect() collect.KeysInspection {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.agenda.Inspect(keysMost)
	keys := collect.KeysInspection{
		All: len(s.parts), Waiting: in.Waiting, Ready: in.Ready, Running: in.Running, Resting: in.Resting, ReadySince: in.ReadySince,
	}
	for _, one := range in.Some {
		keys.Some = append(keys.Some, collect.KeyInspection(one))
	}
	return keys
}

// LeftOut returns some of the objects of a query that turns leave out as invalid, in order.
func (p *Partitions) LeftOut(query string, most int) (all []tables.Invalid) {
	f := p.named(query)
	if f == nil {
		return nil
	}
	p.indexes.mu.Lock()
	if f.Shown.invalid > 0 {
		for _, held := range f.Shown.objects {
			if held.row.Err != nil {
				all = append(all, tables.Invalid{Query: query, Object: held.row.Source, Err: held.row.Err})
			}
		}
	}
	p.indexes.mu.Unlock()
	slices.SortFunc(all, func(a, b tables.Invalid) int { return object.Compare(object.KeyOf(a.Object), object.KeyOf(b.Object)) })
	return all[:min(len(all), most)]
}
