package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// targetsFor is how long targets come and go; the variable sets another time ("5s").
func targetsFor(t *testing.T) time.Duration {
	text := os.Getenv("KATES_TARGETS_FOR")
	if text == "" {
		return 15 * time.Second
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

// targetKinds are ten kinds whose objects need little. Nothing but the tests writes them, and no
// controller does.
var targetKinds = []struct{ apiVersion, kind, query string }{
	{"v1", "ConfigMap", "configmaps"},
	{"v1", "Secret", "secrets"},
	{"v1", "ServiceAccount", "sa"},
	{"v1", "LimitRange", "limits"},
	{"v1", "PodTemplate", "podtemplates"},
	{"coordination.k8s.io/v1", "Lease", "leases.coordination.k8s.io"},
	{"rbac.authorization.k8s.io/v1", "Role", "roles"},
	{"networking.k8s.io/v1", "NetworkPolicy", "netpol"},
	{"policy/v1", "PodDisruptionBudget", "pdb"},
	{"getambassador.io/v3alpha1", "Host", "hosts.getambassador.io"},
}

// targetSite is one cluster of a targetWorld.
type targetSite struct {
	name   string
	config *rest.Config
	faults *katestest.Faults // of the fleet's requests
	client *kates.Client     // of the fleet
	others *kates.Client
	before watchCounts
}

// targetWorld is a fleet of three real clusters, with many targets in them.
type targetWorld struct {
	t          *testing.T
	fleet      *fleet.Fleet
	targets    *fleet.Targets
	sites      map[string]*targetSite
	namespaces []string // in each cluster
	activated  atomic.Int64

	mu      sync.Mutex
	readers map[string][]*fleet.Reader // by owner
}

func (w *targetWorld) pick() fleet.Target {
	target := fleet.Target{Cluster: string("abc"[rand.IntN(3)]), Kind: targetKinds[rand.IntN(len(targetKinds))].query, Namespace: w.namespaces[rand.IntN(3)]}
	switch rand.IntN(12) {
	case 0:
		target.LabelSelector = "app=1"
	case 1:
		target.Namespace, target.LabelSelector = "", "run="+w.namespaces[0]
	case 2:
	default:
		target.Name = fmt.Sprint("x", rand.IntN(6))
	}
	target.MetadataOnly = rand.IntN(8) == 0
	return target
}

// manyThenFew is how often a goroutine chooses before owners want few targets, or many again.
const manyThenFew = 300

// choose lets owners want and drop targets. 40 owners have some 200 targets, and by turns a few
// named ones, for which narrower watches do. choose goes on beyond the end of ctx until the owners
// have had the many ones.
func (w *targetWorld) choose(ctx context.Context) {
	for n := 0; ctx.Err() == nil || n < manyThenFew; n++ {
		owner, most, few := fmt.Sprint("owner", rand.IntN(40)), 11, n/manyThenFew%2 == 1
		if few {
			most = 2
		}
		var targets []fleet.Target
		for range rand.IntN(most) {
			if target := w.pick(); !few || target.Name != "" {
				targets = append(targets, target)
			}
		}
		readers, err := w.targets.Keep(owner, targets...)
		if assert.NoError(w.t, err) {
			w.mu.Lock()
			w.readers[owner] = readers
			w.mu.Unlock()
		}
		pause(ctx, time.Duration(rand.IntN(20))*time.Millisecond)
	}
}

func (w *targetWorld) object(kind int, ns, name string) *kates.Unstructured {
	k := targetKinds[kind]
	u := &kates.Unstructured{Object: map[string]any{"apiVersion": k.apiVersion, "kind": k.kind}}
	u.SetNamespace(ns)
	u.SetName(name)
	u.SetLabels(map[string]string{"app": fmt.Sprint(rand.IntN(2)), "run": w.namespaces[0]})
	u.SetAnnotations(map[string]string{"n": fmt.Sprint(rand.Int())})
	switch k.kind {
	case "PodTemplate":
		u.Object["template"] = map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}}
	case "LimitRange":
		u.Object["spec"] = map[string]any{"limits": []any{}}
	case "NetworkPolicy":
		u.Object["spec"] = map[string]any{"podSelector": map[string]any{}}
	case "Host":
		u.Object["spec"] = map[string]any{"hostname": "h"}
	}
	return u
}

