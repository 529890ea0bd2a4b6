package fleet

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/internal/doors"
	"github.com/kates-go/kates/internal/loops/attempts"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/internal/loops/lease"
	"github.com/kates-go/kates/kates"
)

// runPlan is what the options of a run over many clusters say.
type runPlan = keyed.FleetPlan[kates.RunOption, kates.Query]

// plan reads the options of a run of that name.
func (f *Fleet) plan(name string, log logr.Logger, options []kates.RunOption) (*runPlan, error) {
	read, err := doors.Fleet(doors.FleetRun{
		Home: f.options.Home, Clients: f.options.Client, Loops: &f.loops, Name: name, Log: log,
	}, options)
	if err != nil {
		return nil, err
	}
	return read.(*runPlan), nil
}

// many is a loop for each cluster of a fleet. One goroutine follows the fleet, and each name in it
// has a [place], where one piece of work is done at a time.
type many struct {
	fleet *Fleet
	plan  *runPlan
	log   logr.Logger
	// loop makes the loop of one cluster. run runs it until ctx ends, and again after errors. over
	// is called after the last run.
	loop func(p *place, c *Cluster, options []kates.RunOption) (run func(ctx context.Context) error, over func())
	// farewell is called for a key of a cluster that has left, if [place.bound] was called with it.
	farewell func(ctx context.Context, key Key) error

	grace   *keyed.Grace
	lease   context.Context // the contexts of calls end with it
	end     context.CancelCauseFunc
	aborted atomic.Pointer[error] // calls had to be cut short at the end
	running sync.WaitGroup
	idle    chan struct{} // a place has nothing to do any more
	trigger chan struct{} // all keys are to be called

	places map[string]*place // by name; of the goroutine that follows
}

// start runs until ctx, or the fleet, ends, or an error is permanent.
func (m *many) start(ctx context.Context, fail func(error) error) error {
	ctx, grace, stop, err := m.plan.Shutdown.Begin(ctx, m.log)
	if err != nil {
		return fail(err)
	}
	defer stop()
	defer m.plan.Calls.Begin()()
	m.grace, m.places = grace, make(map[string]*place)
	m.idle, m.trigger = make(chan struct{}, 1), make(chan struct{}, 1)
	err = m.plan.Standing(ctx, func() error {
		if m.plan.Election == nil {
			return m.lead(ctx, context.WithoutCancel(ctx))
		}
		return lease.Lead(ctx, *m.plan.Election, leading{m})
	})
	return endOf(ctx, err, fail)
}

// endOf is what a run returns: nil if its end was wanted.
func endOf(ctx context.Context, err error, fail func(error) error) error {
	if last, final := attempts.Final(err); final {
		return last
	}
	if errors.Is(ctx.Err(), context.Canceled) && !errors.Is(err, kates.ErrAborted) {
		return nil
	}
	return fail(err)
}

// leading is a run's work as that of a leader. A follower has no watches: those of the leader
// begin with fresh lists.
type leading struct{ of *many }

func (leading) Prepare(ctx context.Context) error       { return ctx.Err() }
func (leading) CatchUp(ctx context.Context) error       { return ctx.Err() }
func (l leading) Lead(ctx, lease context.Context) error { return l.of.lead(ctx, lease) }
func (leading) Follow(ctx context.Context, won <-chan struct{}) error {
	select {
	case <-won:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lead follows the fleet. The context named lease ends when this replica does not lead any more.
func (m *many) lead(ctx, lease context.Context) error {
	ctx, m.end = context.WithCancelCause(ctx)
	m.lease = lease
	changed, deaf := m.fleet.Listen()
	defer deaf()
	defer keyed.Listen(ctx, m.plan.Triggers, func() { poke(m.trigger) })()
	for ctx.Err() == nil {
		select {
		case <-changed:
			m.follow(ctx)
		case <-m.idle:
			m.tidy()
		case <-m.trigger:
			for _, p := range m.places {
				p.handle.TriggerAll()
			}
		case <-m.fleet.ctx.Done():
			m.end(kates.ErrClosed)
		case <-ctx.Done():
		}
	}
	m.running.Wait()
	cause := context.Cause(ctx)
	if err := m.aborted.Load(); err != nil {
		if _, final := attempts.Final(cause); !final {
			return *err
		}
	}
	return cause
}

// follow gives the work that is to be done now to each place.
func (m *many) follow(ctx context.Context) {
	if m.fleet.ctx.Err() != nil {
		return // nobody has left
	}
	seated, _ := m.fleet.seated()
	left := make(map[string]bool, len(m.places))
	for name := range m.places {
		left[name] = true
	}
	for _, s := range seated {
		delete(left, s.name)
		p := m.places[s.name]
		if p == nil {
			p = newPlace(m, s.name)
			m.places[s.name] = p
		}
		p.turnTo(ctx, work{cluster: s.cluster})
		p.look()
	}
	for name := range left {
		m.places[name].turnTo(ctx, work{gone: true})
	}
}

// tidy removes the places whose clusters have left, and whose keys have all been told.
func (m *many) tidy() {
	for name, p := range m.places {
		if p.over() {
			p.end()
			delete(m.places, name)
		}
	}
}

// fail ends the run with an error that no other try mends.
func (m *many) fail(err error) {
	if errors.Is(err, kates.ErrAborted) {
		m.aborted.CompareAndSwap(nil, &err)
	}
	m.end(err)
}

// poke sends a signal to a channel that holds one.
func poke(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}
