package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
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

// follower watches the objects of a kind in a namespace, or what else a test chooses, through
// faults. It replays every Update.
type follower struct {
	t       *testing.T
	ns      string
	kind    schema.GroupVersionResource
	others  dynamic.Interface // a client without faults
	client  *kates.Client
	faults  *katestest.Faults
	network *katestest.Network
	acc     *kates.Accumulator
	list    func() []kates.Unstructured // the server's own list for the query
	shown   map[string]identity         // according to the deltas
	left    map[types.UID]identity      // what was shown before, and no longer is
	absent  bool                        // the field is nil
	updates int                         // how many Updates reported a change
	always  func()                      // called after every Update; may be nil
	returns bool                        // an object that left may come back unchanged
	// the cluster is restored from a backup: versions may go back
	anew bool
}

// identity says which object it is, in which version, and in which version of the API.
type identity struct {
	uid      types.UID
	objectRV string
	api      string
}

func identityOf(o *kates.Unstructured) identity {
	return identity{o.GetUID(), o.GetResourceVersion(), o.GetAPIVersion()}
}

// newFollower returns a follower of config maps in the cluster that all tests share.
func newFollower(t *testing.T, config func(*rest.Config), options ...kates.Option) *follower {
	t.Helper()
	return newFollowerOf(t, serverOf(t), namespace(t), configMaps, config, options...)
}

// newFollowerOf returns a follower of one cluster. It goes through faults and the changes that
// config makes.
func newFollowerOf(t *testing.T, cluster *rest.Config, ns string, kind schema.GroupVersionResource, config func(*rest.Config),
	options ...kates.Option,
) *follower {
	t.Helper()
	f := &follower{
		t: t, ns: ns, kind: kind, shown: map[string]identity{}, left: map[types.UID]identity{},
		faults: katestest.NewFaults(t, 0), network: katestest.NewNetwork(t),
	}
	c := rest.CopyConfig(cluster)
	c.Dial = f.network.DialContext
	c.Wrap(f.faults.Wrap)
	if config != nil {
		config(c)
	}
	f.list = func() []kates.Unstructured { return f.listed(f.kind, f.ns, "") }
	var err error
	f.others, err = dynamic.NewForConfig(cluster)
	require.NoError(t, err)
	f.client, err = tapped(kates.NewClientFromRESTConfig(c, append([]kates.Option{kates.WithInterval(0)}, options...)...))
	require.NoError(t, err)
	t.Cleanup(f.client.Close)
	return f
}

// writeTo sends the writes of others to another server.
func (f *follower) writeTo(config *rest.Config) {
	f.t.Helper()
	var err error
	f.others, err = dynamic.NewForConfig(config)
	require.NoError(f.t, err)
}

// start begins to watch. It does not wait.
func (f *follower) start() {
	f.t.Helper()
	f.watch(kates.Query{Kind: f.kind.GroupResource().String(), Namespace: f.ns})
}

// watch begins to watch something else. The caller sets list to match.
func (f *follower) watch(q kates.Query) {
	f.t.Helper()
	q.Name = "Objects"
	var err error
	f.acc, err = f.client.Watch(f.t.Context(), q)
	require.NoError(f.t, err)
}

// listed returns the server's list, without faults.
func (f *follower) listed(gvr schema.GroupVersionResource, ns, labels string) []kates.Unstructured {
	f.t.Helper()
	list, err := f.others.Resource(gvr).Namespace(ns).List(f.t.Context(), metav1.ListOptions{LabelSelector: labels})
	require.NoError(f.t, err)
	return list.Items
}

// update reads a snapshot. It checks that the snapshot follows from the one before by its deltas,
// that each delta is a change (G7), and that nothing is taken back (G5).
func (f *follower) update() {
	f.t.Helper()
	var snap struct{ Objects []*kates.Unstructured }
	var deltas []*kates.Delta
	changed, err := f.acc.UpdateWithDeltas(f.t.Context(), &snap, &deltas)
	require.NoError(f.t, err)
	if !changed {
		return
	}
	if f.always != nil {
		defer f.always()
	}
	f.updates++
	was := f.absent
	f.absent = snap.Objects == nil
	require.True(f.t, f.updates == 1 || len(deltas) > 0 || was != f.absent, "a change has deltas")
	for _, d := range deltas {
		key := d.Namespace + "/" + d.Name
		before, had := f.shown[key]
		now := identity{d.UID, d.ResourceVersion, d.APIVersion}
		switch {
		case d.DeltaType == kates.ObjectDelete:
			require.True(f.t, had, "G7: deleted twice: %s", key)
			delete(f.shown, key)
			f.left[before.uid] = before
			continue
		case d.DeltaType == kates.ObjectAdd:
			require.False(f.t, had, "G7: added twice: %s", key)
			if left, was := f.left[now.uid]; was {
				newer := f.newer(left, now)
				require.True(f.t, f.anew || newer > 0 || newer == 0 && f.returns, "G5: %s is resurrected: it left as %v and came back as %v", key, left, now)
			}
		default:
			require.True(f.t, had, "G7: never added: %s", key)
			require.Equal(f.t, before.uid, now.uid, "G7: another object is a delete and an add: %s", key)
			newer := f.newer(before, now)
			require.True(f.t, f.anew || newer > 0 || newer == 0 && now.api != before.api, "G5, G7: %s went from %v to %v", key, before, now)
		}
		f.shown[key] = now
	}
	require.Equal(f.t, identities(snap.Objects), f.shown, "G7: the deltas give the snapshot")
}

