package kinds

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kates-go/kates/internal/test/suite/kindstest"
)

func TestAResolverIsARESTMapper(t *testing.T) {
	onEachBackend(t, func(t *testing.T, _ *kindstest.Server, r *Resolver, _ *testclock.FakePassiveClock) {
		m := r.RESTMapper()
		gvk, err := m.KindFor(schema.GroupVersionResource{Resource: "deployments"})
		require.NoError(t, err)
		assert.Equal(t, "apps/v1, Kind=Deployment", gvk.String())
		gvr, err := m.ResourceFor(schema.GroupVersionResource{Group: "getambassador.io", Resource: "host"})
		require.NoError(t, err)
		assert.Equal(t, "hosts", gvr.Resource)
		all, err := m.KindsFor(schema.GroupVersionResource{Resource: "services"})
		require.NoError(t, err)
		require.Greater(t, len(all), 1, "of all groups")
		assert.Equal(t, "/v1, Kind=Service", all[0].String())
		resources, err := m.ResourcesFor(schema.GroupVersionResource{Group: "autoscaling", Resource: "hpa"})
		require.NoError(t, err)
		require.Len(t, resources, 2)
		assert.Equal(t, "v2", resources[0].Version)

		hpa := schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
		mapping, err := m.RESTMapping(hpa)
		require.NoError(t, err)
		assert.Equal(t, hpaV2, describeMapping(mapping))
		mapping, err = m.RESTMapping(hpa, "v9", "v1")
		require.NoError(t, err)
		assert.Equal(t, hpaV1, describeMapping(mapping))
		mappings, err := m.RESTMappings(hpa)
		require.NoError(t, err)
		assert.Len(t, mappings, 2)

		singular, err := m.ResourceSingularizer("deployments.apps")
		require.NoError(t, err)
		assert.Equal(t, "deployment", singular)
	})
}

func TestARESTMapperSaysWhatIsNoKind(t *testing.T) {
	onEachBackend(t, func(t *testing.T, _ *kindstest.Server, r *Resolver, _ *testclock.FakePassiveClock) {
		m := r.RESTMapper()
		for _, gk := range []schema.GroupKind{
			{Kind: "Deployment"}, {Group: "apps", Kind: "deployments"}, {Kind: "Nothing"}, {},
		} {
			_, err := m.RESTMapping(gk)
			assert.Error(t, err, "%v", gk)
			if gk.Kind != "" {
				assert.True(t, meta.IsNoMatchError(err), "%v: %v", gk, err)
			}
		}
		_, err := m.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v9")
		assert.True(t, meta.IsNoMatchError(err), "%v", err)
		_, err = m.KindFor(schema.GroupVersionResource{Resource: "nothing"})
		assert.True(t, meta.IsNoMatchError(err), "%v", err)
		_, err = m.KindFor(schema.GroupVersionResource{Group: "apps", Version: "v9", Resource: "deployments"})
		assert.True(t, meta.IsNoMatchError(err), "%v", err)
	})
}
