package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// told is one call of a reconciler of hosts.
type told struct {
	key, uid, owned string
	departed        controller.Departure
	deleting        bool
}

// tell returns a reconciler that reports each call.
func tell(to chan<- told) func(context.Context, *hostParts) (controller.Result, error) {
	return func(_ context.Context, p *hostParts) (controller.Result, error) {
		owned := ""
		for _, cm := range p.Maps {
			owned += cm.Name + " "
		}
		to <- told{p.Info.Key, string(p.Root.GetUID()), owned, p.Info.Departure, p.Root.GetDeletionTimestamp() != nil}
		return controller.Done, nil
	}
}

// reconciling runs a controller on a replica until the replica is stopped.
func reconciling[P any](r *replica, f func(context.Context, *P) (controller.Result, error), options ...kates.RunOption) *controller.Controller[P] {
	r.t.Helper()
	c, err := controller.New(r.client, "test", f, options...)
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	r.cancel, r.done = cancel, done
	go func() { done <- c.Run(ctx) }()
	return c
}

// hostsIn returns the queries of hostParts in a namespace.
func hostsIn(ns string) []kates.RunOption {
	return []kates.RunOption{kates.Query{Name: "Root", Namespace: ns}, kates.Query{Name: "Maps", Namespace: ns}}
}

// make makes a host, and a config map that it controls.
func (r *replica) make(name string, labels map[string]string, finalizers ...string) *kates.Unstructured {
	r.t.Helper()
	u := hostOf(r.ns, name, 1, "x")
	u.SetLabels(labels)
	u.SetFinalizers(finalizers)
	host, err := r.others.Resource(hosts).Namespace(r.ns).Create(r.t.Context(), u, metav1.CreateOptions{})
	require.NoError(r.t, err)
	cm := object(configMaps, r.ns, name+"-"+string(host.GetUID())[:8], nil)
	require.NoError(r.t, kates.SetControllerReference(host, cm))
	_, err = r.others.Resource(configMaps).Namespace(r.ns).Create(r.t.Context(), cm, metav1.CreateOptions{})
	require.NoError(r.t, err)
	return host
}

func (r *replica) removeHost(name string) {
	r.t.Helper()
	require.NoError(r.t, r.others.Resource(hosts).Namespace(r.ns).Delete(r.t.Context(), name, metav1.DeleteOptions{}))
}

func (r *replica) patchHost(name, patch string) {
	r.t.Helper()
	_, err := r.others.Resource(hosts).Namespace(r.ns).Patch(r.t.Context(), name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	require.NoError(r.t, err)
}

func TestARootThatDepartsIsReconciledWithWhatItOwnedAndAFinalizerMakesThatARootThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	r := newReplica(t, namespace(t))
	first := r.make("h", nil)
	kept := r.make("kept", nil, "example.com/hold")
	calls := make(chan told, 10)
	reconciling(r, tell(calls), hostsIn(r.ns)...)
	owned := "h-" + string(first.GetUID())[:8] + " "
	assert.Equal(t, told{key: r.ns + "/h", uid: string(first.GetUID()), owned: owned}, receive(t, calls))
	receive(t, calls)
	r.removeHost("h")
	assert.Equal(t, told{key: r.ns + "/h", uid: string(first.GetUID()), owned: owned, departed: controller.Deleted}, receive(t, calls))
	second := r.make("h", nil) // nothing has collected what the first one owned
	now := receive(t, calls)
	for now.owned == "" {
		now = receive(t, calls)
	}
	assert.Equal(t, told{key: r.ns + "/h", uid: string(second.GetUID()), owned: "h-" + string(second.GetUID())[:8] + " "}, now)
	assert.Empty(t, r.faults.Requests(katestest.Match{Verb: "get", Resource: "hosts"}), "no need to ask")

	r.removeHost("kept")
	now = receive(t, calls)
	assert.True(t, now.deleting)
	assert.Empty(t, now.departed)
	r.patchHost("kept", `{"metadata":{"finalizers":null}}`)
	now = receive(t, calls)
	assert.Equal(t, controller.Deleted, now.departed)
	assert.Equal(t, string(kept.GetUID()), now.uid)
	r.stop()
}

func TestARootThatLeftItsSelectorIsToldFromOneThatWasDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newReplica(t, namespace(t))
	on := map[string]string{"on": "yes"}
	r.make("left", on)
	r.make("deleted", on)
	r.make("replaced", on)
	calls := make(chan told, 10)
	reconciling(r, tell(calls), kates.Query{Name: "Root", Namespace: r.ns, LabelSelector: "on"}, kates.Query{Name: "Maps", Namespace: r.ns})
	for range 3 {
		assert.Empty(t, receive(t, calls).departed)
	}
	r.patchHost("left", `{"metadata":{"labels":{"on":null}}}`)
	assert.Equal(t, controller.Left, receive(t, calls).departed)
	r.removeHost("deleted")
	assert.Equal(t, controller.Deleted, receive(t, calls).departed)
	// The watch is late: when it shows that the root left, the root has been replaced already.
	rule := r.faults.On(katestest.Match{Verb: "get", Resource: "hosts"}).Hold()
	r.patchHost("replaced", `{"metadata":{"labels":{"on":null}}}`)
	poll(t, func() bool { return len(r.faults.Requests(katestest.Match{Verb: "get", Resource: "hosts"})) == 3 }, "it asks for the root that left")
	r.removeHost("replaced")
	r.make("replaced", nil)
	rule.Stop()
	assert.Equal(t, controller.Deleted, receive(t, calls).departed, "that of its name is another one")
	r.patchHost("left", `{"metadata":{"labels":{"on":"again"}}}`)
	again := receive(t, calls)
	assert.Equal(t, r.ns+"/left", again.key)
	assert.Empty(t, again.departed)
	r.stop()
}

