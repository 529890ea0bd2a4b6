package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

// home is what a [HomeController] knows of the clusters of its fleet, whatever its types. One
// goroutine follows the fleet, and each cluster has two of its own: its watch, and one that has
// roots reconciled for its changes.
type home struct {
	fleet      *Fleet
	typ        reflect.Type // of what belongs to a root in one cluster
	fields     []field
	queries    []kates.Query
	trigger    func(keys ...string)
	triggerAll func()
	busy       atomic.Bool   // it runs
	moved      chan struct{} // a cluster may be complete
	view       atomic.Pointer[view]
}

// view is which clusters there are. It is not changed; another one replaces it.
type view struct {
	clusters map[string]*homeCluster
	lost     []seated
	known    bool // the sources have spoken
}

// errRunning: see [HomeController.Run].
var errRunning = errors.New("it runs already")

// run follows the fleet while reconcile runs, which begins when the clusters have had their time,
// and ends with the fleet.
func (h *home) run(ctx context.Context, reconcile func(context.Context) error) error {
	if !h.busy.CompareAndSwap(false, true) {
		return errRunning
	}
	defer h.busy.Store(false)
	h.view.Store(&view{})
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { h.follow(life, &running) })
	defer running.Wait()
	defer end()
	for {
		next, complete := h.begin(time.Now())
		if complete || ctx.Err() != nil {
			return h.within(ctx, reconcile)
		}
		wait := time.NewTimer(next)
		select {
		case <-h.moved:
		case <-wait.C:
		case <-ctx.Done():
		case <-h.fleet.ctx.Done():
			wait.Stop()
			return kates.ErrClosed
		}
		wait.Stop()
	}
}

// within ends reconcile with the fleet, too.
func (h *home) within(ctx context.Context, reconcile func(context.Context) error) error {
	life, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(h.fleet.ctx, end)()
	err := reconcile(life)
	if err == nil && ctx.Err() == nil && h.fleet.ctx.Err() != nil {
		return kates.ErrClosed
	}
	return err
}

// begin reports whether the first reconcile may begin, or else when to ask again at the latest.
func (h *home) begin(now time.Time) (next time.Duration, complete bool) {
	v := h.view.Load()
	next, complete = h.fleet.options.Probe, v.known && !slices.ContainsFunc(v.lost, func(s seated) bool { return s.err == nil })
	for _, c := range v.clusters {
		phase, left := c.part.cluster.Health().Phase, c.part.began.Add(h.fleet.options.Deadline).Sub(now)
		if !c.part.complete() && phase != Unreachable && phase != Stale && left > 0 {
			next, complete = min(next, left), false
		}
	}
	return next, complete
}

// follow gives each cluster of the fleet its watch, and has all roots reconciled when another
// cluster is missing.
func (h *home) follow(ctx context.Context, running *sync.WaitGroup) {
	members, stop := h.fleet.Listen()
	defer stop()
	look := time.NewTicker(h.fleet.options.Probe) // for what signals nothing: watches that lag
	defer look.Stop()
	said := ""
	for {
		select {
		case <-members:
			if h.fleet.ctx.Err() != nil {
				return // no cluster has left
			}
			h.update(ctx, running)
		case <-look.C:
		case <-ctx.Done():
			return
		}
		if now := h.state(); now != said {
			said = now
			poke(h.moved)
			h.triggerAll()
		}
	}
}

// update makes the clusters those of the fleet.
func (h *home) update(ctx context.Context, running *sync.WaitGroup) {
	former := h.view.Load()
	seated, known := h.fleet.seated()
	next := &view{clusters: make(map[string]*homeCluster), known: known}
	for _, s := range seated {
		if s.cluster == nil {
			next.lost = append(next.lost, s)
			continue
		}
		c := former.clusters[s.name]
		if c == nil || c.part.cluster != s.cluster {
			c = newHomeCluster(h, s.cluster)
			life, end := context.WithCancel(ctx)
			c.part.end = end
			running.Go(func() { c.part.run(life, h.typ, h.queries) })
			running.Go(func() { c.attend(life) })
		}
		up := s.cluster.Health().Phase == Up
		if up && !c.part.up {
			c.part.answers()
		}
		c.part.up = up
		next.clusters[s.name] = c
	}
	h.view.Store(next)
	for name, c := range former.clusters {
		if next.clusters[name] != c {
			c.part.end()
		}
	}
}

// state is a text that differs when a cluster has come or gone, or is missing in another way.
func (h *home) state() string {
	v := h.view.Load()
	var all []string
	for name, c := range v.clusters {
		all = append(all, fmt.Sprintf("%q %p", name, c))
		for _, m := range c.missing() {
			all[len(all)-1] += fmt.Sprint(m.Shown, m.Since, m.kind)
		}
	}
	for _, s := range v.lost {
		all = append(all, fmt.Sprintf("%q", s.name))
	}
	slices.Sort(all)
	return fmt.Sprint(v.known) + strings.Join(all, "\n")
}

