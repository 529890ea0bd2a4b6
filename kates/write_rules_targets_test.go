package kates_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// TestATargetOfAnotherKindIsAnErrorBeforeAnythingIsWritten: an autoscaler of v2 in the Go type of
// v1 has lost its metrics. An update with it would lose them for everybody.
func TestATargetOfAnotherKindIsAnErrorBeforeAnythingIsWritten(t *testing.T) {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "h"}}
	fake := katestest.New(t, katestest.WithObjects(hpa, configMap("x")))
	c := fake.Client
	for name, target := range map[string]any{
		"v1": &autoscalingv1.HorizontalPodAutoscaler{}, "a pointer": new(*autoscalingv1.HorizontalPodAutoscaler), "a Pod": &kates.Pod{},
	} {
		assert.ErrorContains(t, c.Get(t.Context(), hpa, target), ", not autoscaling/v2", name)
		assert.ErrorContains(t, c.Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, target), ", not autoscaling/v2", name)
		assert.ErrorContains(t, c.Update(t.Context(), hpa, target), ", not autoscaling/v2", name)
		assert.ErrorContains(t, c.Upsert(t.Context(), nil, hpa, target), ", not autoscaling/v2", name)
		assert.ErrorContains(t, c.Patch(t.Context(), hpa, kates.MergePatchType, []byte("{}"), target), ", not autoscaling/v2", name)
	}
	query := kates.Query{Kind: "HorizontalPodAutoscaler.v2.autoscaling"}
	for _, target := range []any{
		&[]autoscalingv1.HorizontalPodAutoscaler{}, &[]*autoscalingv1.HorizontalPodAutoscaler{}, &map[string]*kates.Pod{},
		&autoscalingv1.HorizontalPodAutoscalerList{}, new(*autoscalingv1.HorizontalPodAutoscalerList),
	} {
		assert.ErrorContains(t, c.List(t.Context(), query, target), ", not autoscaling/v2", "%T", target)
	}
	for _, a := range fake.Dynamic.Actions() {
		assert.Contains(t, []string{"get", "list"}, a.GetVerb())
	}
	for _, target := range []any{
		&[]autoscalingv2.HorizontalPodAutoscaler{}, &autoscalingv2.HorizontalPodAutoscalerList{}, &[]map[string]any{}, &[]any{}, &[]kates.Object{},
		&[]*kates.Unstructured{}, &map[string]*metav1.PartialObjectMetadata{}, &[]struct{ Metadata metav1.ObjectMeta }{}, &metav1.PartialObjectMetadataList{},
	} {
		require.NoError(t, c.List(t.Context(), query, target), "%T", target)
	}
	for _, target := range []any{
		&autoscalingv2.HorizontalPodAutoscaler{}, new(*autoscalingv2.HorizontalPodAutoscaler), &map[string]any{}, &kates.Unstructured{},
		&metav1.PartialObjectMetadata{}, new(any), new(kates.Object), &struct{ Metadata metav1.ObjectMeta }{}, nil,
	} {
		require.NoError(t, c.Get(t.Context(), hpa, target), "%T", target)
	}
}
