package e2e

import (
	"slices"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/prometheus"
)

// measured adds up the series of controller-runtime's registry that have these labels:
// "name=value".
func measured(t *testing.T, name string, labels ...string) (sum float64) {
	t.Helper()
	all, err := metrics.Registry.Gather()
	require.NoError(t, err)
	for _, family := range all {
		if family.GetName() != name {
			continue
		}
		for _, one := range family.GetMetric() {
			if has := namesOf(one); !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) }) {
				sum += one.GetGauge().GetValue() + one.GetCounter().GetValue() + float64(one.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func namesOf(m *dto.Metric) (all []string) {
	for _, l := range m.GetLabel() {
		all = append(all, l.GetName()+"="+l.GetValue())
	}
	return all
}

func TestMetricsAreInTheRegistryOfControllerRuntime(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	m := prometheus.New()
	require.NoError(t, metrics.Registry.Register(m))
	defer metrics.Registry.Unregister(m)
	r := newReplica(t, ns, kates.WithObserver(m), kates.WithClusterName("e2e"))
	watch, err := kates.Watch[inputs](t.Context(), r.client.With(kates.WithName("measured")), kates.Query{Name: "ConfigMaps", Namespace: ns})
	require.NoError(t, err)
	receive(t, watch.Changed())
	var snap inputs
	_, err = watch.Update(t.Context(), &snap)
	require.NoError(t, err)
	cm := object(configMaps, ns, "a", nil)
	require.NoError(t, r.client.Create(t.Context(), cm, nil))
	require.Error(t, r.client.Create(t.Context(), cm, nil))
	_, err = watch.Update(t.Context(), &snap)
	require.NoError(t, err)

	assert.Equal(t, 1.0, measured(t, "kates_clients", "cluster=e2e"))
	assert.Equal(t, 1.0, measured(t, "kates_watch_first_snapshot_duration_seconds", "watch=measured", "cluster=e2e"))
	assert.GreaterOrEqual(t, measured(t, "kates_watch_snapshots_total", "watch=measured"), 2.0)
	poll(t, func() bool {
		return measured(t, "kates_query_objects", "watch=measured", "query=ConfigMaps") == float64(len(snap.ConfigMaps)) &&
			measured(t, "kates_requests_total", "verb=watch", "resource=configmaps.v1", "code=200") > 0
	}, "the watch is open and has brought what was created")
	assert.Equal(t, 1.0, measured(t, "kates_requests_total", "verb=create", "resource=configmaps.v1", "code=201"))
	assert.Equal(t, 1.0, measured(t, "kates_requests_total", "verb=create", "resource=configmaps.v1", "code=409"))
	r.client.Close()
	assert.Zero(t, measured(t, "kates_clients", "cluster=e2e"))
}

// docs/metrics.md says so.
func TestClientGosOwnMetricsCountTheRequestsOfAKatesClientToo(t *testing.T) {
	t.Parallel()
	c, err := kates.NewClientFromRESTConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.ServerVersion()
	require.Error(t, err)
	assert.Positive(t, measured(t, "rest_client_requests_total", "host=127.0.0.1:1", "code=<error>"))
}
