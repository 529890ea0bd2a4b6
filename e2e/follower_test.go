package e2e

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// follower watches the objects of a kind in a namespace through faults, and replays every Update.
type follower struct {
	t       *testing.T
	ns      string
	kind    schema.GroupVersionResource
	others  dynamic.Interface // without faults
	client  *kates.Client
	faults  *katestest.Faults
	network *katestest.Network
	acc     *kates.Accumulator
	shown   map[string]identity // as the deltas have it
	updates int                 // that changed something
	anew    bool                // the cluster comes back from a backup: versions may go back
}

// identity is which object, and which version of it.
type identity struct {
	uid     types.UID
	version string
}

// newFollower is one of config maps of the cluster that all tests share.
func newFollower(t *testing.T, config func(*rest.Config), options ...kates.Option) *follower {
	t.Helper()
	return newFollowerOf(t, testCluster.Config, namespace(t), configMaps, config, options...)
}

// newFollowerOf is one of a cluster. It goes through faults, and what config sets.
func newFollowerOf(t *testing.T, cluster *rest.Config, ns string, kind schema.GroupVersionResource, config func(*rest.Config),
	options ...kates.Option,
) *follower {
	t.Helper()
	f := &follower{
		t: t, ns: ns, kind: kind, shown: map[string]identity{},
		faults: katestest.NewFaults(t, 0), network: katestest.NewNetwork(t),
	}
	c := rest.CopyConfig(cluster)
	c.Dial = f.network.DialContext
	c.Wrap(f.faults.Wrap)
	if config != nil {
		config(c)
	}
	var err error
	f.others, err = dynamic.NewForConfig(cluster)
	require.NoError(t, err)
	f.client, err = kates.NewClientFromRESTConfig(c, append([]kates.Option{kates.WithInterval(0)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(f.client.Close)
	return f
}

// writeTo has the others write to another server.
func (f *follower) writeTo(config *rest.Config) {
	f.t.Helper()
	var err error
	f.others, err = dynamic.NewForConfig(config)
	require.NoError(f.t, err)
}

// start begins to watch. It does not wait.
func (f *follower) start() {
	f.t.Helper()
	var err error
	f.acc, err = f.client.Watch(f.t.Context(), kates.Query{Name: "Objects", Kind: f.kind.GroupResource().String(), Namespace: f.ns})
	require.NoError(f.t, err)
}

// update reads a snapshot, and looks that it follows from the one before by its deltas, each of which is news (G7), and
// that nothing is taken back (G5).
func (f *follower) update() {
	f.t.Helper()
	var snap struct{ Objects []*kates.Unstructured }
	var deltas []*kates.Delta
	changed, err := f.acc.UpdateWithDeltas(f.t.Context(), &snap, &deltas)
	require.NoError(f.t, err)
	if !changed {
		return
	}
	f.updates++
	require.True(f.t, f.updates == 1 || len(deltas) > 0, "a change has deltas")
	for _, d := range deltas {
		before, had := f.shown[d.Name]
		now := identity{d.UID, d.ResourceVersion}
		switch {
		case d.DeltaType == kates.ObjectDelete:
			require.True(f.t, had, "G7: deleted twice: %s", d.Name)
			delete(f.shown, d.Name)
			continue
		case d.DeltaType == kates.ObjectAdd:
			require.False(f.t, had, "G7: added twice: %s", d.Name)
		default:
			require.True(f.t, had, "G7: never added: %s", d.Name)
			c, err := resourceversion.CompareResourceVersion(now.version, before.version)
			require.NoError(f.t, err)
			require.True(f.t, c > 0 || f.anew, "G5, G7: %s went from %s to %s", d.Name, before.version, now.version)
		}
		f.shown[d.Name] = now
	}
	require.Equal(f.t, identities(snap.Objects), f.shown, "G7: the deltas give the snapshot")
}

func identities(objects []*kates.Unstructured) map[string]identity {
	all := map[string]identity{}
	for _, o := range objects {
		all[o.GetName()] = identity{o.GetUID(), o.GetResourceVersion()}
	}
	return all
}

// server is what the server has, asked without faults.
func (f *follower) server() map[string]identity {
	f.t.Helper()
	list, err := f.others.Resource(f.kind).Namespace(f.ns).List(f.t.Context(), metav1.ListOptions{})
	require.NoError(f.t, err)
	all := map[string]identity{}
	for _, o := range list.Items {
		all[o.GetName()] = identity{o.GetUID(), o.GetResourceVersion()}
	}
	return all
}

// arrive reads snapshots until they are the server's list, which does not change any more.
func (f *follower) arrive() {
	f.t.Helper()
	server := f.server()
	deadline := time.After(60 * time.Second)
	for {
		f.update()
		if f.updates > 0 && maps.Equal(server, f.shown) {
			return
		}
		select {
		case <-f.acc.Changed():
		case <-deadline:
			require.Fail(f.t, "the snapshot does not become the server's list", "%s\nhas   %v\nwants %v", f.acc.Status(), f.shown, server)
		}
	}
}

// quiet looks that nothing more is said to have changed, once everything on its way has come.
func (f *follower) quiet() {
	f.t.Helper()
	require.NoError(f.t, f.client.Sync(f.t.Context()))
	updates := f.updates
	f.update()
	assert.Equal(f.t, updates, f.updates, "G7: what has been told is told again")
	assert.NoError(f.t, f.acc.Status().Err())
}

// change lets somebody else create, change and delete, as round says.
func (f *follower) change(round int) {
	f.t.Helper()
	in := f.others.Resource(f.kind).Namespace(f.ns)
	name := func(i int) string { return fmt.Sprintf("o-%d-%d", round, i) }
	for i := range 3 {
		_, err := in.Create(f.t.Context(), object(f.kind, f.ns, name(i), nil), metav1.CreateOptions{})
		require.NoError(f.t, err)
	}
	_, err := in.Patch(f.t.Context(), name(0), types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	require.NoError(f.t, err)
	require.NoError(f.t, in.Delete(f.t.Context(), name(1), metav1.DeleteOptions{}))
}

// idle leaves so many connections without a request.
func (f *follower) idle(n int) {
	f.t.Helper()
	rule := f.faults.On(katestest.Match{Verb: "get", Resource: "configmaps"}).HoldAnswer()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			err := f.client.Get(f.t.Context(), object(configMaps, f.ns, "none", nil), nil)
			assert.True(f.t, kates.IsNotFound(err), err)
		})
	}
	require.NoError(f.t, f.faults.Wait(f.t.Context(), func() bool { return rule.Hits() == n && f.network.Open() > n }))
	rule.Stop()
	wg.Wait()
}
