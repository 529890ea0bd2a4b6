package kinds

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/restmapper"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kates-go/kates/internal/test/suite/kindstest"
)

// backends are the ways to make a resolver on a server.
var backends = map[string]func(*testing.T) (*kindstest.Server, *Resolver, *testclock.FakePassiveClock){
	"aggregated": func(t *testing.T) (*kindstest.Server, *Resolver, *testclock.FakePassiveClock) {
		s, clock := kindstest.New(t, false), testclock.NewFakePassiveClock(time.Unix(1000, 0))
		return s, New(nil, s.Discovery(t), clock), clock
	},
	"legacy": func(t *testing.T) (*kindstest.Server, *Resolver, *testclock.FakePassiveClock) {
		s, clock := kindstest.New(t, true), testclock.NewFakePassiveClock(time.Unix(1000, 0))
		return s, New(nil, s.Discovery(t), clock), clock
	},
	"mapper and aggregated": func(t *testing.T) (*kindstest.Server, *Resolver, *testclock.FakePassiveClock) {
		s, clock := kindstest.New(t, false), testclock.NewFakePassiveClock(time.Unix(1000, 0))
		disco := s.Discovery(t)
		return s, New(restmapper.NewDeferredDiscoveryRESTMapper(disco), disco, clock), clock
	},
}

func onEachBackend(t *testing.T, test func(*testing.T, *kindstest.Server, *Resolver, *testclock.FakePassiveClock)) {
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			s, r, clock := backend(t)
			test(t, s, r, clock)
		})
	}
}

func describeMapping(m *meta.RESTMapping) string {
	gv := m.GroupVersionKind.GroupVersion()
	if gv != m.Resource.GroupVersion() {
		return "group and version of kind and resource differ"
	}
	return gv.String() + " " + m.GroupVersionKind.Kind + " " + m.Resource.Resource + " " + string(m.Scope.Name())
}

const (
	servicesV1    = "v1 Service services namespace"
	deploymentsV1 = "apps/v1 Deployment deployments namespace"
	hostsV3       = "getambassador.io/v3alpha1 Host hosts namespace"
	hpaV2         = "autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers namespace"
	hpaV1         = "autoscaling/v1 HorizontalPodAutoscaler horizontalpodautoscalers namespace"
)

func TestKindTakesWhatKubectlTakesInAnyLetterCase(t *testing.T) {
	onEachBackend(t, func(t *testing.T, _ *kindstest.Server, r *Resolver, _ *testclock.FakePassiveClock) {
		for arg, want := range map[string]string{
			"svc": servicesV1, "SVC": servicesV1, "service": servicesV1, "Service": servicesV1, "services": servicesV1,
			"SERVICES": servicesV1, "services.v1.": servicesV1, "v1/Service": servicesV1, "v1/svc": servicesV1,
			"ns":                              "v1 Namespace namespaces root",
			"events":                          "v1 Event events namespace",
			"events.events.k8s.io":            "events.k8s.io/v1 Event events namespace",
			"Service.serving.knative.dev":     "serving.knative.dev/v1 Service services namespace",
			"kservice":                        "serving.knative.dev/v1 Service services namespace",
			"deploy":                          deploymentsV1,
			"deployments.apps":                deploymentsV1,
			"Deployment.Apps":                 deploymentsV1,
			"Deployment.v1.apps":              deploymentsV1,
			"DEPLOYMENTS.V1.APPS":             deploymentsV1,
			"deploy.v1.apps":                  deploymentsV1,
			"apps/v1/Deployment":              deploymentsV1,
			"apps/v1/deployments":             deploymentsV1,
			"ingress.networking":              "networking.k8s.io/v1 Ingress ingresses namespace",
			"ing.networking":                  "networking.k8s.io/v1 Ingress ingresses namespace",
			"hosts.getambassador.io":          hostsV3,
			"Host.v3alpha1.getambassador.io":  hostsV3,
			"hosts.v3alpha1.getambassador.io": hostsV3,
			"Host":                            hostsV3,
			"HOST":                            hostsV3,
			"host.getambassador.io":           hostsV3,
			"ambhost":                         hostsV3,
			"ah":                              hostsV3,
			"hpa":                             hpaV2,
			"hpa.v1.autoscaling":              hpaV1,
			"autoscaling/v1/hpa":              hpaV1,
			"legacy":                          "autoscaling/v1 Legacy legacies namespace",
		} {
			mapping, err := r.Kind(t.Context(), arg)
			if assert.NoError(t, err, arg) {
				assert.Equal(t, want, describeMapping(mapping), arg)
			}
		}
	})
}

