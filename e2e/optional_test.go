package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var (
	hostReads   = katestest.Match{Resource: "hosts", Where: reads.Where}
	groupsAlone = katestest.Match{Verb: "get", Where: func(r katestest.Request) bool { return r.Path == "/apis" }}
)

// outages are ways in which a server does not say whether it serves a kind, or which objects
// exist.
var outages = map[string]func(f *katestest.Faults) *katestest.Rule{
	"discovery 503":     func(f *katestest.Faults) *katestest.Rule { return f.On(discoveries).Status(503, "", 0) },
	"discovery 429":     func(f *katestest.Faults) *katestest.Rule { return f.On(discoveries).Status(429, "", 0) },
	"discovery 401":     func(f *katestest.Faults) *katestest.Rule { return f.On(discoveries).Status(401, "", 0) },
	"discovery 403":     func(f *katestest.Faults) *katestest.Rule { return f.On(discoveries).Status(403, "", 0) },
	"discovery refused": func(f *katestest.Faults) *katestest.Rule { return f.On(discoveries).Fail(nil) },
	"discovery late":    func(f *katestest.Faults) *katestest.Rule { return f.On(discoveries).Fail(context.DeadlineExceeded) },
	"groups 503":        func(f *katestest.Faults) *katestest.Rule { return f.On(groupsAlone).Status(503, "", 0) },
	"groups 403":        func(f *katestest.Faults) *katestest.Rule { return f.On(groupsAlone).Status(403, "", 0) },
	"groups 404":        func(f *katestest.Faults) *katestest.Rule { return f.On(groupsAlone).Status(404, "", 0) },
	"lists 500":         func(f *katestest.Faults) *katestest.Rule { return f.On(hostReads).Status(500, "", 0) },
	"lists 503":         func(f *katestest.Faults) *katestest.Rule { return f.On(hostReads).Status(503, "", 0) },
	"lists 429":         func(f *katestest.Faults) *katestest.Rule { return f.On(hostReads).Status(429, "", 0) },
	"lists 401":         func(f *katestest.Faults) *katestest.Rule { return f.On(hostReads).Status(401, "", 0) },
	"lists 404":         func(f *katestest.Faults) *katestest.Rule { return f.On(hostReads).Status(http.StatusNotFound, "", 0) },
	"lists refused":     func(f *katestest.Faults) *katestest.Rule { return f.On(hostReads).Fail(nil) },
}

func TestG1AnOutageHoldsTheFirstSignalThoughTheKindIsOptional(t *testing.T) {
	t.Parallel()
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFollower(t, nil, kates.Tuning{KindPoll: 500 * time.Millisecond})
			fill(t, f.ns, 2, hosts)
			f.list = func() []kates.Unstructured { return f.listed(hosts, f.ns, "") }
			rule := outage(f.faults)
			f.watch(kates.Query{Kind: "hosts.getambassador.io", Namespace: f.ns, Optional: true})
			f.wait(func() bool { return rule.Hits() >= 4 }, "it has been tried 4 times")
			f.update()
			require.Zero(t, f.updates, "an outage looks like an empty cluster")
			st := f.acc.Status().Queries[0]
			assert.False(t, st.Absent)
			assert.NotEmpty(t, st.Error)
			assert.ErrorContains(t, f.acc.Ready(), `query "Objects" (hosts.getambassador.io)`)
			f.saysWhy()
			if strings.HasSuffix(name, "403") {
				assert.Contains(t, st.Error, "system:discovery", "who may not ask what is served is told")
			}
			f.faults.Heal()
			f.arrive()
			assert.Equal(t, 1, f.updates, "the first snapshot has all")
			f.quiet()
		})
	}
}

func TestG1AnOutageHoldsTheFirstSignalOfARequiredKindAndIsNamed(t *testing.T) {
	t.Parallel()
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFollower(t, nil)
			fill(t, f.ns, 2, hosts)
			f.list = func() []kates.Unstructured { return f.listed(hosts, f.ns, "") }
			rule := outage(f.faults)
			_, err := f.client.Watch(t.Context(), kates.Query{Name: "Objects", Kind: "hosts.getambassador.io", Namespace: f.ns})
			if err != nil {
				assert.ErrorContains(t, err, `query "Objects"`)
				assert.ErrorIs(t, err, kates.ErrIncompleteDiscovery)
				f.faults.Heal()
				require.Eventually(t, func() bool {
					f.acc, err = f.client.Watch(t.Context(), kates.Query{Name: "Objects", Kind: "hosts.getambassador.io", Namespace: f.ns})
					return err == nil
				}, patience, 50*time.Millisecond, "the next try asks again")
				f.arrive()
				return
			}
			f.watch(kates.Query{Kind: "hosts.getambassador.io", Namespace: f.ns})
			f.wait(func() bool { return rule.Hits() >= 3 }, "it has been tried 3 times")
			f.update()
			require.Zero(t, f.updates)
			assert.ErrorContains(t, f.acc.Ready(), `query "Objects" (hosts.getambassador.io)`)
			f.saysWhy()
			f.faults.Heal()
			f.arrive()
			assert.Equal(t, 1, f.updates)
		})
	}
}

