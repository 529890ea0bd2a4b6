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

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// targetsFor is how long targets come and go; the variable sets another time ("60s").
func targetsFor(t *testing.T) time.Duration {
	text := os.Getenv("KATES_TARGETS_FOR")
	if text == "" {
		return 20 * time.Second
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

// targetWorld is a fleet of one real cluster, with many targets in it.
type targetWorld struct {
	t          *testing.T
	fleet      *fleet.Fleet
	targets    *fleet.Targets
	client     *kates.Client // of the cluster, in the fleet
	others     *kates.Client
	namespaces []string
	activated  atomic.Int64

	mu      sync.Mutex
	readers map[string][]*fleet.Reader // by owner
}

func (w *targetWorld) pick() fleet.Target {
	target := fleet.Target{Cluster: "a", Kind: targetKinds[rand.IntN(len(targetKinds))].query, Namespace: w.namespaces[rand.IntN(3)]}
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

// choose lets owners want and drop targets. 40 owners have some 200 targets, and every other three
// seconds a few named ones, for which narrower watches do.
func (w *targetWorld) choose(ctx context.Context) {
	for began := time.Now(); ctx.Err() == nil; {
		owner, most, few := fmt.Sprint("owner", rand.IntN(40)), 11, time.Since(began)/(3*time.Second)%2 == 1
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

// write writes at random. Names up to x2 are those of the cluster's client: each of its writes is
// shown by the readers of the object at once, if they know it.
func (w *targetWorld) write(ctx context.Context, c *kates.Client, first int) {
	for ctx.Err() == nil {
		u := w.object(rand.IntN(len(targetKinds)), w.namespaces[rand.IntN(3)], fmt.Sprint("x", first+rand.IntN(3)))
		var err error
		deleted := rand.IntN(3) == 0
		if deleted {
			err = c.Delete(ctx, u, nil)
		} else {
			err = c.Upsert(ctx, u, u.DeepCopy(), u)
		}
		if err == nil && c == w.client {
			w.showsOwn(u, deleted)
		}
		if err != nil && !kates.IsNotFound(err) && ctx.Err() == nil {
			assert.NoError(w.t, err)
		}
		pause(ctx, time.Duration(rand.IntN(10))*time.Millisecond)
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
func (w *targetWorld) showsOwn(u *kates.Unstructured, deleted bool) {
	kind := slices.IndexFunc(targetKinds, func(k struct{ apiVersion, kind, query string }) bool { return k.kind == u.GetKind() })
	for _, r := range w.known() {
		target := r.Target()
		if target.Kind != targetKinds[kind].query || target.Namespace != u.GetNamespace() || target.Name != u.GetName() {
			continue
		}
		o, err := r.Get()
		switch {
		case errors.Is(err, fleet.ErrNotKnown), errors.Is(err, fleet.ErrDropped):
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
			require.NoError(w.t, w.others.List(w.t.Context(), q, &held))
			if a, b := versions(shown), versions(held); !slices.Equal(a, b) {
				return fmt.Sprintf("%s shows %v, not %v", target, a, b)
			}
		}
		return ""
	}
	poll(w.t, patience, func() bool { return differs() == "" })
	assert.Empty(w.t, differs(), "%s", w.targets.Status())
}

func versions(all []*kates.Unstructured) (vs []string) {
	for _, o := range all {
		vs = append(vs, o.GetNamespace()+"/"+o.GetName()+"@"+o.GetResourceVersion())
	}
	slices.Sort(vs)
	return vs
}

// TestTwoHundredTargetsOfTenKindsComeAndGo drops and adds targets at random, while two clients
// write. Readers never take "not known yet" for "not found", own writes are there at once, all is
// as the server has it in the end, and nothing is left on the server when no target is.
func TestTwoHundredTargetsOfTenKindsComeAndGo(t *testing.T) {
	faults := katestest.NewFaults(t, 0)
	config := rest.CopyConfig(testCluster.Config)
	config.QPS = -1
	others, err := kates.NewClientFromRESTConfig(config)
	require.NoError(t, err)
	defer others.Close()
	config.Wrap(faults.Wrap)
	f, err := fleet.New(fleet.Options{})
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Add("a", config))
	fleetBecomes(t, f, "a is up", func() bool { return f.Cluster("a") != nil && f.Cluster("a").Health().Phase == fleet.Up })
	w := &targetWorld{
		t: t, fleet: f, client: f.Cluster("a").Client(), others: others, readers: make(map[string][]*fleet.Reader),
		namespaces: []string{namespace(t), namespace(t), namespace(t)},
	}
	w.targets = f.Targets(fleet.TargetOptions{Grace: time.Second, Activate: func(owners ...string) { w.activated.Add(int64(len(owners))) }})
	before := watchesOf(t, testCluster.Config)["podtemplates."]

	ctx, cancel := context.WithTimeout(t.Context(), targetsFor(t))
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { w.choose(ctx) })
	running.Go(func() { w.choose(ctx) })
	running.Go(func() { w.write(ctx, w.client, 0) })
	running.Go(func() { w.write(ctx, w.others, 3) })
	most := 0
	for ctx.Err() == nil {
		most = max(most, len(w.client.Status().Queries))
		pause(ctx, 50*time.Millisecond)
	}
	running.Wait()
	w.agree()
	assert.LessOrEqual(t, most, len(targetKinds)+2, "one watch for each kind, and those that are ending")
	started := len(faults.Requests(katestest.Match{Verb: "watch"}))
	t.Logf("%d targets in the end, %d watches started, %d owners activated, at most %d queries at a time\n%s",
		len(w.known()), started, w.activated.Load(), most, w.targets.Status())
	assert.Greater(t, started, len(targetKinds))
	assert.Positive(t, w.activated.Load())

	for owner := range w.readers {
		w.targets.Drop(owner)
	}
	poll(t, patience, func() bool { return len(faults.Open(katestest.Match{Verb: "watch"})) == 0 })
	assert.Empty(t, faults.Open(katestest.Match{Verb: "watch"}), "nothing is left")
	assert.Empty(t, w.targets.Status().Watches)
	poll(t, patience, func() bool { return watchesOf(t, testCluster.Config)["podtemplates."] <= before })
	assert.LessOrEqual(t, watchesOf(t, testCluster.Config)["podtemplates."], before, "nor on the server")
}

// TestTargetsNeedNoMoreThanTheRightsToTheirNames has a user who may read one object by name in each
// of two namespaces.
func TestTargetsNeedNoMoreThanTheRightsToTheirNames(t *testing.T) {
	user := newSubject(t, "by-names")
	config := rest.CopyConfig(testCluster.Config)
	user.is(config)
	x, y := namespace(t), namespace(t)
	admin, err := kates.NewClientFromRESTConfig(testCluster.Config)
	require.NoError(t, err)
	defer admin.Close()
	for ns, name := range map[string]string{x: "one", y: "two"} {
		require.NoError(t, admin.Create(t.Context(), &kates.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}, nil))
		user.grant(ns, "read", rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{name}})
	}
	f, err := fleet.New(fleet.Options{})
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Add("a", config))
	fleetBecomes(t, f, "a is up", func() bool { return f.Cluster("a") != nil && f.Cluster("a").Health().Phase == fleet.Up })
	targets := f.Targets(fleet.TargetOptions{})
	readers, err := targets.Keep("o",
		fleet.Target{Cluster: "a", Kind: "configmaps", Namespace: x, Name: "one"}, fleet.Target{Cluster: "a", Kind: "configmaps", Namespace: y, Name: "two"},
		fleet.Target{Cluster: "a", Kind: "configmaps", Namespace: x, Name: "two"}, fleet.Target{Cluster: "a", Kind: "configmaps"})
	require.NoError(t, err)
	poll(t, patience, func() bool { return readers[0].Complete() && readers[1].Complete() })
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
