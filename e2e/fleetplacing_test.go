package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// placing is a root in the home cluster, and placedParts is what it owns in one cluster.
type placing struct {
	Root *kates.ConfigMap `kates:",root"`
	Info controller.Info
}

type placedParts struct{ Secrets []*kates.Secret }

// placer applies the secrets that a root wants in all clusters. It fails the test where a
// reconcile does not see what one before has applied.
type placer struct {
	t    *testing.T
	home *kates.Client

	mu      sync.Mutex
	applied map[string][]string // by cluster
	failed  map[string]error    // why the latest apply failed, by cluster
	others  bool                // somebody else deletes some of it
}

func (r *placer) reconcile(ctx context.Context, p *fleet.Parts[placing, placedParts]) (controller.Result, error) {
	r.mu.Lock()
	for name, there := range p.Clusters {
		if !r.others {
			assert.Subset(r.t, secretNames(there.Secrets), r.applied[name], "cluster %q does not show own writes", name)
		}
	}
	r.mu.Unlock()
	return controller.Done, kates.UnderFinalizer(ctx, r.home, p.Home.Root, "example.com/parts", func(ctx context.Context, _ *kates.ConfigMap) (err error) {
		for name := range p.Clusters {
			set := kates.OwnedSet{SetName: "e2e"}
			for _, wanted := range strings.Fields(p.Home.Root.Data["wants"]) {
				set.Objects = append(set.Objects, secretOf(wanted))
			}
			result, failed := p.ApplyOwned(ctx, name, set)
			r.note(name, result, failed)
			err = errors.Join(err, failed)
		}
		return err
	}, func(ctx context.Context, _ *kates.ConfigMap) error {
		r.mu.Lock()
		r.applied = make(map[string][]string)
		r.mu.Unlock()
		return p.RemoveOwned(ctx, kates.OwnedSet{SetName: "e2e"})
	})
}

func (r *placer) note(name string, result kates.OwnedResult, failed error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[name] = failed
	r.applied[name] = nil
	for _, o := range slices.Concat(result.Applied, result.Unchanged) {
		r.applied[name] = append(r.applied[name], o.Name)
	}
	slices.Sort(r.applied[name])
}

func secretOf(name string) *kates.Secret {
	return &kates.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func secretNames(all []*kates.Secret) (names []string) {
	for _, s := range all {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// placingWorld is a fleet of a home cluster and others, and a controller of roots in the home.
type placingWorld struct {
	t       *testing.T
	fleet   *fleet.Fleet
	home    *kates.Client
	servers map[string]*cluster.Server
	direct  map[string]kubernetes.Interface // without the fleet
	faults  map[string]*katestest.Faults    // of the fleet's clients
	placer  *placer
}

// newPlacingWorld starts the servers, the fleet and the controller. The cluster home is there
// besides the others.
func newPlacingWorld(t *testing.T, others ...string) *placingWorld {
	t.Helper()
	c, err := cluster.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Kill()) })
	home, _ := homeClient(t, c.Config)
	f, err := tappedFleet(fleet.New(fleet.Options{Home: home, Probe: time.Second, Timeout: 2 * time.Second}))
	require.NoError(t, err)
	t.Cleanup(f.Close)
	w := &placingWorld{
		t: t, fleet: f, home: home, servers: map[string]*cluster.Server{"home": c.Server()},
		direct: make(map[string]kubernetes.Interface), faults: make(map[string]*katestest.Faults),
		placer: &placer{t: t, home: home, applied: make(map[string][]string), failed: make(map[string]error)},
	}
	w.join("home", c.Config)
	for _, name := range others {
		w.servers[name], err = c.AddServer("etcd-prefix=/" + name)
		require.NoError(t, err)
		w.join(name, at(c, w.servers[name]))
	}
	w.run()
	return w
}

// join adds a cluster to the fleet.
func (w *placingWorld) join(name string, config *rest.Config) {
	w.t.Helper()
	direct := kubernetes.NewForConfigOrDie(config)
	require.Eventually(w.t, func() bool {
		_, err := direct.CoreV1().Namespaces().Get(w.t.Context(), "default", metav1.GetOptions{})
		return err == nil
	}, patience, 20*time.Millisecond)
	w.direct[name], w.faults[name] = direct, katestest.NewFaults(w.t, 0)
	config = rest.CopyConfig(config)
	config.Wrap(w.faults[name].Wrap)
	require.NoError(w.t, w.fleet.Add(name, config))
}

// run starts the controller.
func (w *placingWorld) run() {
	w.t.Helper()
	roots, err := fleet.NewHomeController(w.fleet, w.home, "placing", w.placer.reconcile,
		kates.Query{Name: "Root", Namespace: "default", LabelSelector: "root"}, kates.WithBackoff(50*time.Millisecond, 2*time.Second))
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- roots.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		assert.NoError(w.t, <-ended)
	})
}

// newRoot makes a root that wants some Secrets in each cluster.
func (w *placingWorld) newRoot(wants string) *kates.ConfigMap {
	w.t.Helper()
	root := &kates.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "root", Labels: map[string]string{"root": "yes"}}}
	root.Data = map[string]string{"wants": wants}
	require.NoError(w.t, w.home.Create(w.t.Context(), root, nil))
	return root
}

// wants changes what the root wants.
func (w *placingWorld) wants(root *kates.ConfigMap, wants string) {
	w.t.Helper()
	_, err := kates.Modify(w.t.Context(), w.home, root, func(now *kates.ConfigMap) error {
		now.Data["wants"] = wants
		return nil
	})
	require.NoError(w.t, err)
}

// has waits until a cluster has exactly these Secrets.
func (w *placingWorld) has(name string, want ...string) {
	w.t.Helper()
	var got []string
	require.Eventually(w.t, func() bool {
		list, err := w.direct[name].CoreV1().Secrets("default").List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		got = nil
		for _, s := range list.Items {
			assert.Empty(w.t, s.OwnerReferences)
			got = append(got, s.Name)
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	}, patience, 20*time.Millisecond, "cluster %q", name)
}

// becomesStale waits until a cluster is stale.
func (w *placingWorld) becomesStale(name string) {
	w.t.Helper()
	fleetBecomes(w.t, w.fleet, name+" is stale", func() bool { return w.fleet.Cluster(name).Health().Phase == fleet.Stale })
}
