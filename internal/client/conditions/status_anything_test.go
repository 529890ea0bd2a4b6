package conditions

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/base/jsonform"
	objects "github.com/kates-go/kates/internal/object"
)

// thing is a type of a custom kind.
type thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Conditions []Condition `json:"conditions,omitempty"`
		Encoded    encoded     `json:"encoded"`
	} `json:"status"`
}

func (*thing) DeepCopyObject() runtime.Object { panic("an object is not copied") }

// encoded has methods of the user's.
type encoded struct{ panics bool }

func (e encoded) MarshalJSON() ([]byte, error) {
	if e.panics {
		panic("no")
	}
	return []byte(`"e"`), nil
}

func TestAStatusOfAnythingIsAnAnswer(t *testing.T) {
	ready := &thing{}
	ready.Generation = 3
	ready.Status.Conditions = []Condition{{Type: "Ready", Status: "True", ObservedGeneration: 3}}
	assert.Equal(t, Status{Phase: Current, Message: "its condition Ready is true", Generation: 3}, StatusOf(nil, ready))
	panics := &thing{}
	panics.Status.Encoded.panics = true
	for want, o := range map[string]objects.Object{
		"the object is nil":                     nil,
		"convert *v1.Pod: the object is nil":    (*corev1.Pod)(nil),
		"Unstructured: the object is nil":       (*unstructured.Unstructured)(nil),
		"the object is empty":                   &unstructured.Unstructured{},
		"the encoding of the object panicked":   panics,
		"only its metadata is known":            &metav1.PartialObjectMetadata{},
		"status.conditions is not a list":       &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []string{"a"}}}},
		"metadata is not an object":             &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]string{}}},
		"apiVersion is not a string":            &unstructured.Unstructured{Object: map[string]any{"apiVersion": 1}},
		"spec.paused is not a boolean":          &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"paused": "a"}}},
		"spec.replicas is not an integer":       &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": 1e300}}},
		"status.loadBalancer.ingress is not a ": &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "spec": map[string]any{"type": "LoadBalancer"}, "status": map[string]any{"loadBalancer": map[string]any{"ingress": "a"}}}},
	} {
		got := StatusOf(clientscheme.Scheme, o)
		assert.Equal(t, Unknown, got.Phase, want)
		assert.Contains(t, got.Message, want)
	}
	now := metav1.Now()
	leaves := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now, Generation: 4}}
	assert.Equal(t, Status{Phase: Terminating, Message: "it is being deleted", Generation: 4}, StatusOf(nil, leaves))
	byHand := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": map[string]any{"replicas": 2},
		"status": map[string]any{"replicas": int32(2), "availableReplicas": 2.0},
	}}
	assert.Equal(t, Current, StatusOf(nil, byHand).Phase, "numbers of any type")
}

// odd returns values that fields may have where others are expected. They are new each time, since
// they may be distorted themselves.
func odd() []any {
	return []any{
		nil, "", "True", "2026-01-02T03:04:05Z", true, int64(-1), int64(1 << 62), 7, int32(3), 1.5, 1e300, []any{}, []any{nil}, []any{"a", int64(1)},
		[]any{map[string]any{}}, []any{map[string]any{"type": "Ready", "name": true, "state": "a"}}, map[string]any{}, map[string]any{"waiting": []any{}},
		map[string]any(nil), []any(nil), []string{"a"}, struct{}{}, (*int)(nil),
	}
}

// distort replaces, adds or removes a field somewhere in an object.
func distort(t *rapid.T, in any) {
	switch v := in.(type) {
	case map[string]any:
		if v == nil {
			return
		}
		keys := append(slices.Sorted(maps.Keys(v)), "metadata", "spec", "status", "conditions", "deletionTimestamp", "observedGeneration")
		key := rapid.SampledFrom(keys).Draw(t, "field")
		if rapid.Bool().Draw(t, "deeper") && v[key] != nil {
			distort(t, v[key])
			return
		}
		v[key] = rapid.SampledFrom(odd()).Draw(t, "value")
	case []any:
		if len(v) == 0 {
			return
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "element")
		if rapid.Bool().Draw(t, "deeper") {
			distort(t, v[i])
			return
		}
		v[i] = rapid.SampledFrom(odd()).Draw(t, "value")
	}
}

func TestNoContentOfAnObjectPanics(t *testing.T) {
	kinds := slices.Sorted(maps.Keys(statuses))
	phases := []Phase{Current, InProgress, Failed, Terminating, Unknown}
	rapid.Check(t, func(r *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(r, "kind")
		u := untyped(t, kind, rapid.SampledFrom(statuses[kind]).Draw(r, "row").object)
		for range rapid.IntRange(1, 5).Draw(r, "distortions") {
			distort(r, u.Object)
		}
		got := StatusOf(clientscheme.Scheme, u)
		if !slices.Contains(phases, got.Phase) || got.Message == "" {
			r.Fatalf("%v: %+v", u.Object, got)
		}
		if again := StatusOf(clientscheme.Scheme, u); !reflect.DeepEqual(got, again) {
			r.Fatalf("%v: %+v, then %+v", u.Object, got, again)
		}
	})
}

func BenchmarkStatusOf(b *testing.B) {
	u := untyped(b, "apps/v1 Deployment", statuses["apps/v1 Deployment"][0].object)
	typed, err := jsonform.Typed(clientscheme.Scheme, u)
	require.NoError(b, err)
	for form, o := range map[string]objects.Object{"typed": typed, "untyped": u} {
		b.Run(form, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				StatusOf(clientscheme.Scheme, o)
			}
		})
	}
}
