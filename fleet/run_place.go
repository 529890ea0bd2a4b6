package fleet

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/loops/attempts"
	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/kates"
)

// place is where the work for one name of a fleet is done: one piece at a time, each begins when
// the one before has ended.
//
//	hold ──▶ a cluster's loop ──▶ another cluster's ──▶ farewell ──▶ over
//
// The goroutine that follows the fleet alone uses now, phase, end and done. It may read known when
// done is closed. The other fields do not change.
type place struct {
	of     *many
	name   string
	known  keyed.Known   // of the piece of work that runs
	handle *kates.Handle // of the loop
	retry  chan struct{} // the cluster answers again
	now    work
	phase  Phase // of the cluster, as of the last look
	end    context.CancelFunc
	done   chan struct{} // closed when the work has ended
}

// work is what is to be done: the loop of a cluster, or farewell to the keys of one that is gone,
// or, if it is zero, nothing: the name has no cluster yet.
type work struct {
	cluster *Cluster
	gone    bool
}

func newPlace(m *many, name string) *place {
	p := &place{of: m, name: name, handle: new(kates.Handle), retry: make(chan struct{}, 1), end: func() {}, done: make(chan struct{})}
	close(p.done)
	return p
}

// turnTo ends the present work, and begins another when it has ended.
func (p *place) turnTo(ctx context.Context, w work) {
	if w == p.now {
		return
	}
	p.end()
	before, done := p.done, make(chan struct{})
	run := ctx
	ctx, end := context.WithCancelCause(run)
	p.now, p.done, p.end, p.phase = w, done, func() { end(errOtherWork) }, ""
	p.of.running.Go(func() {
		defer func() {
			close(done) // before the signal: tidy looks at it
			poke(p.of.idle)
		}()
		<-before
		p.do(run, ctx, w)
	})
}

// look tells a loop that could not start that its cluster answers again.
func (p *place) look() {
	if p.now.cluster == nil {
		return
	}
	phase := p.now.cluster.Health().Phase
	if phase == Up && p.phase != Up && p.phase != "" { // the work before began with no phase known
		poke(p.retry)
	}
	p.phase = phase
}

// over reports whether the cluster has left, and its keys have been told.
func (p *place) over() bool {
	select {
	case <-p.done:
		return p.now.gone && len(p.known.Keys()) == 0
	default:
		return false
	}
}

// do does a piece of work until ctx ends, which ends with the run.
func (p *place) do(run, ctx context.Context, w work) {
	switch {
	case ctx.Err() != nil:
	case w.cluster != nil:
		p.serve(ctx, w.cluster)
	case w.gone:
		p.farewell(run, ctx)
	}
}

// serve runs the loop of a cluster, again and again, until ctx ends or the cluster leaves.
func (p *place) serve(ctx context.Context, c *Cluster) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(c.ctx, end)()
	m := p.of
	of := keyed.OfCluster{
		Known: &p.known, Grace: m.grace, Log: m.log.WithValues("cluster", p.name),
		OfKey: func(key string, err error) error { return &KeyError{Key{p.name, key}, err} },
	}
	run, over := m.loop(p, c, append(m.plan.OfCluster(of), p.handle))
	defer over()
	policy := m.plan.Policy
	policy.OfKey = func(name string, err error) error { return &ClusterError{name, err} }
	tries := keyed.NewTries(&policy, of.Log, p.name)
	for ctx.Err() == nil {
		began := time.Now()
		var last error
		o, _ := tries.Call(ctx, time.Time{}, func(ctx context.Context) error {
			err := run(ctx)
			if ctx.Err() == nil && err == nil {
				err = errors.New("it has ended")
			}
			if ends(err) {
				last, err = err, nil
			}
			return err
		})
		if last != nil && (c.ctx.Err() == nil || !errors.Is(last, kates.ErrAborted)) {
			m.fail(last)
			return
		}
		if time.Since(began) > policy.Backoff.Most { // it has worked for a while
			tries = keyed.NewTries(&policy, of.Log, p.name)
		}
		keyed.Pause(ctx, o.Again, p.retry)
	}
}

