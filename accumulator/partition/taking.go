package partition

import (
	"context"

	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/snapshot"
)

// take takes the changes, and then returns a turn if there is one.
func (p *Partitions) take(ctx context.Context, then func() *Turn) (*Turn, error) {
	if err := p.collector.Enter(ctx); err != nil {
		return nil, err
	}
	defer p.collector.Leave()
	if !p.collector.Complete() || !p.takeIn() || then == nil {
		return nil, nil
	}
	return then(), nil
}

// next hands out the first ready key that has a reason for a turn.
func (p *Partitions) next() *Turn {
	if p.released.Swap(false) {
		p.scheduler.release()
	} else {
		p.ensureSignal()
	}
	for p.scheduler.pending() {
		if p.scheduler.isStale() {
			p.takeIn() // the next turn shows what was written before that moment (G4)
			p.ensureSignal()
		}
		if t := p.hand(); t != nil {
			return t
		}
	}
	return nil
}

// takeIn takes the changes. It returns false if there is no first snapshot yet.
func (p *Partitions) takeIn() bool {
	p.scheduler.taking()
	if !p.collector.Take(p.indexes.fields) {
		return false
	}
	p.advance()
	return true
}

// advance applies what was taken, and finds the keys that it changes.
func (p *Partitions) advance() {
	var invalid []snapshot.Invalid
	first, shared := !p.collector.Delivered(), false
	for i, f := range p.indexes.fields {
		b := f.Taken
		if f.Taken = (query.Batch{}); !b.OK {
			continue
		}
		turned := b.Absent == f.Shown.present
		f.Shown.present = !b.Absent
		moves := p.moves(i, b)
		p.indexes.apply(i, moves)
		lookup := p.indexes.lookup(i)
		if lookup {
			p.scheduler.consult(i, moves)
		} else {
			p.scheduler.place(i, moves)
		}
		p.scheduler.activateTouched(i, unmoved(b.Signals, moves), turned && !first)
		for _, s := range moves {
			shared = shared || !lookup && s.signal && (s.old.shared() || s.now.shared())
			if s.now != nil && s.now.row.Err != nil {
				invalid = append(invalid, snapshot.Invalid{Query: f.Name, Object: s.now.row.Source, Err: s.now.row.Err})
			}
		}
	}
	if shared {
		p.scheduler.activateFresh()
	}
	p.scheduler.forgetEmpty()
	p.collector.Deliver(1)
	p.collector.Report(invalid)
}

// ensureSignal makes sure that a signal follows if a key waits for one.
func (p *Partitions) ensureSignal() {
	if p.scheduler.waiting() {
		p.collector.Ensure()
	}
}