func TestG8OptionalKindsThatAreInstalledLaterJoinAndDiscoveryIsAskedSparingly(t *testing.T) {
	t.Parallel()
	f := newFollower(t, nil)
	g := newGadget(t, f.ns)
	for i := range 3 { // readers, each with two kinds that are never installed
		_, err := f.client.Watch(t.Context(), kates.Query{Name: "A", Kind: fmt.Sprintf("as.a%d.%s", i, g.group), Optional: true},
			kates.Query{Name: "B", Kind: fmt.Sprintf("bs.b%d.%s", i, g.group), Optional: true})
		require.NoError(t, err)
	}
	f.list = func() []kates.Unstructured { return nil }
	f.watch(kates.Query{Kind: g.kind, Namespace: f.ns, Optional: true})
	f.until(func() bool { return f.updates == 1 && f.absent }, "it is not served")
	assert.True(t, f.says(kates.StateMissing, "doesn't have a resource type").Absent)
	require.NoError(t, f.acc.Status().Err())
	g.hammers(f)
	g.install("v1")
	g.make("v1", f.ns, "a", "b")
	f.list = func() []kates.Unstructured { return f.listed(g.resource("v1"), f.ns, "") }
	f.arrive() // with an add for each
	assert.False(t, f.absent)
	f.quiet()
	f.client.Close()
	g.remove()
}

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// aggregate registers an API version whose server is down. The returned function removes it.
func aggregate(t *testing.T, group string) (remove func()) {
	t.Helper()
	d, name := foreign(t).Resource(apiServices), "v1."+group
	_, err := d.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "default", "name": "nobody"},
		},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	remove = func() { _ = d.Delete(context.Background(), name, metav1.DeleteOptions{}) }
	t.Cleanup(remove)
	return remove
}

// The test runs alone: while it runs, discovery is partial for all clients.
func TestG8AnAggregatedAPIThatIsDownLeavesItsKindsInDoubtAndNoOthers(t *testing.T) {
	f := newFollower(t, nil, kates.Tuning{KindPoll: 500 * time.Millisecond})
	group := f.ns + ".aggregated.io"
	remove := aggregate(t, group)
	inDoubt := func() bool {
		_, err := f.client.Watch(t.Context(), kates.Query{Name: "Objects", Kind: "widgets." + group})
		require.Error(t, err)
		return errors.Is(err, kates.ErrIncompleteDiscovery)
	}
	require.Eventually(t, inDoubt, patience, 100*time.Millisecond, "discovery is partial")

	f.list = func() []kates.Unstructured { return nil }
	f.watch(kates.Query{Kind: "widgets." + group, Optional: true})
	others, err := f.client.Watch(t.Context(), kates.Query{Name: "Hosts", Kind: "hosts.getambassador.io", Namespace: f.ns},
		kates.Query{Name: "None", Kind: "widgets.nowhere-" + group, Optional: true})
	require.NoError(t, err)
	select {
	case <-others.Changed(): // neither is in doubt
	case <-time.After(patience):
		require.Fail(t, "kinds of other groups wait", "%s", others.Status())
	}
	pause(t.Context(), 2*time.Second)
	f.update()
	require.Zero(t, f.updates, "G1: an API that is down looks like a kind that is not served")
	require.ErrorContains(t, f.acc.Ready(), "discovery is incomplete")
	require.ErrorContains(t, f.acc.Ready(), group)
	remove()
	f.until(func() bool { return f.updates == 1 && f.absent }, "it is certainly not served")

	aggregate(t, group)
	require.Eventually(t, inDoubt, patience, 100*time.Millisecond, "discovery is partial again")
	pause(t.Context(), time.Second)
	f.unchanged()
	assert.NoError(t, f.acc.Ready(), "once certain, it stays so")
	remove()
	require.Eventually(t, func() bool { return !inDoubt() }, patience, 100*time.Millisecond, "for the tests to come")
}

// A kind that has no watch, and one that has nothing but create.
func TestAnOptionalKindThatCannotBeWatchedIsAnErrorOfWatch(t *testing.T) {
	t.Parallel()
	c := newWire(t).client(t)
	for _, kind := range []string{"componentstatuses", "selfsubjectaccessreviews.authorization.k8s.io"} {
		_, err := c.Watch(t.Context(), kates.Query{Name: "Q", Kind: kind, Optional: true})
		require.ErrorContains(t, err, "cannot be watched: it has only", kind)
	}
}
