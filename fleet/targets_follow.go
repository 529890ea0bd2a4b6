package fleet

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kates-go/kates/internal/engine/plan"
	"github.com/kates-go/kates/kates"
)

// run follows the targets until there are none, or all ends. It is the goroutine of the watch.
func (w *targetWatch) run() {
	for failures := 0; w.targets.ctx.Err() == nil; {
		c, err := w.targets.fleet.Cluster(w.key.cluster), errNoCluster
		if c != nil && c.ctx.Err() == nil {
			err = w.follow(c)
		}
		var pause time.Duration
		switch {
		case err == nil:
			failures = 0
		case errors.Is(err, errNoCluster):
			w.report(err, 0)
			pause = retries.First
		default:
			failures++
			w.report(err, failures)
			pause = retries.After(failures)
		}
		if !w.rest(c, err, pause) {
			return
		}
	}
}

// rest waits before the next attempt: for a time, or until there is another cluster. It returns
// false if no target is left.
func (w *targetWatch) rest(c *Cluster, err error, pause time.Duration) bool {
	end := time.Now().Add(pause)
	for {
		next := w.expire()
		if !w.needed() && w.targets.retire(w) {
			return false
		}
		left := time.Until(end)
		switch now := w.targets.fleet.Cluster(w.key.cluster); {
		case err == nil, now != c, c != nil && left <= 0:
			return true
		case c != nil:
			next = sooner(next, left)
		}
		if !w.wait(w.targets.ctx, nil, next) {
			return false
		}
	}
}

// wait waits for a signal, or a time; 0 is for ever. It returns false at the end, of the context
// or of the accumulator whose signals they are.
func (w *targetWatch) wait(ctx context.Context, signals <-chan struct{}, d time.Duration) bool {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-w.wake:
	case <-timer:
	case _, open := <-signals:
		return open
	case <-ctx.Done():
		return false
	}
	return ctx.Err() == nil
}

// sooner returns the shorter of two times, of which 0 is for ever.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// follow follows the targets in a cluster, until it leaves or no target is left.
func (w *targetWatch) follow(c *Cluster) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	defer context.AfterFunc(w.targets.ctx, cancel)()
	w.meet(c)
	defer w.leave()
	start, done := context.WithTimeout(ctx, w.startTimeout())
	mapping, err := c.client.Mapping(start, w.key.kind)
	done()
	if err == nil {
		w.fit(mapping.Scope.Name() == meta.RESTScopeNameNamespace)
		err = (&follower{w: w, client: c.client, ctx: ctx}).run()
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// startTimeout is how long the start of a watch may take.
func (w *targetWatch) startTimeout() time.Duration { return 3 * w.targets.fleet.options.Timeout }

// meet notes the cluster.
func (w *targetWatch) meet(c *Cluster) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cluster, w.phase = c, c.Health().Phase
	if errors.Is(w.problem.err, errNoCluster) {
		w.problem = problem{}
	}
	w.changed()
}

// fit notes how the kind is served.
func (w *targetWatch) fit(namespaced bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.scope = scope{known: true, namespaced: namespaced}
	for _, is := range w.wanted {
		w.plan(is)
	}
	w.changed()
}

// idle ends what is shown if there are no targets. It does both at once: a target that is wanted
// next is not known before the next accumulator is complete. The caller closes the former one.
func (w *targetWatch) idle() (former *following, idle bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wanted) > 0 {
		return nil, false
	}
	former = w.following
	w.following, w.objects = nil, objects{}
	w.schedule.Restart()
	return former, true
}

// leave ends what is shown.
func (w *targetWatch) leave() {
	w.mu.Lock()
	f := w.following
	var owners map[string]struct{}
	if w.schedule.Present().Level != plan.None {
		owners = w.everyone()
	}
	w.following, w.cluster, w.objects, w.scope = nil, nil, objects{}, scope{}
	w.schedule.Restart()
	w.schedule.Forgive()
	w.changed()
	w.mu.Unlock()
	f.close()
	w.targets.activate(owners)
}

// report notes what is wrong, and tells the owners when something goes wrong or is well again.
func (w *targetWatch) report(err error, failures int) {
	w.mu.Lock()
	was := w.problem
	w.problem = problem{err: err, failures: failures, since: was.since}
	if was.err == nil {
		w.problem.since = time.Now()
	}
	var owners map[string]struct{}
	if (err == nil) != (was.err == nil) {
		owners = w.everyone()
		w.changed()
	}
	w.mu.Unlock()
	if err != nil && was.err == nil && !errors.Is(err, errNoCluster) {
		w.targets.fleet.log.Error(err, "targets cannot be watched now", "cluster", w.key.cluster, "kind", w.key.kind)
	}
	w.targets.activate(owners)
}