func TestNoReconcileBeforeEveryKindIsCompleteThoughTheRootsAre(t *testing.T) {
	t.Parallel()
	r := newReplica(t, namespace(t))
	r.make("h", nil)
	rule := r.faults.On(katestest.Match{Resource: "configmaps"}).Status(503, "", 0)
	calls := make(chan told, 10)
	c := reconciling(r, tell(calls), hostsIn(r.ns)...)
	poll(t, func() bool {
		return len(r.faults.Requests(katestest.Match{Resource: "configmaps"})) > 3 && c.Status().Roots == 0
	}, "it has asked for config maps more than three times, and has no roots", func() any { return c.Status() })
	poll(t, func() bool {
		queries := c.Status().Watches.Queries
		return len(queries) == 2 && queries[0].State == kates.StateSynced
	}, "the roots are there", func() any { return c.Status() })
	assert.Empty(t, calls)
	assert.ErrorContains(t, c.Ready(), `query "Maps"`)
	rule.Stop()
	assert.NotEmpty(t, receive(t, calls).owned)
	assert.NoError(t, c.Ready())
	r.stop()
}

func TestControllersOfOneClientShareItsStreams(t *testing.T) {
	t.Parallel()
	r := newReplica(t, namespace(t))
	r.make("h", nil)
	one, two := make(chan told, 10), make(chan told, 10)
	reconciling(r, tell(one), hostsIn(r.ns)...)
	receive(t, one)
	end, done := r.cancel, r.done
	reconciling(r, tell(two), hostsIn(r.ns)...)
	receive(t, two)
	assert.Len(t, r.faults.Requests(katestest.Match{Resource: "hosts", Verb: "watch"}), 1)
	poll(t, func() bool { return len(r.faults.Requests(watches)) > 0 }, "a watch follows the list")
	r.patchHost("h", `{"spec":{"hostname":"2-y"}}`)
	receive(t, one)
	receive(t, two)
	end()
	assert.NoError(t, receive(t, done))
	r.patchHost("h", `{"spec":{"hostname":"3-z"}}`)
	receive(t, two)
	assert.Len(t, r.faults.Requests(watches), 1)
	r.stop()
	assert.Empty(t, r.client.Status().Queries)
}

func TestAControllersLeaderThatIsCutOffStopsBeforeItsFollowerReconciles(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	a, b := newReplica(t, ns), newReplica(t, ns)
	a.make("h", nil)
	began, ended := make(chan string, 10), make(chan time.Time, 1)
	lease := func(identity string) kates.RunOption {
		e := a.leading(identity)
		e.LeaseDuration, e.RenewDeadline = 10*time.Second, 8*time.Second
		return e
	}
	reconciling(a, func(ctx context.Context, _ *hostParts) (controller.Result, error) {
		began <- "a"
		<-ctx.Done()
		assert.ErrorIs(t, context.Cause(ctx), kates.ErrLeadershipLost)
		ended <- time.Now()
		return controller.Done, ctx.Err()
	}, append(hostsIn(ns), lease("a"), kates.WithShutdownTimeout(time.Hour))...)
	assert.Equal(t, "a", receive(t, began))
	reconciling(b, func(context.Context, *hostParts) (controller.Result, error) {
		began <- fmt.Sprint("b ", time.Now().Format(time.RFC3339Nano))
		return controller.Done, nil
	}, append(hostsIn(ns), lease("b"))...)
	poll(t, func() bool { return len(b.faults.Requests(leaseRequests)) > 2 }, "the other one asks for the lease")
	a.faults.On(katestest.Match{}).Fail(nil)
	assert.ErrorIs(t, a.ended(), kates.ErrLeadershipLost)
	stopped := receive(t, ended)
	var at string
	_, err := fmt.Sscanf(receive(t, began), "b %s", &at)
	require.NoError(t, err)
	when, err := time.Parse(time.RFC3339Nano, at)
	require.NoError(t, err)
	assert.True(t, stopped.Before(when), "it had stopped at %s, the other began at %s", stopped, when)
	b.stop()
}

// tenantParts has a root without a namespace. The root owns config maps in a namespace.
type tenantParts struct {
	Root *kates.Unstructured          `kates:"tenants.example.kates.io,root"`
	Maps map[string]*corev1.ConfigMap `kates:",owned"`
}

func TestG4ARootWithoutANamespaceOwnsWhatItsReconcilerMakesInNamespaces(t *testing.T) {
	t.Parallel()
	r := newReplica(t, namespace(t))
	tenants := hosts
	tenants.Group, tenants.Version, tenants.Resource = "example.kates.io", "v1", "tenants"
	u := &kates.Unstructured{Object: map[string]any{"apiVersion": "example.kates.io/v1", "kind": "Tenant", "metadata": map[string]any{"name": r.ns}}}
	_, err := r.others.Resource(tenants).Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
	seen := make(chan int, 10)
	reconciling(r, func(ctx context.Context, p *tenantParts) (controller.Result, error) {
		seen <- len(p.Maps)
		if len(p.Maps) == 3 {
			return controller.Done, nil
		}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.ns, Name: fmt.Sprint("m", len(p.Maps))}}
		if err := kates.SetControllerReference(p.Root, cm); err != nil {
			return controller.Done, err
		}
		return controller.RequeueAfter(0), r.client.Create(ctx, cm, nil)
	}, kates.Query{Name: "Root", FieldSelector: "metadata.name=" + r.ns}, kates.Query{Name: "Maps", Namespace: r.ns}, kates.WithQuietOwnWrites())
	for i := range 4 {
		assert.Equal(t, i, receive(t, seen), "each sees what the one before has made")
	}
	r.stop()
}
