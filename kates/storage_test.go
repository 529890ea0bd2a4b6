package kates

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
		onEachBackend(t, func(t *testing.T, _ *discoveryServer, r *resolver, _ *testclock.FakePassiveClock) {
			core, grouped := v1Resource("", "events"), v1Resource("events.k8s.io", "events")
			if !coreFirst {
				core, grouped = grouped, core
			}
			assert.Equal(t, "events", r.storage(core))
			assert.Equal(t, "events", r.storage(grouped))
			assert.Equal(t, "services", r.storage(v1Resource("", "services")))
			assert.Equal(t, "services.serving.knative.dev", r.storage(v1Resource("serving.knative.dev", "services")))
			hpa := schema.GroupVersionResource{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"}
			assert.Equal(t, "horizontalpodautoscalers.autoscaling", r.storage(hpa))
			hpa.Version = "v2"
			assert.Equal(t, "horizontalpodautoscalers.autoscaling", r.storage(hpa))
		})
	}
}

func TestStorageAsksOnlyAboutNamesThatSeveralGroupsHaveAndOnce(t *testing.T) {
	s, r, _ := backends["aggregated"](t)
	r.storage(v1Resource("apps", "deployments"))
	assert.Zero(t, s.requests()["/apis/apps/v1"])
	for range 3 {
		r.storage(v1Resource("events.k8s.io", "events"))
	}
	assert.Equal(t, 1, s.requests()["/apis/events.k8s.io/v1"])
	assert.Equal(t, 1, s.requests()["/api/v1"])
}

func TestG4AStorageIdentityOutlivesAnUpgradeOfTheServer(t *testing.T) {
	onEachBackend(t, func(t *testing.T, s *discoveryServer, r *resolver, _ *testclock.FakePassiveClock) {
		core, grouped := v1Resource("", "events"), v1Resource("events.k8s.io", "events")
		assert.Equal(t, "events", r.storage(grouped))
		s.serve("m.example.com/v1", hashed(apiResource("Widget", "widgets"), "widget-hash"))
		s.serve("z.example.com/v1", hashed(apiResource("Widget", "widgets"), "widget-hash"))
		assert.NoError(t, r.invalidate())
		assert.Equal(t, "widgets.m.example.com", r.storage(v1Resource("z.example.com", "widgets")))
		assert.Equal(t, "widgets.m.example.com", r.storage(v1Resource("m.example.com", "widgets")))
		s.serve("events.k8s.io/v1", hashed(apiResource("Event", "events"), "new-hash"))
		s.serve("v1", hashed(apiResource("Event", "events"), "new-hash"))
		// A group that sorts before all others does not rename the known ones.
		s.serve("a.example.com/v1", hashed(apiResource("Event", "events"), "new-hash"), hashed(apiResource("Widget", "widgets"), "widget-hash"))
		assert.NoError(t, r.invalidate())
		assert.Equal(t, "events", r.storage(v1Resource("a.example.com", "events")))
		assert.Equal(t, "widgets.m.example.com", r.storage(v1Resource("a.example.com", "widgets")))
		assert.Equal(t, "events", r.storage(grouped))
		assert.Equal(t, "events", r.storage(core))
	})
}

func TestAStorageThatCannotBeAskedForIsAskedForAgain(t *testing.T) {
	s, r, _ := backends["aggregated"](t)
	grouped := v1Resource("events.k8s.io", "events")
	r.current(t.Context())
	s.change(func() { s.down = http.StatusInternalServerError })
	assert.Equal(t, "events.events.k8s.io", r.storage(grouped))
	s.change(func() { s.down = 0 })
	assert.Equal(t, "events", r.storage(grouped))
}

func TestHashesThatDiscoveryHasAreNotAskedFor(t *testing.T) {
	s, r, _ := backends["legacy"](t)
	assert.Equal(t, "events", r.storage(v1Resource("events.k8s.io", "events")))
	assert.Equal(t, 1, s.requests()["/apis/events.k8s.io/v1"], "by discovery")
}

func TestWithoutHashesAResourceIsItsOwnStorage(t *testing.T) {
	lists := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{apiResource("Event", "events")}},
		{GroupVersion: "events.k8s.io/v1", APIResources: []metav1.APIResource{apiResource("Event", "events")}},
	}
	disco := memory.NewMemCacheClient(&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: lists}})
	r := newResolver(nil, disco, testclock.NewFakePassiveClock(time.Unix(1000, 0)))
	assert.Equal(t, "events", r.storage(v1Resource("", "events")))
	assert.Equal(t, "events.events.k8s.io", r.storage(v1Resource("events.k8s.io", "events")))
	assert.Equal(t, "deployments.apps", newResolver(schemeMapper(t), nil, nil).storage(v1Resource("apps", "deployments")))
}
