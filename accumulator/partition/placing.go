package partition

import (
	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/snapshot"
)

// advance applies what was taken, and finds the keys that it changes.
func (p *Partitions) advance() {
	var invalid []snapshot.Invalid
	first, shared := !p.collector.Delivered(), false
	for i, f := range p.fields() {
		b := f.Taken
		if f.Taken = (query.Batch{}); !b.OK {
			continue
		}
		turned := b.Absent == f.Shown.present
		f.Shown.present = !b.Absent
		moves := p.moves(i, b)
		p.tables.Lock()
		f.Shown.apply(moves)
		p.tables.Unlock()
		if p.lookups[i] != nil {
			p.consult(i, moves)
		} else {
			p.place(i, moves)
		}
		p.activateTouched(i, unmoved(b.Signals, moves), turned && !first)
		for _, s := range moves {
			shared = shared || p.lookups[i] == nil && s.signal && (s.old.shared() || s.now.shared())
			if s.now != nil && s.now.row.Err != nil {
				invalid = append(invalid, snapshot.Invalid{Query: f.Name, Object: s.now.row.Source, Err: s.now.row.Err})
			}
		}
	}
	if shared {
		p.activateFresh()
	}
	p.forgetEmpty()
	p.collector.Deliver(1)
	p.collector.Report(invalid)
}

// activateTouched activates the partitions in which one of these objects of a field has changed, or, with
// all, every partition.
func (p *Partitions) activateTouched(i int, keys []stream.Key, all bool) {
	if len(keys) == 0 && !all {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := range p.agenda.running() {
		p.parts[e.key].shares[i].signal(keys)
	}
	for _, part := range p.parts {
		if all || part.touched(i, keys) {
			part.forced = part.forced || all
			p.activate(part)
		}
	}
}

// activateFresh activates all partitions, also those that a change for all of them has just made.
func (p *Partitions) activateFresh() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.parts {
		if part.fresh {
			p.activate(part)
		}
	}
}

// place hands the moves of a field to the partitions of these objects.
func (p *Partitions) place(i int, moves []moved) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range moves {
		var had, has []string
		if s.old != nil {
			had = s.old.keys
		}
		if s.now != nil {
			has = s.now.keys
		}
		for _, key := range has {
			if p.parts[key] == nil {
				p.parts[key] = &partition{entry: entry{key: key}, fresh: true, shares: make([]share, len(p.lookups))}
			}
			p.parts[key].count(i, 1)
		}
		for _, key := range had {
			p.parts[key].count(i, -1)
		}
		if s.old.shared() || s.now.shared() {
			for _, part := range p.parts {
				p.touch(part, i, s)
			}
		} else {
			for _, key := range had {
				p.touch(p.parts[key], i, s)
			}
			for _, key := range has {
				if !s.old.owned(key) {
					p.touch(p.parts[key], i, s)
				}
			}
		}
		for _, key := range had {
			if part := p.parts[key]; part.objects == 0 {
				p.losing = append(p.losing, part)
			}
		}
	}
}

// forgetEmpty forgets the partitions whose key no object has now. A partition that has lost an object
// of one field and got one of another has always been there, and stays due.
func (p *Partitions) forgetEmpty() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.losing {
		if p.parts[part.key] == part {
			p.emptied(part)
		}
	}
	p.losing, p.begun = nil, true
}

func (p *partition) count(i, n int) {
	p.objects += n
	p.shares[i].own += n
}

// touch is called with mu held.
func (p *Partitions) touch(part *partition, i int, s moved) {
	part.touch(i, s)
	if s.signal {
		p.activate(part)
	}
}

// emptied forgets a partition without objects, or makes its last turn due. Called with mu held.
func (p *Partitions) emptied(part *partition) {
	switch {
	case part.objects > 0:
	case part.owed:
		p.activate(part)
	default:
		p.forget(part)
	}
}

// forget is called with mu held.
func (p *Partitions) forget(part *partition) {
	p.unread(part)
	delete(p.parts, part.key)
	p.agenda.drop(&part.entry)
}
