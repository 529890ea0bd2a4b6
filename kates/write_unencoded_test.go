package kates_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// encodings counts how often a gate was encoded.
var encodings atomic.Int32

type gateStatus struct {
	State string `json:"state"`
}

func (s gateStatus) MarshalJSON() ([]byte, error) {
	encodings.Add(1)
	return json.Marshal(map[string]string{"state": s.State})
}

type gate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            gateStatus `json:"status"`
}

func (g *gate) DeepCopyObject() runtime.Object {
	c := *g
	g.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// TestAChangeThatAltersNothingEncodesNothing: encoding an object is most of what such a call costs.
func TestAChangeThatAltersNothingEncodesNothing(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gate"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(kind, &gate{})
	stored := &kates.Unstructured{Object: map[string]any{"status": map[string]any{"state": "open"}}}
	stored.SetGroupVersionKind(kind)
	stored.SetNamespace("default")
	stored.SetName("g")
	server := katestest.NewServer(t, katestest.WithKinds(katestest.Kind{APIVersion: "example.com/v1", Kind: "Gate"}), katestest.WithObjects(stored))
	client := server.Client(t, kates.WithScheme(scheme))
	snapshots, err := kates.Watch[struct{ Gates []*gate }](t.Context(), client)
	require.NoError(t, err)
	for snap, err := range snapshots.All(t.Context()) {
		require.NoError(t, err)
		shown := snap.Gates[0]
		state := func(state string) (*gate, int32) {
			encodings.Store(0)
			got, err := kates.ModifyStatus(t.Context(), client, shown, func(now *gate) error {
				now.Status.State = state
				return nil
			})
			require.NoError(t, err)
			return got, encodings.Load()
		}
		same, encoded := state("open")
		assert.Zero(t, encoded)
		assert.Equal(t, shown, same)
		assert.NotSame(t, shown, same, "what is returned is the caller's own")
		_, encoded = state("shut")
		assert.NotZero(t, encoded)
		break
	}
}

// TestG10WhatAnUnchangedStatusReturnsIsTheCallersOwn: it shares nothing with the watch, nor with what
// the function has assigned.
func TestG10WhatAnUnchangedStatusReturnsIsTheCallersOwn(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	client := katestest.NewServer(t, katestest.WithObjects(pod)).Client(t)
	snapshots, err := kates.Watch[struct{ Pods []*corev1.Pod }](t.Context(), client)
	require.NoError(t, err)
	for snap, err := range snapshots.All(t.Context()) {
		require.NoError(t, err)
		shown := snap.Pods[0]
		got, err := kates.ModifyStatus(t.Context(), client, shown, func(now *corev1.Pod) error {
			now.Status = shown.Status
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, shown, got)
		got.Status.Conditions[0].Status = corev1.ConditionFalse
		assert.Equal(t, corev1.ConditionTrue, shown.Status.Conditions[0].Status)
		break
	}
}