// ends reports whether an error of one cluster's loop ends that of all clusters.
func ends(err error) bool {
	_, final := attempts.Final(err)
	return final || errors.Is(err, kates.ErrAborted) || errors.Is(err, attempts.ErrGoexit)
}

// bound calls a function for a key, as within does, and remembers the key. When the cluster leaves,
// farewell is called for each key that is remembered.
func (p *place) bound(ctx context.Context, c *Cluster, key string, call func(context.Context, Key) error) error {
	return p.within(ctx, c, func(ctx context.Context) error {
		p.known.Called(key)
		return call(ctx, Key{p.name, key})
	})
}

// within calls a function for a cluster. Its context ends, too, when the cluster leaves, or this
// replica does not lead any more. It does not call for a cluster that has left.
func (p *place) within(ctx context.Context, c *Cluster, call func(context.Context) error) error {
	if c.ctx.Err() != nil {
		return kates.Again(0)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	for _, outer := range []context.Context{c.ctx, p.of.lease} {
		defer context.AfterFunc(outer, func() { end(context.Cause(outer)) })()
	}
	err := call(ctx)
	if _, final := attempts.Final(err); err != nil && c.ctx.Err() != nil && !final {
		return kates.Again(0) // a consequence; what is to be done now is for others to say
	}
	return err
}

// errOtherWork is why the context of a piece of work ends when the place has other work to do.
var errOtherWork = errors.New("the place has other work to do")

// farewell calls for each key that there may be output of, until it has returned no error. The
// contexts of these calls end when the place has other work to do. When the run ends, these calls
// have the grace of all calls.
func (p *place) farewell(run, ctx context.Context) {
	var running atomic.Int64
	here, leave := context.WithCancel(p.of.lease)
	defer leave()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errOtherWork) {
			leave()
		}
	})()
	calls, stop := p.of.grace.Extend(run, here, func() bool { return running.Load() > 0 })
	if p.of.grace == nil {
		calls = ctx
	}
	defer func() {
		if err := stop(); err != nil {
			p.of.fail(err)
		}
	}()
	keys := p.known.Keys()
	workers := min(p.of.plan.Workers, len(keys))
	ends := make(chan error)
	for i := range workers {
		var mine []*owed
		for j := i; j < len(keys); j += workers {
			mine = append(mine, p.owed(keys[j]))
		}
		go attempts.Send(ends, func() error { return p.callUntilDone(ctx, calls, &running, mine) })
	}
	for range workers {
		if err := <-ends; err != nil {
			p.of.fail(err)
		}
	}
}

// owed is a key that has to be told that it is gone.
type owed struct {
	key   string
	tries *keyed.Tries
	due   time.Time
}

func (p *place) owed(key string) *owed {
	policy := p.of.plan.Policy
	policy.OfKey = func(key string, err error) error { return &KeyError{Key{p.name, key}, err} }
	log := p.of.log.WithValues("cluster", p.name, "key", key)
	tries := keyed.NewTries(&policy, log, key)
	tries.Calls = p.of.plan.Calls
	return &owed{key: key, tries: tries}
}

// callUntilDone calls for keys that are gone, in turn, until each call has succeeded, or ctx ends.
// Calls have a context of their own, and are counted while they run. An error ends the run.
func (p *place) callUntilDone(ctx, calls context.Context, running *atomic.Int64, left []*owed) error {
	defer func() {
		for _, o := range left {
			o.tries.Forget()
		}
	}()
	for len(left) > 0 {
		o := slices.MinFunc(left, func(a, b *owed) int { return a.due.Compare(b.due) })
		keyed.Pause(ctx, time.Until(o.due), nil)
		if ctx.Err() != nil {
			return nil
		}
		outcome, err := o.tries.Call(calls, o.due, func(ctx context.Context) error {
			running.Add(1)
			defer running.Add(-1)
			return p.of.farewell(ctx, Key{p.name, o.key})
		})
		switch {
		case outcome.Final:
			return err
		case outcome.Err == nil && !outcome.Requeue && !outcome.Cut:
			p.known.Gone(o.key)
			left = slices.DeleteFunc(left, func(other *owed) bool { return other == o })
		default:
			o.due = time.Now().Add(outcome.Again)
		}
	}
	return nil
}
