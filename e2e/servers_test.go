package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// breakable starts a cluster for one test, with the custom kinds and a namespace.
func breakable(t *testing.T, flags ...string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Start(t.Context(), flags...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Kill()) })
	require.NoError(t, c.InstallCRDs(t.Context(), "../testdata/crds"))
	k, err := kubernetes.NewForConfig(c.Config)
	require.NoError(t, err)
	_, err = k.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return c
}

// at returns a cluster's configuration for one of its API servers.
func at(c *cluster.Cluster, s *cluster.Server) *rest.Config {
	config := rest.CopyConfig(c.Config)
	config.Host = "https://" + s.Address()
	return config
}

// watchers are the ways to watch with which a failure is tried.
var watchers = map[string]struct {
	kind    schema.GroupVersionResource
	options []kates.Option
}{
	"config maps, streamed": {configMaps, nil},
	"config maps, paged":    {configMaps, []kates.Option{kates.Tuning{Lists: kates.PagedLists, PageSize: 2}}},
	"hosts, streamed":       {hosts, nil},
	"hosts, paged":          {hosts, []kates.Option{kates.Tuning{Lists: kates.PagedLists, PageSize: 2}}},
}

// together holds one follower for each way, all in one cluster. They do each step side by side; a
// failing test names the follower.
type together map[string]*follower

// watching starts the followers on some objects. The other writers use a server of their own.
func watching(t *testing.T, config, others *rest.Config, set func(*rest.Config), options ...kates.Option) together {
	t.Helper()
	all := together{}
	for name, w := range watchers {
		f := newFollowerOf(t, config, "ns", w.kind, set, append(options, w.options...)...)
		f.writeTo(others)
		f.start()
		all[name] = f
	}
	all.change(0)
	all.each(func(f *follower) { f.arrive() })
	return all
}

// change writes objects of each kind as another program.
func (all together) change(round int) {
	done := map[schema.GroupVersionResource]bool{}
	for _, f := range all {
		if !done[f.kind] {
			done[f.kind] = true
			f.change(round)
		}
	}
}

func (all together) each(do func(*follower)) {
	for _, f := range all {
		do(f)
	}
}

// whole counts the answered lists so far, without the probes, which ask for one object.
func (f *follower) whole() int {
	return len(f.faults.Requests(katestest.Match{Resource: f.kind.Resource, Where: func(r katestest.Request) bool {
		if r.Status != http.StatusOK || r.Query.Get("continue") != "" || r.Query.Get("fieldSelector") != "" {
			return false
		}
		return r.StreamedList() || r.Verb == "list" && r.Query.Get("limit") != "1" && r.Query.Get("limit") != ""
	}}))
}

// down checks that a follower whose server is away keeps its objects and reports the failure.
func (f *follower) down() {
	f.t.Helper()
	require.Eventually(f.t, func() bool { return f.acc.Status().Queries[0].State == kates.StateRetrying }, patience, time.Millisecond)
	q := f.acc.Status().Queries[0]
	assert.NotEmpty(f.t, q.Error)
	assert.ErrorContains(f.t, f.acc.Status().Err(), q.Error)
	assert.NoError(f.t, f.acc.Ready(), "what is shown stays good")
	updates := f.updates
	f.update()
	assert.Equal(f.t, updates, f.updates, "G8: an outage changes nothing")
}