func TestGVKResolvesObjectsAsTheyAreWritten(t *testing.T) {
	onEachBackend(t, func(t *testing.T, _ *kindstest.Server, r *Resolver, _ *testclock.FakePassiveClock) {
		for _, tc := range []struct{ group, version, kind, want string }{
			{"", "v1", "Service", servicesV1},
			{"", "v1", "svc", servicesV1},
			{"", "", "services", servicesV1},
			{"", "", "Deployment.v1.apps", deploymentsV1},
			{"", "", "deployment", deploymentsV1},
			{"apps", "", "deploy", deploymentsV1},
			{"apps", "v1", "DEPLOYMENT", deploymentsV1},
			{"serving.knative.dev", "v1", "Service", "serving.knative.dev/v1 Service services namespace"},
			{"getambassador.io", "v3alpha1", "host", hostsV3},
			{"autoscaling", "", "HorizontalPodAutoscaler", hpaV2},
			{"autoscaling", "v1", "HorizontalPodAutoscaler", hpaV1},
			{"autoscaling", "v1", "hpa", hpaV1},
		} {
			gvk := schema.GroupVersionKind{Group: tc.group, Version: tc.version, Kind: tc.kind}
			mapping, err := r.GVK(t.Context(), gvk)
			if assert.NoError(t, err, gvk) {
				assert.Equal(t, tc.want, describeMapping(mapping), gvk)
			}
		}
		_, err := r.GVK(t.Context(), schema.GroupVersionKind{Group: "apps", Version: "v1"})
		assert.ErrorContains(t, err, "kind is missing")
	})
}

func TestWhatIsNotServedIsAnUnknownKindError(t *testing.T) {
	onEachBackend(t, func(t *testing.T, _ *kindstest.Server, r *Resolver, _ *testclock.FakePassiveClock) {
		unknown := func(what string, err error) {
			t.Helper()
			var target *UnknownKindError
			require.ErrorAs(t, err, &target)
			assert.Equal(t, what, target.Kind)
			assert.EqualError(t, err, `the server doesn't have a resource type "`+what+`" (is a CustomResourceDefinition missing?)`)
			assert.True(t, meta.IsNoMatchError(err))
			assert.NotErrorIs(t, err, ErrIncompleteDiscovery)
		}
		for _, arg := range []string{
			"foo", "foos.example.com", "Deployment.v9.apps", "deployments.extensions", "v2/Service", "apps/v9/Deployment",
			"hpa.v3.autoscaling", "pods.v1.apps", "Eviction", "pods/eviction",
		} {
			_, err := r.Kind(t.Context(), arg)
			if arg == "pods/eviction" {
				assert.Error(t, err, "a version and kind, not a subresource")
				continue
			}
			unknown(arg, err)
		}
		for what, gvk := range map[string]schema.GroupVersionKind{
			"Deployment.v9.apps":    {Group: "apps", Version: "v9", Kind: "Deployment"},
			"Deployment.v1":         {Version: "v1", Kind: "Deployment"},
			"Ingress.v1.net":        {Group: "net", Version: "v1", Kind: "Ingress"},
			"Ingress.networking":    {Group: "networking", Kind: "Ingress"},
			"Service.v1.apps":       {Group: "apps", Version: "v1", Kind: "Service"},
			"hpa.v3.autoscaling":    {Group: "autoscaling", Version: "v3", Kind: "hpa"},
			"Legacy.v2.autoscaling": {Group: "autoscaling", Version: "v2", Kind: "Legacy"},
		} {
			_, err := r.GVK(t.Context(), gvk)
			unknown(what, err)
		}
	})
}

func TestMalformedKindsAreErrorsWithoutARequest(t *testing.T) {
	s, r, _ := backends["aggregated"](t)
	for _, arg := range []string{"", ".", ".apps", "/", "a/", "/Pod", "a/b/c/d"} {
		_, err := r.Kind(t.Context(), arg)
		assert.ErrorContains(t, err, "look up", "%q", arg)
	}
	assert.Empty(t, s.Requests())
}

