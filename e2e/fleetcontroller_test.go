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

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// placing is a root in the home cluster, and placedParts is what it owns in one cluster.
type placing struct {
	Root *kates.ConfigMap `kates:",root"`
	Info controller.Info
}

type placedParts struct{ Secrets []*kates.Secret }

// placer applies the secrets that a root wants in all clusters. It fails the test where a reconcile
// does not see what one before has applied.
type placer struct {
	t    *testing.T
	home *kates.Client

	mu      sync.Mutex
	applied map[string][]string // by cluster
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
			set := kates.OwnedSet{Name: "e2e"}
			for _, wanted := range strings.Fields(p.Home.Root.Data["wants"]) {
				set.Objects = append(set.Objects, secretOf(wanted))
			}
			result, failed := p.ApplyOwned(ctx, name, set)
			r.note(name, result)
			err = errors.Join(err, failed)
		}
		return err
	}, func(ctx context.Context, _ *kates.ConfigMap) error {
		r.mu.Lock()
		r.applied = make(map[string][]string)
		r.mu.Unlock()
		return p.RemoveOwned(ctx, kates.OwnedSet{Name: "e2e"})
	})
}

func (r *placer) note(name string, result kates.OwnedResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
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

// A root in the home cluster owns objects in two clusters. One of them is down while the root
// changes, and again while it is deleted.
func TestARootOwnsObjectsInOtherClusters(t *testing.T) {
	t.Parallel()
	c, err := cluster.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Kill()) })
	server, err := c.AddServer("etcd-prefix=/b")
	require.NoError(t, err)
	config := at(c, server)
	direct := map[string]kubernetes.Interface{"home": kubernetes.NewForConfigOrDie(c.Config), "b": kubernetes.NewForConfigOrDie(config)}
	for _, k := range direct {
		require.Eventually(t, func() bool {
			_, err := k.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
			return err == nil
		}, patience, 20*time.Millisecond)
	}
	home, _ := homeClient(t, c.Config)
	f, err := fleet.New(fleet.Options{Home: home, Probe: time.Second, Timeout: 2 * time.Second})
	require.NoError(t, err)
	t.Cleanup(f.Close)
	require.NoError(t, errors.Join(f.Add("home", c.Config), f.Add("b", config)))

	r := &placer{t: t, home: home, applied: make(map[string][]string)}
	roots, err := fleet.NewHomeController(f, home, "placing", r.reconcile,
		kates.Query{Name: "Root", Namespace: "default", LabelSelector: "root"}, kates.WithBackoff(50*time.Millisecond, 2*time.Second))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- roots.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})

	has := func(name string, want ...string) {
		t.Helper()
		var got []string
		require.Eventually(t, func() bool {
			list, err := direct[name].CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return false
			}
			got = nil
			for _, s := range list.Items {
				assert.Empty(t, s.OwnerReferences)
				got = append(got, s.Name)
			}
			slices.Sort(got)
			return slices.Equal(got, want)
		}, patience, 20*time.Millisecond, "cluster %q", name)
	}
	root := &kates.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "root", Labels: map[string]string{"root": "yes"}}}
	root.Data = map[string]string{"wants": "x y"}
	require.NoError(t, home.Create(t.Context(), root, nil))
	has("home", "x", "y")
	has("b", "x", "y")
	_, err = direct["b"].CoreV1().Secrets("default").Create(t.Context(), secretOf("others"), metav1.CreateOptions{})
	require.NoError(t, err)
	meddle := func(on bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.others = on
	}
	meddle(true)
	require.NoError(t, direct["b"].CoreV1().Secrets("default").Delete(t.Context(), "y", metav1.DeleteOptions{}))
	has("b", "others", "x", "y") // it is made again
	meddle(false)

	down := func() {
		require.NoError(t, server.Kill())
		fleetBecomes(t, f, "b is stale", func() bool { return f.Cluster("b").Health().Phase == fleet.Stale })
	}
	down()
	_, err = kates.Modify(t.Context(), home, root, func(now *kates.ConfigMap) error {
		now.Data["wants"] = "y z"
		return nil
	})
	require.NoError(t, err)
	has("home", "y", "z")
	require.NoError(t, server.Start())
	has("b", "others", "y", "z")

	down()
	require.NoError(t, direct["home"].CoreV1().ConfigMaps("default").Delete(t.Context(), "root", metav1.DeleteOptions{}))
	has("home")
	now, err := direct["home"].CoreV1().ConfigMaps("default").Get(t.Context(), "root", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, []string{"example.com/parts"}, now.Finalizers, "b has not removed anything")
	require.NoError(t, server.Start())
	has("b", "others")
	require.Eventually(t, func() bool {
		_, err := direct["home"].CoreV1().ConfigMaps("default").Get(t.Context(), "root", metav1.GetOptions{})
		return kates.IsNotFound(err)
	}, patience, 20*time.Millisecond)
}