// write writes to a cluster at random. Names up to x2 are those of the fleet's client: each of its
// writes is shown by the readers of the object at once, if they know it.
func (w *targetWorld) write(ctx context.Context, site *targetSite, c *kates.Client, first int) {
	for ctx.Err() == nil {
		u := w.object(rand.IntN(len(targetKinds)), w.namespaces[rand.IntN(3)], fmt.Sprint("x", first+rand.IntN(3)))
		var err error
		deleted := rand.IntN(3) == 0
		if deleted {
			err = c.Delete(ctx, u, nil)
		} else {
			err = c.Upsert(ctx, u, u.DeepCopy(), u)
		}
		if err == nil && c == site.client {
			w.showsOwn(site, u, deleted)
		}
		if err != nil && !kates.IsNotFound(err) && ctx.Err() == nil {
			assert.NoError(w.t, err)
		}
		pause(ctx, time.Duration(rand.IntN(30))*time.Millisecond)
	}
}

func (w *targetWorld) known() (all []*fleet.Reader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, readers := range w.readers {
		all = append(all, readers...)
	}
	return all
}

// showsOwn checks that the readers of an object show what was just written (G4).
func (w *targetWorld) showsOwn(site *targetSite, u *kates.Unstructured, deleted bool) {
	kind := slices.IndexFunc(targetKinds, func(k struct{ apiVersion, kind, query string }) bool { return k.kind == u.GetKind() })
	for _, r := range w.known() {
		target := r.Target()
		if target.Cluster != site.name || target.Kind != targetKinds[kind].query || target.Namespace != u.GetNamespace() || target.Name != u.GetName() {
			continue
		}
		o, err := r.Get()
		switch {
		case errors.Is(err, fleet.ErrNotKnown), errors.Is(err, fleet.ErrTargetDropped):
		case deleted:
			assert.True(w.t, kates.IsNotFound(err), "%s was deleted: %v", target, err)
		case assert.NoError(w.t, err, "%s was written", target):
			assert.Equal(w.t, u.GetResourceVersion(), o.GetResourceVersion(), "%s", target)
		}
	}
}

// agree waits until each reader shows what the server holds.
func (w *targetWorld) agree() {
	differs := func() (text string) {
		for _, r := range w.known() {
			target := r.Target()
			shown, err := r.List()
			if err != nil {
				return err.Error()
			}
			var held []*unstructured.Unstructured
			q := kates.Query{Kind: target.Kind, Namespace: target.Namespace, LabelSelector: target.LabelSelector}
			if target.Name != "" {
				q.FieldSelector = "metadata.name=" + target.Name
			}
			require.NoError(w.t, w.sites[target.Cluster].others.List(w.t.Context(), q, &held))
			if a, b := versions(shown), versions(held); !slices.Equal(a, b) {
				return fmt.Sprintf("%s shows %v, not %v", target, a, b)
			}
		}
		return ""
	}
	poll(w.t, func() bool { return differs() == "" }, "each reader shows what the server has",
		func() any { return differs() }, func() any { return w.targets.Status() })
}

func versions(all []*kates.Unstructured) (vs []string) {
	for _, o := range all {
		vs = append(vs, o.GetNamespace()+"/"+o.GetName()+"@"+o.GetResourceVersion())
	}
	slices.Sort(vs)
	return vs
}

// watchCounts says what a server has to say of its watches of the kinds of targets, by resource.
type watchCounts struct{ open, ended map[string]int }