func TestANewKindIsFoundAndUnknownOnesDoNotHammerTheServer(t *testing.T) {
	onEachBackend(t, func(t *testing.T, s *kindstest.Server, r *Resolver, clock *testclock.FakePassiveClock) {
		_, err := r.Kind(t.Context(), "widgets")
		require.Error(t, err)
		assert.Equal(t, 1, s.Requests()["/apis"], "what was just read is not read again")

		s.Serve("example.com/v1", kindstest.Resource("Widget", "widgets"))
		mapping, err := r.Kind(t.Context(), "widgets")
		require.NoError(t, err)
		assert.Equal(t, "example.com/v1 Widget widgets namespace", describeMapping(mapping))
		assert.Equal(t, 2, s.Requests()["/apis"])

		for range 10 {
			_, err = r.Kind(t.Context(), "gadgets")
			require.Error(t, err)
		}
		assert.Equal(t, 2, s.Requests()["/apis"], "within a second of the last reset")
		s.Serve("example.com/v1", kindstest.Resource("Widget", "widgets"), kindstest.Resource("Gadget", "gadgets"))
		clock.SetTime(clock.Now().Add(resetInterval))
		_, err = r.Kind(t.Context(), "gadgets")
		require.NoError(t, err)
		assert.Equal(t, 3, s.Requests()["/apis"])
		_, err = r.Kind(t.Context(), "pods")
		require.NoError(t, err)
		assert.Equal(t, 3, s.Requests()["/apis"], "known kinds need no request")
	})
}

func TestWhatClientGosCacheHadIsNotTakenForFresh(t *testing.T) {
	s := kindstest.New(t, false)
	disco := s.Discovery(t)
	_, _, err := disco.ServerGroupsAndResources()
	require.NoError(t, err)
	s.Serve("example.com/v1", kindstest.Resource("Widget", "widgets"))
	_, err = New(nil, disco, testclock.NewFakePassiveClock(time.Now())).Kind(t.Context(), "widgets")
	assert.NoError(t, err)
}

func TestInvalidateForgetsWhatWasServed(t *testing.T) {
	onEachBackend(t, func(t *testing.T, s *kindstest.Server, r *Resolver, _ *testclock.FakePassiveClock) {
		_, err := r.Kind(t.Context(), "hosts")
		require.NoError(t, err)
		s.Change(func() { delete(s.Lists, "getambassador.io/v3alpha1"); s.Groups = s.Groups[:len(s.Groups)-2] })
		_, err = r.Kind(t.Context(), "hosts")
		require.NoError(t, err, "cached")
		require.NoError(t, r.Invalidate())
		_, err = r.Kind(t.Context(), "hosts")
		var unknown *UnknownKindError
		assert.ErrorAs(t, err, &unknown)
	})
}

func TestPartialDiscoveryLeavesAbsenceInDoubt(t *testing.T) {
	onEachBackend(t, func(t *testing.T, s *kindstest.Server, r *Resolver, _ *testclock.FakePassiveClock) {
		s.Serve("metrics.k8s.io/v1beta1", kindstest.Resource("PodMetrics", "pods"))
		s.Change(func() { s.Broken["metrics.k8s.io/v1beta1"] = http.StatusServiceUnavailable })
		for _, arg := range []string{"foo", "foo.metrics.k8s.io", "podmetrics.metrics", "foo.v1beta1.metrics.k8s.io", "foo.v1."} {
			_, err := r.Kind(t.Context(), arg)
			assert.ErrorIs(t, err, ErrIncompleteDiscovery, arg)
			assert.ErrorContains(t, err, "metrics.k8s.io/v1beta1", arg)
			assert.False(t, meta.IsNoMatchError(err), arg)
			failed, ok := discovery.GroupDiscoveryFailedErrorGroups(err)
			assert.True(t, ok, arg)
			assert.Len(t, failed, 1, arg)
		}
		var unknown *UnknownKindError
		for _, arg := range []string{"foo.example.com", "Deployment.v9.apps", "v1/Foo"} {
			_, err := r.Kind(t.Context(), arg)
			assert.ErrorAs(t, err, &unknown, "%s: the failed group could not have it", arg)
		}
		_, err := r.Kind(t.Context(), "svc")
		assert.NoError(t, err, "what was found is certain")
	})
}

