package metrics_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
	"github.com/kates-go/kates/kates/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMetricsAreReadAndListed(t *testing.T) {
	pod := &metrics.PodMetrics{
		TypeMeta:   kates.TypeMeta{APIVersion: "metrics.k8s.io/v1beta1", Kind: "PodMetrics"},
		ObjectMeta: kates.ObjectMeta{Namespace: "prod", Name: "web"},
		Containers: []metrics.ContainerMetrics{{
			Name: "app", Usage: kates.ResourceList{kates.ResourceCPU: kates.MustParseQuantity("250m")},
		}},
	}
	c := katestest.New(t, katestest.WithObjects(pod), katestest.WithKinds(katestest.Kind{
		APIVersion: "metrics.k8s.io/v1beta1", Kind: "PodMetrics", Plural: "pods",
	})).Client
	var got metrics.PodMetrics
	require.NoError(t, c.Get(t.Context(), pod, &got))
	assert.EqualValues(t, 250, got.Containers[0].Usage.Cpu().MilliValue())
	var all []*metrics.PodMetrics
	require.NoError(t, c.List(t.Context(), kates.Query{Kind: "pods.metrics.k8s.io"}, &all))
	assert.Len(t, all, 1)
}
