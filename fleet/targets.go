package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/kates"
)

// TargetOptions configure [Fleet.Targets]. The zero value is usable.
type TargetOptions struct {
	// Activate is called with the owners whose targets have changed: an object has come, changed or
	// gone, a target has become known or is not known any more, or its cluster has become stale or
	// has come back. A target that is known when Want returns has not changed: its owner reads it.
	// Fitting functions are the Trigger of a controller, and that of a [kates.Handle]. It is called
	// by one goroutine, without locks. While it runs, owners gather, each once, and nothing else
	// waits.
	Activate func(owners ...string)
	// Grace is how long something is watched that no owner needs any more. Default: 1 minute. A
	// negative one is none.
	Grace time.Duration
}

// Targets are what programs follow that learn from data, not from code, which objects of which
// kinds in which clusters matter to them. [Fleet.Targets] makes one. All methods are safe for
// concurrent use, and only Ensure and Close wait.
//
// An owner is a key of the program: that of a controller, for example. It says which targets it
// needs (Want, Ensure, Keep), reads them ([Reader]), and is activated when they change. Owners
// that have one target share its watch. There is one watch for each cluster and kind, which brings
// what all targets of that kind need:
//
//	its targets                                              lists and watches
//	all have a name or a selector, at most 8 different ones   one for each, in its namespace or in all
//	all have a namespace, at most 4 different ones            one for each namespace
//	others                                                    one of the whole kind
//
// When targets come and go, the watch changes without a gap: the new one is complete before the
// old one ends. It returns to a narrower row when half as much fits. Where the server refuses the
// wider watch (403), there are narrower ones: of the namespaces, then of the names. A target that
// is refused in every form holds up no other one. What is refused is tried again after a time,
// which grows from one minute to five. A kind that is named in two ways (deploy, deployments.apps)
// is planned twice; equal lists and watches are shared all the same.
//
// A cluster that is not in the fleet, a kind that is not served, and a start that fails are tried
// again with pauses that grow, each cluster and kind for itself. [Targets.Status] says what is
// wrong. If a cluster comes again, or another one under its name, its targets live again.
type Targets struct {
	fleet *Fleet
	TargetOptions
	ctx  context.Context
	end  context.CancelFunc
	done chan struct{} // closed when all goroutines have ended
	wake chan struct{} // there are watches to run
	tell chan struct{} // there are owners to activate

	mu      lockorder.Mutex[lockorder.Targets]
	owners  map[string]map[Target]*targetWatch
	watches map[watchKey]*targetWatch
	begun   []*targetWatch // do not run yet
	active  map[string]struct{}
}

// watchKey says what one watch is of.
type watchKey struct{ cluster, kind string }

// Targets makes a set of targets on the fleet's clusters. It lives until its Close, or that of the
// fleet. A fleet may have several.
func (f *Fleet) Targets(o TargetOptions) *Targets {
	if o.Grace == 0 {
		o.Grace = time.Minute
	}
	t := &Targets{
		fleet: f, TargetOptions: o,
		done: make(chan struct{}), wake: make(chan struct{}, 1), tell: make(chan struct{}, 1),
		owners: make(map[string]map[Target]*targetWatch), watches: make(map[watchKey]*targetWatch),
		active: make(map[string]struct{}),
	}
	t.ctx, t.end = context.WithCancel(f.ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil {
		close(t.done)
		return t
	}
	f.running.Go(t.run)
	return t
}

// Want adds a target to what an owner needs. It does not wait: the reader says what is known. The
// error is about a target that makes no sense, or says that the targets are closed
// ([kates.ErrClosed]); then nothing changes.
func (t *Targets) Want(owner string, target Target) (*Reader, error) {
	checked, err := check(target)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		err = t.ended()
	}
	if err != nil {
		return nil, fmt.Errorf("want %s: %w", target, err)
	}
	t.add(owner, checked)
	return &Reader{t, owner, target}, nil
}

// Ensure is Want, and waits until the target is known. If that is held up, it returns at once with
// what is wrong: the cluster is not in the fleet or does not answer, it does not serve the kind,
// or refuses. It returns when ctx ends, too. The error then is [ErrNotKnown]. The reader is
// returned all the same: the target stays wanted, and its owner is activated when it is known.
func (t *Targets) Ensure(ctx context.Context, owner string, target Target) (*Reader, error) {
	r, err := t.Want(owner, target)
	if err != nil {
		return nil, err
	}
	for {
		news, err := r.progress()
		if err == nil || news == nil {
			return r, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return r, fmt.Errorf("%w: %w", err, ctx.Err())
		case <-t.ctx.Done():
		}
	}
}

