package partition

import (
	"context"
	"time"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/tables"
)

// take takes the changes, and then returns a turn if there is one.
func (p *Partitions) take(ctx context.Context, then func() *Turn) (*Turn, error) {
	if err := p.collector.Enter(ctx); err != nil {
		return nil, err
	}
	defer p.collector.Leave()
	if !p.collector.Complete() {
		return nil, nil
	}
	if ok, err := p.takeIn(); !ok || then == nil {
		return nil, err
	}
	return then(), nil
}

// next hands out the first ready key that has a reason for a turn.
func (p *Partitions) next() *Turn {
	p.releaseDue()
	for p.scheduler.pending() {
		if p.scheduler.isStale() {
			_, _ = p.takeIn() // the next turn shows what was written before that moment (G4)
			p.ensureSignal()
		}
		if t := p.hand(); t != nil {
			return t
		}
	}
	return nil
}

// releaseDue makes the keys ready that wait for a signal, if there was one, or makes sure that one
// follows. It returns no turn.
func (p *Partitions) releaseDue() *Turn {
	if p.released.Swap(false) {
		p.scheduler.release(p.signalled())
	} else {
		p.ensureSignal()
	}
	return nil
}

// takeIn takes the changes. It returns false if there is no first snapshot yet.
//
// The fields are taken one after the other. So a take may have a change of one field that concerns
// all partitions, and lack an earlier, quiet change of another field that makes a new key. After
// such a change takeIn takes a second time at once. Then the new key has a turn, too.
func (p *Partitions) takeIn() (ok bool, err error) {
	p.scheduler.taking()
	if err := p.collector.Advance(p.indexes.suitNow); err != nil {
		return false, err
	}
	if err := p.adapt(); err != nil {
		return false, err
	}
	for range 2 { // the keys of a change in the second take come with the next takeIn
		if !p.collector.Take(p.current) {
			return false, nil
		}
		if p.advance(); !p.torn || !p.quiet {
			break
		}
	}
	return true, nil
}

// advance applies what was taken, and finds the keys that it changes.
func (p *Partitions) advance() {
	var invalid []tables.Invalid
	first, shared := !p.collector.Delivered(), false
	for i, f := range p.indexes.fields {
		b := f.Taken
		if f.Taken = (query.Batch{}); !b.OK() {
			continue
		}
		turned := b.Absent == f.Present
		f.Present = !b.Absent
		moves := p.moves(i, b)
		p.indexes.apply(i, moves)
		lookup := p.indexes.lookup(i)
		if lookup {
			p.scheduler.consult(i, moves)
		} else {
			p.scheduler.place(i, moves, f.Query.Query().Shard.Field)
		}
		signals := b.Signals
		if b.Whole() { // all are, see query.Batch
			signals = p.scheduler.quiet(i)
		} else if b.Renews() { // so is what is gone
			signals = signalled(signals, moves)
		}
		late := unmoved(signals, moves)
		p.scheduler.signal(i, signals, reach(f.Shown.common))
		if turned && !first {
			p.scheduler.activateForced()
		}
		// Whether the object belonged to all partitions when it changed is not known any more.
		shared = shared || !lookup && len(late) > 0 && f.Shown.common
		for _, s := range moves {
			shared = shared || !lookup && s.signal && (s.old.shared() || s.now.shared())
			if s.now == nil {
				p.collector.Gone(f.Name, s.old.row.Source)
			}
			if s.now != nil && s.now.row.Err != nil {
				invalid = append(invalid, tables.Invalid{Query: f.Name, Object: s.now.row.Source, Err: s.now.row.Err})
			}
		}
	}
	if shared || p.torn && p.quiet {
		p.scheduler.activateFresh()
	}
	p.torn = shared
	p.scheduler.forgetEmpty()
	p.collector.Deliver(p.generation)
	p.collector.Report(invalid)
}

// ensureSignal makes sure that a signal follows if a key waits for one.
func (p *Partitions) ensureSignal() {
	if p.scheduler.agenda.Waiting() {
		p.collector.Ensure()
	}
}

// release notes that a worker has received a signal: waiting keys are ready since it was given.
// With a debounce the agenda has been told at that time.
func (p *Partitions) release() {
	if p.changed == nil {
		p.received.CompareAndSwap(0, p.collector.Signalled().UnixNano())
	}
	p.released.Store(true)
}

// signalled returns the time of the signal that was received, or now.
func (p *Partitions) signalled() time.Time {
	if at := p.received.Swap(0); at > 0 {
		return time.Unix(0, at)
	}
	return time.Now()
}
