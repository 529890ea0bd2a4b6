package fleet

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/plan"
	"github.com/kates-go/kates/kates"
)

// targetWatch is the watch of one kind in one cluster, for all targets there. One goroutine, run,
// looks after it.
type targetWatch struct {
	targets *Targets
	key     watchKey
	wake    chan struct{} // targets have changed, or the cluster
	turn    chan struct{} // holds a value while somebody takes what is new

	mu      lockorder.Mutex[lockorder.TargetWatch]
	wanted  map[Target]*wanted
	index   targetIndex
	cluster *Cluster // whose objects are shown; nil: nothing is
	phase   Phase    // of the cluster, when the owners were told of it last
	scope   scope    // of the kind
	// schedule has the targets that fit the scope, once that is known.
	schedule  plan.Schedule
	following *following // nil: no watch runs
	objects   objects    // what the watch shows
	problem   problem
	news      chan struct{} // closed, and made anew, when what is known has changed
}

// scope is how a cluster serves a kind.
type scope struct{ known, namespaced bool }

// objects are what a watch has shown at one moment.
type objects = kates.Lookup[*kates.Unstructured]

// following is one accumulator. Its snapshot belongs to the turn, and its other fields to the lock
// of the watch.
type following struct {
	acc    *kates.Accumulator
	cancel context.CancelFunc // of the accumulator's context
	snap   struct{ Objects objects }
	// plans is how many plans were started. While starting, the newest one is not in force yet.
	plans    int
	starting bool
}

// problem is what is wrong with a watch.
type problem struct {
	err      error
	failures int       // of starts, in a row
	since    time.Time // of the first one
}

// known is what is known of a target.
type known struct {
	objects  objects
	selector labels.Selector
}

func newTargetWatch(t *Targets, key watchKey) *targetWatch {
	return &targetWatch{
		targets: t, key: key, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		wanted: make(map[Target]*wanted), index: newTargetIndex(), news: make(chan struct{}),
	}
}

// add adds an owner of a target.
func (w *targetWatch) add(owner string, of wanted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := w.wanted[of.target]
	if is == nil {
		is = &of
		is.owners = make(map[string]struct{})
		w.wanted[of.target] = is
		w.index.add(is)
		if w.scope.known {
			w.plan(is)
		}
		poke(w.wake)
	}
	is.owners[owner], is.idle = struct{}{}, time.Time{}
}

// plan adds a target to the plan, if it makes sense for the kind. mu is held.
func (w *targetWatch) plan(is *wanted) {
	if is.fit(w.scope.namespaced); is.unfit == nil {
		w.schedule.Want(is.target.planned())
	} else {
		w.schedule.Forget(is.target.planned())
	}
}

// drop removes an owner of a target. The target stays for a while.
func (w *targetWatch) drop(owner string, target Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := w.wanted[target]
	delete(is.owners, owner)
	if len(is.owners) == 0 {
		is.idle = time.Now()
		poke(w.wake)
	}
}

// needed reports whether there are targets.
func (w *targetWatch) needed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wanted) > 0
}

// expire removes the targets that no owner has needed for a while. It returns how long it is until
// the next one; 0 if there is none.
func (w *targetWatch) expire() (next time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for target, is := range w.wanted {
		if len(is.owners) > 0 {
			continue
		}
		left := w.targets.Grace - time.Since(is.idle)
		if left <= 0 {
			delete(w.wanted, target)
			w.index.remove(is)
			w.schedule.Forget(target.planned())
		} else if next == 0 || left < next {
			next = left
		}
	}
	return next
}

// read returns what is known of a target. The error says why it is not known. The channel is
// closed when that may have changed; it is nil if something is wrong that holds it up.
func (w *targetWatch) read(target Target) (k known, news <-chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := w.wanted[target]
	if is == nil {
		return k, nil, ErrTargetDropped
	}
	if w.following != nil && is.unfit == nil && w.schedule.Known(target.planned()) {
		return known{w.objects, is.selector}, nil, nil
	}
	switch {
	case is.unfit != nil:
		return k, nil, fmt.Errorf("%w: %w", ErrNotKnown, is.unfit)
	case w.problem.err != nil:
		return k, nil, fmt.Errorf("%w: %w", ErrNotKnown, w.problem.err)
	case w.scope.known && !w.schedule.Chosen().Covers(target.planned()):
		return k, nil, fmt.Errorf("%w: %w", ErrNotKnown, errRefused)
	}
	if w.cluster != nil {
		if h := w.cluster.Health(); h.Error != "" {
			return k, nil, fmt.Errorf("%w: the cluster does not answer: %s", ErrNotKnown, h.Error)
		}
	}
	return k, w.news, fmt.Errorf("%w: its watch is not complete", ErrNotKnown)
}

// stale reports whether what is shown may be old.
func (w *targetWatch) stale() (since time.Time, stale bool) {
	w.mu.Lock()
	c, f := w.cluster, w.following
	w.mu.Unlock()
	if c == nil || f == nil {
		return time.Time{}, false
	}
	if h := c.Health(); h.Phase == Stale {
		return h.Since, true
	}
	if s := f.state(); s.State != kates.StateSynced && !s.Changing {
		return s.Heard, true
	}
	return time.Time{}, false
}

// trouble returns what is wrong though the target is known.
func (w *targetWatch) trouble() error {
	w.mu.Lock()
	c, err := w.cluster, w.problem.err
	w.mu.Unlock()
	if c == nil || err != nil {
		return err
	}
	if h := c.Health(); h.Phase == Stale {
		return fmt.Errorf("the cluster is stale since %s: %s", h.Since.Format(time.RFC3339), h.Error)
	}
	return nil
}

// changed tells those who wait that what is known may have changed. mu is held.
func (w *targetWatch) changed() {
	close(w.news)
	w.news = make(chan struct{})
}

// everyone returns the owners of all targets. mu is held.
func (w *targetWatch) everyone() map[string]struct{} {
	all := make(map[string]struct{})
	for _, is := range w.wanted {
		is.addOwners(all)
	}
	return all
}

func (is *wanted) addOwners(all map[string]struct{}) {
	for owner := range is.owners {
		all[owner] = struct{}{}
	}
}

// look looks at how the cluster is doing, and tells the owners if it has become stale or has come
// back.
func (w *targetWatch) look() {
	now := w.targets.fleet.Cluster(w.key.cluster)
	w.mu.Lock()
	c := w.cluster
	if c != now {
		poke(w.wake)
	}
	w.mu.Unlock()
	if c == nil {
		return
	}
	phase := c.Health().Phase
	w.mu.Lock()
	var owners map[string]struct{}
	if w.cluster == c && w.phase != phase {
		w.phase, owners = phase, w.everyone()
		w.changed()
	}
	w.mu.Unlock()
	w.targets.activate(owners)
}

// close ends the accumulator, if there is one.
func (f *following) close() {
	if f != nil {
		f.acc.Close()
		f.cancel()
	}
}

// state returns the state of the watch.
func (f *following) state() kates.QueryStatus { return f.acc.Status().Queries[0] }
