package kinds

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kates-go/kates/internal/test/suite/kindstest"
)

// uncached is discovery without a memory.
type uncached struct {
	discovery.CachedDiscoveryInterface
}

func (u uncached) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return discovery.NewDiscoveryClient(u.RESTClient()).ServerGroupsAndResources()
}
func (uncached) Invalidate() {}
func (uncached) Fresh() bool { return false }

func v1Resource(group, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
}

func TestG4ResourcesOfOneStorageHaveOneIdentity(t *testing.T) {
	for _, coreFirst := range []bool{true, false} {
		onEachBackend(t, func(t *testing.T, _ *kindstest.Server, r *Resolver, _ *testclock.FakePassiveClock) {
			core, grouped := v1Resource("", "events"), v1Resource("events.k8s.io", "events")
			if !coreFirst {
				core, grouped = grouped, core
			}
			assert.Equal(t, "events", r.Storage(t.Context(), core))
			assert.Equal(t, "events", r.Storage(t.Context(), grouped))
			assert.Equal(t, "services", r.Storage(t.Context(), v1Resource("", "services")))
			assert.Equal(t, "services.serving.knative.dev", r.Storage(t.Context(), v1Resource("serving.knative.dev", "services")))
			hpa := schema.GroupVersionResource{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"}
			assert.Equal(t, "horizontalpodautoscalers.autoscaling", r.Storage(t.Context(), hpa))
			hpa.Version = "v2"
			assert.Equal(t, "horizontalpodautoscalers.autoscaling", r.Storage(t.Context(), hpa))
		})
	}
}

func TestStorageAsksOnlyAboutNamesThatSeveralGroupsHaveAndOnce(t *testing.T) {
	s, r, _ := backends["aggregated"](t)
	r.Storage(t.Context(), v1Resource("apps", "deployments"))
	assert.Zero(t, s.Requests()["/apis/apps/v1"])
	for range 3 {
		r.Storage(t.Context(), v1Resource("events.k8s.io", "events"))
	}
	assert.Equal(t, 1, s.Requests()["/apis/events.k8s.io/v1"])
	assert.Equal(t, 1, s.Requests()["/api/v1"])
}

func TestG4AStorageIdentityOutlivesAnUpgradeOfTheServer(t *testing.T) {
	onEachBackend(t, func(t *testing.T, s *kindstest.Server, r *Resolver, _ *testclock.FakePassiveClock) {
		core, grouped := v1Resource("", "events"), v1Resource("events.k8s.io", "events")
		assert.Equal(t, "events", r.Storage(t.Context(), grouped))
		s.Serve("m.example.com/v1", kindstest.Hashed(kindstest.Resource("Widget", "widgets"), "widget-hash"))
		s.Serve("z.example.com/v1", kindstest.Hashed(kindstest.Resource("Widget", "widgets"), "widget-hash"))
		assert.NoError(t, r.Invalidate())
		assert.Equal(t, "widgets.m.example.com", r.Storage(t.Context(), v1Resource("z.example.com", "widgets")))
		assert.Equal(t, "widgets.m.example.com", r.Storage(t.Context(), v1Resource("m.example.com", "widgets")))
		s.Serve("events.k8s.io/v1", kindstest.Hashed(kindstest.Resource("Event", "events"), "new-hash"))
		s.Serve("v1", kindstest.Hashed(kindstest.Resource("Event", "events"), "new-hash"))
		// A group that sorts before all others does not rename the known ones.
		s.Serve("a.example.com/v1", kindstest.Hashed(kindstest.Resource("Event", "events"), "new-hash"), kindstest.Hashed(kindstest.Resource("Widget", "widgets"), "widget-hash"))
		assert.NoError(t, r.Invalidate())
		assert.Equal(t, "events", r.Storage(t.Context(), v1Resource("a.example.com", "events")))
		assert.Equal(t, "widgets.m.example.com", r.Storage(t.Context(), v1Resource("a.example.com", "widgets")))
		assert.Equal(t, "events", r.Storage(t.Context(), grouped))
		assert.Equal(t, "events", r.Storage(t.Context(), core))
	})
}

func TestAStorageThatCannotBeAskedForIsAskedForAgain(t *testing.T) {
	s, r, _ := backends["aggregated"](t)
	grouped := v1Resource("events.k8s.io", "events")
	r.current(t.Context())
	s.Change(func() { s.Down = http.StatusInternalServerError })
	assert.Equal(t, "events.events.k8s.io", r.Storage(t.Context(), grouped))
	s.Change(func() { s.Down = 0 })
	assert.Equal(t, "events", r.Storage(t.Context(), grouped))
}

func TestHashesThatDiscoveryHasAreNotAskedFor(t *testing.T) {
	s, r, _ := backends["legacy"](t)
	assert.Equal(t, "events", r.Storage(t.Context(), v1Resource("events.k8s.io", "events")))
	assert.Equal(t, 1, s.Requests()["/apis/events.k8s.io/v1"], "by discovery")
}

func TestWithoutHashesAResourceIsItsOwnStorage(t *testing.T) {
	lists := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{kindstest.Resource("Event", "events")}},
		{GroupVersion: "events.k8s.io/v1", APIResources: []metav1.APIResource{kindstest.Resource("Event", "events")}},
	}
	disco := memory.NewMemCacheClient(&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: lists}})
	r := New(nil, disco, testclock.NewFakePassiveClock(time.Unix(1000, 0)))
	assert.Equal(t, "events", r.Storage(t.Context(), v1Resource("", "events")))
	assert.Equal(t, "events.events.k8s.io", r.Storage(t.Context(), v1Resource("events.k8s.io", "events")))
	assert.Equal(t, "deployments.apps", New(kindstest.SchemeMapper(t), nil, nil).Storage(t.Context(), v1Resource("apps", "deployments")))
}
