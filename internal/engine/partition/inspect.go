package partition

import (
	"cmp"
	"maps"
	"slices"
	"strings"

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
func (s *scheduler) inspect() (in collect.KeysInspection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.agenda
	in.All, in.Waiting = len(s.parts), int(a.backlog.Load())
	in.Ready, in.Running, in.Resting = a.queue.length(), a.active.length, len(a.rests)
	for _, list := range []keyList{a.queue.own, a.queue.common} {
		if e := list.first; e != nil && (in.ReadySince.IsZero() || e.since.Before(in.ReadySince)) {
			in.ReadySince = e.since
		}
	}
	for e := range a.active.all {
		in.Some = append(in.Some, e.inspect())
	}
	rests := make([]*entry, 0, len(a.rests))
	for _, e := range a.rests {
		rests = append(rests, e)
	}
	slices.SortFunc(rests, func(x, y *entry) int {
		return cmp.Or(-cmp.Compare(x.failures, y.failures), strings.Compare(x.key, y.key))
	})
	for _, e := range rests[:min(len(rests), keysMost)] {
		in.Some = append(in.Some, e.inspect())
	}
	for _, list := range []keyList{a.queue.own, a.queue.common} {
		for e := list.first; e != nil && len(in.Some) < keysMost; e = e.after {
			in.Some = append(in.Some, e.inspect())
		}
	}
	in.Some = in.Some[:min(len(in.Some), keysMost)]
	return in
}

func (e *entry) inspect() collect.KeyInspection {
	in := collect.KeyInspection{Key: e.key, State: e.state.String(), Since: e.since, Failures: e.failures}
	if e.state.runs() {
		in.State = keyRunning.String()
	}
	if e.state == keyResting {
		in.Until = e.notBefore
	}
	return in
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