// follower keeps one watch as the plan says. It belongs to the goroutine of the watch.
type follower struct {
	w      *targetWatch
	client *kates.Client
	ctx    context.Context

	poll     time.Duration // until the next look at a plan that waits
	began    time.Time     // when the newest plan was started
	failures int           // of changes of the plan, in a row
	notYet   time.Time     // no change before that
	refusals refusals
}

const (
	firstPoll = 10 * time.Millisecond
	mostPoll  = time.Second
	// idlePoll is how often the state of a watch is looked at, of which there is no signal.
	idlePoll = 10 * time.Second
	// overdueAfter is how long a plan is waited for before another one may replace it.
	overdueAfter = 10 * time.Second
)

func (a *follower) run() error {
	for {
		next := a.w.expire()
		if f, idle := a.w.idle(); idle {
			f.close()
			return nil
		}
		if err := a.start(); err != nil {
			return err
		}
		a.w.take()
		pause, again := a.inspect()
		if again {
			continue
		}
		if !a.w.wait(a.ctx, a.signals(), sooner(next, pause)) {
			return a.ended()
		}
	}
}

// signals are those of the accumulator, if there is one.
func (a *follower) signals() <-chan struct{} {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if a.w.following == nil {
		return nil
	}
	return a.w.following.acc.Changed()
}

// ended returns why the accumulator has ended, if it was not this watch that ended it.
func (a *follower) ended() error {
	if a.ctx.Err() != nil {
		return nil
	}
	return errors.New("the cluster's client has ended its watches")
}

// start starts the next plan, if there is one.
func (a *follower) start() error {
	if time.Until(a.notYet) > 0 {
		return nil
	}
	w := a.w
	w.mu.Lock()
	p, ok := w.schedule.Next()
	if !ok {
		if !w.schedule.Waiting() {
			a.failures = 0 // the change that has failed is not needed any more
		}
		w.mu.Unlock()
		return nil
	}
	f := w.following
	replaces := f != nil && w.schedule.Present().Level != plan.None
	if replaces {
		f.plans, f.starting = f.plans+1, true
	} else {
		w.following = nil
		w.schedule.Restart()
	}
	lost := w.begin(p)
	w.mu.Unlock()
	w.targets.activate(lost)
	a.began, a.poll = time.Now(), firstPoll
	if !replaces {
		return a.open(f, queryOf(w.key.kind, p))
	}
	a.replace(f, queryOf(w.key.kind, p))
	return nil
}

// begin notes that a plan is started. It returns the owners of targets that it leaves out: they
// are not known any more. mu is held.
func (w *targetWatch) begin(p plan.Plan) (lost map[string]struct{}) {
	var known []*wanted
	for _, is := range w.wanted {
		if w.schedule.Known(is.target.planned()) {
			known = append(known, is)
		}
	}
	w.schedule.Start(p)
	lost = make(map[string]struct{})
	for _, is := range known {
		if !w.schedule.Known(is.target.planned()) {
			is.addOwners(lost)
		}
	}
	return lost
}

// open opens a watch. Nothing was shown before.
func (a *follower) open(old *following, q kates.Query) error {
	old.close()
	// The context bounds the watch, too, so it ends early only if the start takes too long.
	ctx, cancel := context.WithCancel(a.ctx)
	late := time.AfterFunc(a.w.startTimeout(), cancel)
	acc, err := a.client.Watch(ctx, q)
	if !late.Stop() && err == nil {
		acc.Close()
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return err
	}
	a.w.mu.Lock()
	a.w.following = &following{acc: acc, cancel: cancel, plans: 1}
	a.w.mu.Unlock()
	return nil
}

// replace replaces what the watch is of. What was shown before goes on until the new one is
// complete, and for good if this fails.
func (a *follower) replace(f *following, q kates.Query) {
	ctx, cancel := context.WithTimeout(a.ctx, a.w.startTimeout())
	defer cancel()
	err := f.acc.Replace(ctx, q)
	a.w.mu.Lock()
	f.starting = false
	if err != nil {
		a.w.schedule.Failed()
	}
	a.w.mu.Unlock()
	if err == nil {
		a.failures = 0
		return
	}
	a.failures++
	a.notYet = time.Now().Add(retries.After(a.failures))
	if a.ctx.Err() == nil {
		a.w.report(err, a.failures)
	}
}
