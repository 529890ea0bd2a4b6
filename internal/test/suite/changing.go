package suite

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

// changingScenarios change several queries of a watch that runs.
var changingScenarios = []scenario{
	{"G1QueriesThatAreReplacedTogetherChangeInOneSnapshot", replacedTogether},
	{"G1NoCallOfRunEachHasSomeOfTheNewAndSomeOfTheOldQueries", replacedEach},
	{"AHandleChangesTheQueriesOfARunAndHasItsFunctionCalled", handledRun},
}

// routed is what a proxy reads: routes and what they need.
type routed struct {
	ConfigMaps []*corev1.ConfigMap
	Secrets    []*corev1.Secret
	Deltas     []*kates.Delta
}

// torn reports whether a namespace is there with one kind, and not with the other.
func (s *routed) torn() bool {
	routes, needs := map[string]bool{}, map[string]bool{}
	for _, c := range s.ConfigMaps {
		routes[c.Namespace] = true
	}
	for _, c := range s.Secrets {
		needs[c.Namespace] = true
	}
	for ns := range routes {
		if !needs[ns] {
			return true
		}
	}
	return len(routes) != len(needs)
}

// routes makes two namespaces with an object of each kind.
func (e *env) routes() {
	e.makeNamespaces("-1", "-2")
	for _, n := range []string{"-1", "-2"} {
		route, need := e.in(e.ns+n, "route"+n, "app", "x"), e.secret("need"+n)
		need.Namespace, need.Labels = e.ns+n, map[string]string{"app": "x"}
		e.foreignCreate(route, need)
	}
}

// over are the queries of both kinds over some of these namespaces.
func (e *env) over(key kates.Key, namespaces ...string) (all []kates.Query) {
	for _, name := range []string{"ConfigMaps", "Secrets"} {
		q := kates.Query{Name: name, LabelSelector: "app=x", Key: key}
		for _, n := range namespaces {
			q.Namespaces = append(q.Namespaces, e.ns+n)
		}
		all = append(all, q)
	}
	return all
}

func replacedTogether(t *testing.T, e *env) {
	e.routes()
	snapshots := watch[routed](e, e.client, e.over(kates.Key{}, "-1")...)
	var snap routed
	awaitFirst(t, snapshots, &snap)
	for _, namespaces := range [][]string{{"-1", "-2"}, {"-2"}, {"-1"}, {"-2", "-1"}} {
		require.NoError(t, snapshots.Replace(e.ctx, e.over(kates.Key{}, namespaces...)...))
		require.NoError(t, e.client.Create(e.ctx, e.in(e.ns+"-1", "own", "app", "x"), nil))
		own := func() bool { return slices.Contains(names(snap.ConfigMaps), "own") }
		first := slices.Contains(namespaces, "-1")
		_, err := snapshots.Update(e.ctx, &snap)
		require.NoError(t, err)
		switched := func(s *routed) bool {
			assert.False(t, s.torn(), "%v / %v", names(s.ConfigMaps), names(s.Secrets))
			return len(s.Secrets) == len(namespaces) && s.Secrets[0].Namespace == e.ns+slices.Min(namespaces)
		}
		if !switched(&snap) {
			await(t, snapshots, &snap, "the namespaces", switched)
		}
		assert.Equal(t, first, own(), "G4")
		require.NoError(t, e.client.Delete(e.ctx, e.in(e.ns+"-1", "own"), nil))
		_, err = snapshots.Update(e.ctx, &snap)
		require.NoError(t, err)
		assert.False(t, own(), "G4")
	}
	assert.ErrorContains(t, snapshots.Replace(e.ctx, kates.Query{Name: "Deltas", Kind: "svc"}), `query "Deltas"`)
	assert.ErrorContains(t, snapshots.Replace(e.ctx, kates.Query{Name: "Secrets", Kind: "configmaps"}), "its type")
	refs := kates.Query{Name: "Secrets", Refs: []kates.Ref{kates.RefsOf("ConfigMaps", func(*corev1.ConfigMap) []types.NamespacedName { return nil })}}
	assert.ErrorContains(t, snapshots.Replace(e.ctx, refs), "Refs")
}

// calls are the latest snapshots that a function was called with, by key.
type calls struct {
	mu   sync.Mutex
	last map[string]*routed
	torn bool
	n    int
}

func (c *calls) call(_ context.Context, key string, snap *routed) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[key], c.torn, c.n = snap, c.torn || snap.torn(), c.n+1
	return nil
}

// await waits until the latest snapshots are as wanted.
func (c *calls) await(t *testing.T, what string, wanted func(map[string]*routed) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return wanted(c.last)
	}, time.Minute, 10*time.Millisecond, what)
	c.mu.Lock()
	defer c.mu.Unlock()
	assert.False(t, c.torn)
}