// pulled is what belongs to a root in one cluster.
type pulled struct {
	value reflect.Value
	from  *homeCluster
}

// pull returns what belongs to a root now, by cluster, and the clusters that are missing. The roots
// to which new changes belong are reconciled next, but for the root of the key, if begins: its
// reconcile has only begun, and sees these changes.
func (h *home) pull(ctx context.Context, key string, uid types.UID, begins bool) (all map[string]pulled, missing []Missing, err error) {
	v := h.view.Load()
	all = make(map[string]pulled, len(v.clusters))
	if !v.known {
		missing = append(missing, Missing{Since: h.fleet.began, Err: h.notKnown()})
	}
	for _, s := range v.lost {
		missing = append(missing, Missing{Cluster: s.name, Since: s.since, Err: cmp.Or(s.err, errNoClient)})
	}
	for name, c := range v.clusters {
		value, err := c.pull(ctx, key, uid, begins)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			missing = append(missing, Missing{Cluster: name, Since: c.part.began, Err: err})
			continue
		}
		all[name] = pulled{value, c}
		missing = append(missing, c.missing()...)
	}
	slices.SortFunc(missing, func(a, b Missing) int { return strings.Compare(a.Cluster, b.Cluster) })
	return all, missing, nil
}

func (h *home) notKnown() error {
	if err := h.fleet.Ready(); err != nil {
		return err
	}
	return errors.New("which clusters there are was not known a moment ago")
}

// homeCluster is one cluster of a home controller.
type homeCluster struct {
	home *home
	part *part
	news chan struct{}
	turn chan struct{} // whoever holds it takes changes, and reads the index
	// gaveUpOn is the beginning of a time in which the cluster was stale. A write has waited in that
	// time as long as it may, without an answer. No other is sent in it; see refusesWrites.
	gaveUpOn atomic.Pointer[time.Time]
	// These belong to the turn.
	index []index // one for each field
	taken bool    // the first objects are in the index
}

func newHomeCluster(h *home, c *Cluster) *homeCluster {
	one := &homeCluster{home: h, news: make(chan struct{}, 1), turn: make(chan struct{}, 1), index: newIndex(h.fields)}
	one.part = &part{
		cluster: c, began: time.Now(), poke: func() { poke(one.news) }, retry: make(chan struct{}, 1),
	}
	return one
}

// attend has roots reconciled for the changes of the cluster.
func (c *homeCluster) attend(ctx context.Context) {
	for {
		select {
		case <-c.news:
		case <-ctx.Done():
			return
		}
		_ = c.take(ctx, "", func() {}) // it is part of the state
		poke(c.home.moved)
	}
}

// take takes the changes, and has the roots reconciled to which they belong, but for the root of
// one key. The first changes have all roots reconciled. then is called with the index as it is now.
func (c *homeCluster) take(ctx context.Context, but string, then func()) error {
	keys, first, err := c.inTurn(ctx, then)
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == but })
	switch {
	case first:
		c.home.triggerAll()
	case len(keys) > 0:
		c.home.trigger(keys...)
	}
	return err
}

// inTurn takes the changes, and returns the keys to which they belong. first: there were none
// before.
func (c *homeCluster) inTurn(ctx context.Context, then func()) (keys []string, first bool, err error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	defer func() { <-c.turn }()
	before := c.taken
	if keys, err = c.takeIn(ctx); err == nil {
		then()
	}
	return keys, c.taken && !before, err
}

// takeIn takes the changes. The turn is held.
func (c *homeCluster) takeIn(ctx context.Context) ([]string, error) {
	if !c.part.complete() {
		_, why := c.part.lacks()
		return nil, why
	}
	into, deltas := reflect.New(c.home.typ), []*kates.Delta(nil)
	changed, err := c.part.started.Load().UpdateWithDeltas(ctx, into.Interface(), &deltas)
	if err != nil {
		return nil, err
	}
	if !changed {
		return nil, nil
	}
	c.taken = true
	return c.home.sort(c.index, into.Elem(), deltas), nil
}

// pull takes the changes, and returns what belongs to a root, see [home.pull].
func (c *homeCluster) pull(ctx context.Context, key string, uid types.UID, begins bool) (value reflect.Value, err error) {
	but := ""
	if begins {
		but = key
	}
	err = c.take(ctx, but, func() { value = c.home.collect(c.index, key, uid) })
	return value, err
}

// missing says why the cluster is missing, if it is.
func (c *homeCluster) missing() []Missing {
	name := c.part.cluster.name
	if !c.part.complete() {
		kind, why := c.part.lacks()
		return []Missing{{Cluster: name, Since: c.part.began, Err: why, kind: kind}}
	}
	c.part.look(c.home.fleet.options.Deadline)
	if since, why := c.part.stale(); why != nil {
		return []Missing{{Cluster: name, Shown: true, Since: since, Err: why}}
	}
	return nil
}