func TestAnOutageLeavesAbsenceInDoubtAndKnownKindsKnown(t *testing.T) {
	onEachBackend(t, func(t *testing.T, s *kindstest.Server, r *Resolver, clock *testclock.FakePassiveClock) {
		s.Change(func() { s.Down = http.StatusForbidden })
		_, err := r.Kind(t.Context(), "pods")
		require.ErrorIs(t, err, ErrIncompleteDiscovery)
		assert.True(t, apierrors.IsForbidden(err), "the cause can be told: %v", err)

		s.Change(func() { s.Down = 0 })
		_, err = r.Kind(t.Context(), "pods")
		require.NoError(t, err, "a failure is not remembered")

		s.Change(func() { s.Down = http.StatusInternalServerError })
		for range 3 {
			_, err = r.Kind(t.Context(), "foo")
			assert.ErrorIs(t, err, ErrIncompleteDiscovery, "within the second, too")
			_, err = r.Kind(t.Context(), "hosts")
			assert.NoError(t, err)
		}
		s.Change(func() { s.Down = 0 })
		clock.SetTime(clock.Now().Add(resetInterval))
		_, err = r.Kind(t.Context(), "foo")
		var unknown *UnknownKindError
		assert.ErrorAs(t, err, &unknown)
	})
}

func TestAServerWithoutGroupsIsAnOutage(t *testing.T) {
	onEachBackend(t, func(t *testing.T, s *kindstest.Server, r *Resolver, _ *testclock.FakePassiveClock) {
		if s.Legacy {
			return // it always has the core group
		}
		s.Change(func() { s.Groups = nil })
		_, err := r.Kind(t.Context(), "pods")
		assert.ErrorIs(t, err, ErrIncompleteDiscovery)
	})
	_, err := New(nil, memory.NewMemCacheClient(&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}), testclock.NewFakePassiveClock(time.Now())).Kind(t.Context(), "pods")
	assert.ErrorIs(t, err, ErrIncompleteDiscovery)
}

func TestAGroupServedEmptyIsACompleteAnswer(t *testing.T) {
	onEachBackend(t, func(t *testing.T, s *kindstest.Server, r *Resolver, _ *testclock.FakePassiveClock) {
		s.Serve("custom.metrics.k8s.io/v1beta1")
		_, err := r.Kind(t.Context(), "foo")
		var unknown *UnknownKindError
		assert.ErrorAs(t, err, &unknown)
	})
}

func TestAnEmptyCoreGroupIsNot(t *testing.T) {
	s, r, _ := backends["legacy"](t)
	s.Change(func() { s.Broken["v1"] = http.StatusNotFound })
	_, err := r.Kind(t.Context(), "pods")
	assert.ErrorIs(t, err, ErrIncompleteDiscovery)
}

func TestWhatHasNoListOrWatchCannotBeWatched(t *testing.T) {
	onEachBackend(t, func(t *testing.T, s *kindstest.Server, r *Resolver, clock *testclock.FakePassiveClock) {
		bindings, err := r.Kind(t.Context(), "bindings")
		require.NoError(t, err)
		assert.EqualError(t, r.CanWatch(t.Context(), bindings.Resource), "bindings cannot be watched: it has only create")
		pods, err := r.Kind(t.Context(), "pods")
		require.NoError(t, err)
		assert.NoError(t, r.CanWatch(t.Context(), pods.Resource))
		assert.NoError(t, r.CanWatch(t.Context(), schema.GroupVersionResource{Group: "x", Version: "v1", Resource: "unheard"}))

		clock.SetTime(clock.Now().Add(time.Minute))
		s.Serve("example.com/v1", metav1.APIResource{Name: "metrics", SingularName: "metric", Kind: "Metric", Verbs: []string{"get", "list"}})
		metrics, err := r.Kind(t.Context(), "metrics.example.com")
		require.NoError(t, err)
		assert.EqualError(t, r.CanWatch(t.Context(), metrics.Resource), "metrics.example.com cannot be watched: it has only get, list")

		s.Serve("example.com/v1", metav1.APIResource{Name: "metrics", SingularName: "metric", Kind: "Metric", Verbs: []string{"get", "list", "watch"}})
		clock.SetTime(clock.Now().Add(time.Minute))
		assert.NoError(t, r.CanWatch(t.Context(), metrics.Resource), "the server is asked again")
	})
	assert.NoError(t, New(kindstest.SchemeMapper(t), nil, nil).CanWatch(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "bindings"}))
}

func TestAContextBoundsALookUp(t *testing.T) {
	onEachBackend(t, func(t *testing.T, s *kindstest.Server, r *Resolver, _ *testclock.FakePassiveClock) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s.Change(func() { s.Hook = func(*http.Request) { cancel(errors.New("test")) } })
		_, err := r.Kind(ctx, "pods")
		require.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, ErrIncompleteDiscovery)
		s.Change(func() { s.Hook = nil })
		_, err = r.GVK(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
		assert.NoError(t, err)
	})
}