// newer is positive if now is a newer version than before.
func (f *follower) newer(before, now identity) int {
	f.t.Helper()
	c, err := resourceversion.CompareResourceVersion(now.objectRV, before.objectRV)
	require.NoError(f.t, err)
	return c
}

func identities(objects []*kates.Unstructured) map[string]identity {
	all := map[string]identity{}
	for _, o := range objects {
		all[o.GetNamespace()+"/"+o.GetName()] = identityOf(o)
	}
	return all
}

// server returns the server's objects, asked without faults.
func (f *follower) server() map[string]identity {
	f.t.Helper()
	all := map[string]identity{}
	for _, o := range f.list() {
		all[o.GetNamespace()+"/"+o.GetName()] = identityOf(&o)
	}
	return all
}

// arrive reads snapshots until they equal the server's list, which no longer changes.
func (f *follower) arrive() {
	f.t.Helper()
	server := f.server()
	f.until(func() bool { return f.updates > 0 && maps.Equal(server, f.shown) }, "the snapshot is the server's list: %v", server)
}

// until reads a snapshot after each signal, until the condition holds.
func (f *follower) until(cond func() bool, what string, args ...any) {
	f.t.Helper()
	deadline := time.After(patience)
	for {
		f.update()
		if cond() {
			return
		}
		select {
		case <-f.acc.Changed():
		case <-deadline:
			require.Fail(f.t, "it does not come to be that "+fmt.Sprintf(what, args...), "has %v\n%s", f.shown, f.acc.Status())
		}
	}
}

// says waits until the query has a state and a message, and returns its status. It reads no
// snapshot meanwhile.
func (f *follower) says(state kates.State, message string) kates.QueryStatus {
	f.t.Helper()
	var st kates.QueryStatus
	require.Eventually(f.t, func() bool {
		st = f.acc.Status().Queries[0]
		return st.State == state && strings.Contains(st.Error, message)
	}, patience, 10*time.Millisecond, "%s: %s", state, message)
	return st
}

// saysWhy checks that Ready gives the error of the status as its reason. Each try may end in an
// error of another text, since a watch's URL has a random time-out. So they are compared until no
// try came between.
func (f *follower) saysWhy() {
	f.t.Helper()
	require.EventuallyWithT(f.t, func(c *assert.CollectT) {
		why := f.acc.Status().Queries[0].Error
		require.NotEmpty(c, why)
		require.ErrorContains(c, f.acc.Ready(), why)
	}, patience, 10*time.Millisecond)
}

// unchanged checks that there is nothing new to show.
func (f *follower) unchanged() {
	f.t.Helper()
	updates := f.updates
	f.update()
	require.Equal(f.t, updates, f.updates, "what is shown has changed, to %v", f.shown)
}

// quiet checks that no more changes are reported once everything has arrived.
func (f *follower) quiet() {
	f.t.Helper()
	require.NoError(f.t, f.client.Sync(f.t.Context()))
	f.unchanged()
	// A watch that still waits after a failure reports nothing, and opens again.
	assert.Eventually(f.t, func() bool { return f.acc.Status().Err() == nil }, patience, 10*time.Millisecond, "%s", f.acc.Status())
}

// change creates, changes and deletes objects as another program, depending on the round.
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

// wait returns when a condition of the faults or the network becomes true.
func (f *follower) wait(cond func() bool, what string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeoutCause(f.t.Context(), patience, errors.New("it does not come to be that "+what))
	defer cancel()
	require.NoError(f.t, f.faults.Wait(ctx, cond))
}

// now is for open answers. It waits for one: what is shown may be ahead of the watch that follows
// it.
func (f *follower) now(m katestest.Match) *katestest.Trigger {
	f.t.Helper()
	f.wait(func() bool { return len(f.faults.Open(m)) > 0 }, "an answer is open")
	return f.faults.Now(m)
}

// idle leaves at least n connections without a request, by making requests at the same time. If
// one was answered before the next was sent, they shared a connection, and idle tries again.
// Frozen connections do not count: the client has given them up.
func (f *follower) idle(n, frozen int) {
	f.t.Helper()
	f.network.Delay(200 * time.Millisecond)
	defer f.network.Delay(0)
	for try := 0; f.network.Open()-frozen <= n; try++ {
		require.Less(f.t, try, 20, "there are %d connections, %d of them frozen", f.network.Open(), frozen)
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				err := f.client.Get(f.t.Context(), object(configMaps, f.ns, "none", nil), nil)
				assert.True(f.t, kates.IsNotFound(err), err)
			})
		}
		wg.Wait()
	}
}