func (c *calls) number() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// runs runs a loop until the test ends, and waits for it.
func (e *env) runs(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(e.ctx)
	done := make(chan error)
	go func() { done <- run(ctx) }()
	e.t.Cleanup(func() {
		cancel()
		assert.NoError(e.t, <-done)
	})
}

func replacedEach(t *testing.T, e *env) {
	e.routes()
	h, c := new(kates.Handle), &calls{last: map[string]*routed{}}
	assert.ErrorIs(t, h.Add(e.ctx), kates.ErrNotRunning)
	assert.ErrorIs(t, h.Ready(), kates.ErrNotRunning)
	h.Trigger("x")
	e.runs(func(ctx context.Context) error {
		options := []kates.RunOption{h, kates.WithWorkers(2)}
		for _, q := range e.over(kates.ByNamespace, "-1") {
			options = append(options, q)
		}
		return kates.RunEach(ctx, e.client, c.call, options...)
	})
	one, two := e.ns+"-1", e.ns+"-2"
	c.await(t, "the first namespace", func(last map[string]*routed) bool { return last[one] != nil })
	assert.NoError(t, h.Ready())
	assert.ErrorContains(t, kates.RunEach(e.ctx, e.client, c.call, h, kates.Query{Name: "Secrets", Key: kates.ByNamespace}), "another run")

	require.NoError(t, h.Replace(e.ctx, e.over(kates.ByNamespace, "-1", "-2")...))
	c.await(t, "the second", func(last map[string]*routed) bool { return last[two] != nil })
	require.NoError(t, h.Replace(e.ctx, e.over(kates.ByNamespace, "-2")...))
	c.await(t, "the end of the first", func(last map[string]*routed) bool { return len(last[one].Secrets) == 0 })
	all := kates.KeyOf(func(metav1.Object) []string { return []string{"all"} })
	require.NoError(t, h.Replace(e.ctx, e.over(all, "-1", "-2")...), "another Key")
	c.await(t, "one key for all", func(last map[string]*routed) bool {
		return last["all"] != nil && len(last["all"].Secrets) == 2 && len(last[two].Secrets) == 0
	})
	before := c.number()
	h.Trigger("all", "nobody's")
	c.await(t, "a call", func(map[string]*routed) bool { return c.n > before })
	h.TriggerAll()
	c.await(t, "a call", func(map[string]*routed) bool { return c.n > before+1 })
	assert.ErrorContains(t, h.Remove(e.ctx, "ConfigMaps", "Secrets"), "key function")
	require.NoError(t, h.Remove(e.ctx, "ConfigMaps"))
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.torn = false // only one kind is left
		return c.last["all"].ConfigMaps == nil
	}, time.Minute, 10*time.Millisecond)
	assert.Len(t, h.Status().Queries, 1)
}

func handledRun(t *testing.T, e *env) {
	e.routes()
	h, c := new(kates.Handle), &calls{last: map[string]*routed{}}
	ended := errors.New("the end")
	over := func() error {
		options := []kates.RunOption{h}
		for _, q := range e.over(kates.Key{}, "-1") {
			options = append(options, q)
		}
		return kates.Run(e.ctx, e.client, func(ctx context.Context, snap *routed) error {
			if err := c.call(ctx, "", snap); len(snap.Secrets) < 3 {
				return err
			}
			return kates.Permanent(ended)
		}, options...)
	}
	done := make(chan error)
	go func() { done <- over() }()
	c.await(t, "the first namespace", func(last map[string]*routed) bool { return last[""] != nil })
	before := c.number()
	h.TriggerAll()
	c.await(t, "a call", func(map[string]*routed) bool { return c.n > before })
	require.NoError(t, h.Replace(e.ctx, e.over(kates.Key{}, "-1", "-2")...))
	c.await(t, "both", func(last map[string]*routed) bool { return len(last[""].Secrets) == 2 })
	assert.Equal(t, []string{"add route-2", "add need-2"}, deltaNames(c.last[""].Deltas))
	more := e.secret("more")
	more.Namespace, more.Labels = e.ns+"-1", map[string]string{"app": "x"}
	e.foreignCreate(more)
	assert.ErrorIs(t, <-done, ended)
	assert.ErrorIs(t, h.Replace(e.ctx, e.over(kates.Key{}, "-1")...), kates.ErrNotRunning)

	e.foreignDelete(more)
	ctx, cancel := context.WithCancel(e.ctx)
	go func() {
		done <- kates.Run(ctx, e.client, func(context.Context, *routed) error { cancel(); return nil }, h, e.over(kates.Key{}, "-1")[0], e.over(kates.Key{}, "-1")[1])
	}()
	assert.NoError(t, <-done, "a handle is free when its run has ended")
}