// Keep sets exactly what an owner needs: what it needed before, and is not among the targets, is
// dropped. It returns a reader for each of them, and does not wait. The errors are those of Want.
func (t *Targets) Keep(owner string, targets ...Target) ([]*Reader, error) {
	all, kept := make([]wanted, len(targets)), make(map[Target]bool)
	for i, target := range targets {
		var err error
		if all[i], err = check(target); err != nil {
			return nil, fmt.Errorf("keep %s: %w", target, err)
		}
		kept[target] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ended(); err != nil {
		return nil, fmt.Errorf("keep targets of %q: %w", owner, err)
	}
	readers := make([]*Reader, len(targets))
	for i, target := range targets {
		t.add(owner, all[i])
		readers[i] = &Reader{t, owner, target}
	}
	t.drop(owner, func(target Target) bool { return !kept[target] })
	return readers, nil
}

// Drop says that an owner needs nothing any more. Its readers return [ErrTargetDropped] from now
// on.
func (t *Targets) Drop(owner string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(owner, func(Target) bool { return true })
}

// Close ends all watches, and waits until nothing runs any more. Readers return [kates.ErrClosed].
func (t *Targets) Close() {
	t.end()
	<-t.done
}

// ended returns an error after the end.
func (t *Targets) ended() error {
	if t.ctx.Err() != nil {
		return kates.ErrClosed
	}
	return nil
}

// add adds a target to what an owner needs. mu is held.
func (t *Targets) add(owner string, of wanted) {
	key := watchKey{of.target.Cluster, of.target.Kind}
	w := t.watches[key]
	if w == nil {
		w = newTargetWatch(t, key)
		t.watches[key] = w
		t.begun = append(t.begun, w)
		poke(t.wake)
	}
	if t.owners[owner] == nil {
		t.owners[owner] = make(map[Target]*targetWatch)
	}
	t.owners[owner][of.target] = w
	w.add(owner, of)
}

// drop removes some of what an owner needs. mu is held.
func (t *Targets) drop(owner string, which func(Target) bool) {
	for target, w := range t.owners[owner] {
		if which(target) {
			delete(t.owners[owner], target)
			w.drop(owner, target)
		}
	}
	if len(t.owners[owner]) == 0 {
		delete(t.owners, owner)
	}
}

// watchFor returns the watch that has an owner's target.
func (t *Targets) watchFor(owner string, target Target) (*targetWatch, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ended(); err != nil {
		return nil, err
	}
	if w := t.owners[owner][target]; w != nil {
		return w, nil
	}
	return nil, ErrTargetDropped
}

// retire ends a watch that no target needs. Nobody gets it from then on.
func (t *Targets) retire(w *targetWatch) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.needed() {
		return false
	}
	delete(t.watches, w.key)
	return true
}

// run runs the watches, and tells them of the fleet's clusters.
func (t *Targets) run() {
	defer close(t.done)
	var running sync.WaitGroup
	defer running.Wait()
	defer t.end()
	running.Go(t.activating)
	changed, stop := t.fleet.Listen()
	defer stop()
	for {
		select {
		case <-t.wake:
			t.mu.Lock()
			begun := t.begun
			t.begun = nil
			t.mu.Unlock()
			for _, w := range begun {
				running.Go(w.run)
			}
		case <-changed:
			for _, w := range t.all() {
				w.look()
			}
		case <-t.ctx.Done():
			return
		}
	}
}

// all returns the watches.
func (t *Targets) all() []*targetWatch {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*targetWatch, 0, len(t.watches))
	for _, w := range t.watches {
		all = append(all, w)
	}
	return all
}

// activate notes owners whose targets have changed.
func (t *Targets) activate(owners map[string]struct{}) {
	if len(owners) == 0 || t.Activate == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for owner := range owners {
		if t.owners[owner] != nil {
			t.active[owner] = struct{}{}
		}
	}
	poke(t.tell)
}

// errNoCluster: no cluster of that name is in the fleet now.
var errNoCluster = errors.New("there is no such cluster in the fleet")