func (s *targetSite) counts(t *testing.T) watchCounts {
	t.Helper()
	c := watchCounts{open: watchesOf(t, s.config), ended: make(map[string]int)}
	for _, of := range metric(t, s.config, "apiserver_request_total") { // a watch counts when it ends
		if of.labels["verb"] == "WATCH" {
			c.ended[of.labels["resource"]+"."+of.labels["group"]] += of.value
		}
	}
	return c
}

// targetResources are the kinds of targets as servers count them.
var targetResources = []string{
	"configmaps.", "secrets.", "serviceaccounts.", "limitranges.", "podtemplates.", "leases.coordination.k8s.io",
	"roles.rbac.authorization.k8s.io", "networkpolicies.networking.k8s.io", "poddisruptionbudgets.policy", "hosts.getambassador.io",
}

// newTargetWorld starts four servers: that of the home cluster does nothing here but have the
// etcd.
func newTargetWorld(t *testing.T) *targetWorld {
	t.Helper()
	f, err := tappedFleet(fleet.New(fleet.Options{}))
	require.NoError(t, err)
	t.Cleanup(f.Close)
	w := &targetWorld{
		t: t, fleet: f, readers: make(map[string][]*fleet.Reader), sites: make(map[string]*targetSite),
		namespaces: []string{"targets-1", "targets-2", "targets-3"},
	}
	for name, r := range startFleetWorld(t, remoteNames...).remotes {
		if name == "home" {
			continue
		}
		s := &targetSite{name: name, faults: katestest.NewFaults(t, 0), config: rest.CopyConfig(r.config)}
		require.NoError(t, cluster.InstallCRDs(t.Context(), s.config, "../testdata/crds"))
		for _, ns := range w.namespaces {
			_, err := r.direct.CoreV1().Namespaces().Create(t.Context(), &kates.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		s.config.QPS = -1
		s.others, err = tapped(kates.NewClientFromRESTConfig(s.config))
		require.NoError(t, err)
		t.Cleanup(s.others.Close)
		watched := rest.CopyConfig(s.config)
		watched.Wrap(s.faults.Wrap)
		require.NoError(t, f.Add(name, watched))
		fleetBecomes(t, f, name+" is up", func() bool { return f.Cluster(name) != nil && f.Cluster(name).Health().Phase == fleet.Up })
		s.client = f.Cluster(name).Client()
		s.before = s.counts(t)
		w.sites[name] = s
	}
	w.targets = f.Targets(fleet.TargetOptions{Grace: time.Second, Activate: func(owners ...string) { w.activated.Add(int64(len(owners))) }})
	return w
}

// TestTwoHundredTargetsOfTenKindsComeAndGo drops and adds targets in three clusters at random,
// while two clients write to each. Readers never take "not known yet" for "not found", own writes
// are there at once, all is as the servers have it in the end, and nothing is left on a server
// when no target is.
func TestTwoHundredTargetsOfTenKindsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newTargetWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), targetsFor(t))
	defer cancel()
	var running sync.WaitGroup
	var choosing sync.WaitGroup
	choosing.Go(func() { w.choose(ctx) })
	choosing.Go(func() { w.choose(ctx) })
	chosen := make(chan struct{})
	go func() {
		choosing.Wait()
		close(chosen)
	}()
	for _, s := range w.sites {
		running.Go(func() { w.write(ctx, s, s.client, 0) })
		running.Go(func() { w.write(ctx, s, s.others, 3) })
	}
	most, targets := 0, 0
	for over := false; !over; {
		targets = max(targets, len(w.known()))
		for _, s := range w.sites {
			most = max(most, len(s.client.Status().Queries))
		}
		select {
		case <-chosen:
			over = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	running.Wait()
	w.agree()
	assert.LessOrEqual(t, most, len(targetKinds)+2, "one watch for each kind, and those that are ending")
	assert.Positive(t, w.activated.Load())
	assert.Greater(t, targets, 150, "some 200 at a time")
	t.Logf("at most %d targets, %d in the end, %d owners activated, at most %d queries of a cluster at a time\n%s",
		targets, len(w.known()), w.activated.Load(), most, w.targets.Status())

	for owner := range w.readers {
		w.targets.Drop(owner)
	}
	poll(t, func() bool { return len(w.targets.Status().Watches) == 0 }, "nothing is watched", func() any { return w.targets.Status() })
	for _, s := range w.sites {
		s.nothingIsLeft(t)
	}
}

// nothingIsLeft checks by the server's own counts that watches of each kind have begun and ended.
// A request that ends on its way to the server is not among these.
func (s *targetSite) nothingIsLeft(t *testing.T) {
	t.Helper()
	watches := katestest.Match{Verb: "watch"}
	poll(t, func() bool { return len(s.faults.Open(watches)) == 0 }, "no watch of "+s.name+" is open", func() any { return s.faults.Open(watches) })
	asked, now := len(s.faults.Requests(watches)), s.counts(t)
	open := func(kind string) bool { return now.open[kind] > s.before.open[kind] }
	poll(t, func() bool {
		now = s.counts(t)
		return !slices.ContainsFunc(targetResources, open)
	}, s.name+" serves no more watches than before", func() any { return s.before }, func() any { return now })
	ended := 0
	for _, kind := range targetResources {
		ended += now.ended[kind] - s.before.ended[kind]
		assert.False(t, open(kind), "%s of %s: %d are still watched", kind, s.name, now.open[kind])
		assert.Greater(t, now.ended[kind], s.before.ended[kind], "%s of %s were watched", kind, s.name)
	}
	assert.GreaterOrEqual(t, ended, asked/2, "of %s, which counts as the fleet does, but for what does not reach it", s.name)
	assert.Greater(t, asked, len(targetKinds))
	t.Logf("%s: the fleet has asked for %d watches, and the server has ended %d", s.name, asked, ended)
}

// TestTargetsNeedNoMoreThanTheRightsToTheirNames has a user who may read one object by name in
// each of two namespaces.
func TestTargetsNeedNoMoreThanTheRightsToTheirNames(t *testing.T) {
	user := newSubject(t, "by-names")
	config := rest.CopyConfig(testCluster.Config)
	user.is(config)
	x, y := namespace(t), namespace(t)
	admin, err := tapped(kates.NewClientFromRESTConfig(testCluster.Config))
	require.NoError(t, err)
	defer admin.Close()
	for ns, name := range map[string]string{x: "one", y: "two"} {
		require.NoError(t, admin.Create(t.Context(), &kates.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}, nil))
		user.grant(ns, "read", rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{name}})
	}
	f, err := tappedFleet(fleet.New(fleet.Options{}))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Add("a", config))
	fleetBecomes(t, f, "a is up", func() bool { return f.Cluster("a") != nil && f.Cluster("a").Health().Phase == fleet.Up })
	targets := f.Targets(fleet.TargetOptions{})
	readers, err := targets.Keep("o",
		fleet.Target{Cluster: "a", Kind: "configmaps", Namespace: x, Name: "one"}, fleet.Target{Cluster: "a", Kind: "configmaps", Namespace: y, Name: "two"},
		fleet.Target{Cluster: "a", Kind: "configmaps", Namespace: x, Name: "two"}, fleet.Target{Cluster: "a", Kind: "configmaps"})
	require.NoError(t, err)
	poll(t, func() bool { return readers[0].Complete() && readers[1].Complete() }, "both are complete", func() any { return targets.Status() })
	for i, r := range readers {
		_, err := r.List()
		if i < 2 {
			assert.NoError(t, err, "%s", targets.Status())
			continue
		}
		assert.ErrorIs(t, err, fleet.ErrNotKnown, "it may not be read, and holds up no other")
	}
	assert.ErrorContains(t, targets.Status().Err(), "403")
}
