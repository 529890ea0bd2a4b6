package conditions

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// conditioned returns objects of every form with nothing but a generation.
func conditioned(generation int64) map[string]any {
	metadata := map[string]any{"generation": generation}
	asMap := map[string]any{"metadata": metadata}
	return map[string]any{
		"typed":   &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Generation: generation}},
		"untyped": &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}},
		"map":     map[string]any{"metadata": metadata},
		"*map":    &asMap,
	}
}

func ready(status metav1.ConditionStatus, reason string) Condition {
	return Condition{Type: "Ready", Status: status, Reason: reason, Message: "m"}
}

func TestAConditionIsSetInItsPlaceInObjectsOfEveryForm(t *testing.T) {
	for form, object := range conditioned(7) {
		t.Run(form, func(t *testing.T) {
			set := func(c Condition) bool {
				t.Helper()
				changed, err := Set(object, c)
				require.NoError(t, err)
				return changed
			}
			assert.Nil(t, Find(object, "Ready"))
			past := metav1.NewTime(time.Unix(1000, 0))
			first := ready("False", "Starting")
			first.LastTransitionTime = past
			assert.True(t, set(Condition{Type: "Other", Status: "True", Reason: "R"}))
			assert.True(t, set(first))
			assert.False(t, set(ready("False", "Starting")), "nothing changes")
			assert.True(t, set(ready("False", "Waiting")))
			got := Find(object, "Ready")
			assert.True(t, past.Equal(&got.LastTransitionTime), "the status does not")
			assert.Equal(t, []any{"Waiting", "m", int64(7)}, []any{got.Reason, got.Message, got.ObservedGeneration})
			got.Reason = "Mine"
			assert.Equal(t, "Waiting", Find(object, "Ready").Reason, "it is a copy")
			assert.True(t, set(ready("True", "Waiting")))
			assert.False(t, Find(object, "Ready").LastTransitionTime.Before(&metav1.Time{Time: time.Now().Add(-time.Minute)}))
			old := ready("False", "Old")
			old.ObservedGeneration = 6
			assert.False(t, set(old), "of an older generation")
			assert.Equal(t, metav1.ConditionTrue, Find(object, "Ready").Status)
			assert.Equal(t, metav1.ConditionTrue, Find(object, "Other").Status)
		})
	}
}

func TestASetConditionKeepsWhatElseAnUntypedElementHas(t *testing.T) {
	elements := []any{
		map[string]any{"type": "Available", "status": "True", "lastUpdateTime": "2020-01-01T00:00:00Z"},
		map[string]any{"type": "Ready", "status": "False", "extra": "kept", "observedGeneration": int64(0)},
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"replicas": int64(3), "conditions": elements}}}
	changed, err := Set(u, ready("True", "Good"))
	require.NoError(t, err)
	assert.True(t, changed)
	now := u.Object["status"].(map[string]any)["conditions"].([]any)
	assert.Equal(t, elements[0], now[0])
	assert.Equal(t, "kept", now[1].(map[string]any)["extra"])
	assert.Equal(t, "True", now[1].(map[string]any)["status"])
	assert.NotContains(t, elements[1], "reason", "the list that was there may be shared")
	assert.Equal(t, int64(3), u.Object["status"].(map[string]any)["replicas"])
}

func TestAConditionThatCannotBeSetIsAnErrorAndChangesNothing(t *testing.T) {
	good := ready("True", "Good")
	for want, object := range map[string]any{
		"no pointer to an object": *new(policyv1.PodDisruptionBudget),
		"no Status.Conditions":    &appsv1.Deployment{}, // of another type
		"the object is nil":       (*unstructured.Unstructured)(nil),
		"not an object":           map[string]any{"status": "text"},
		"not a list":              map[string]any{"status": map[string]any{"conditions": "text"}},
		"cannot be read":          map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "reason": int64(3)}}}},
	} {
		_, err := Set(object, good)
		assert.ErrorContains(t, err, want)
		assert.Nil(t, Find(object, "Gone"))
	}
	for want, c := range map[string]Condition{"type": {Status: "True", Reason: "R"}, "status": {Type: "T", Reason: "R"}, "reason": {Type: "T", Status: "True", Reason: "two words"}} {
		b := &policyv1.PodDisruptionBudget{}
		_, err := Set(b, c)
		assert.ErrorContains(t, err, want)
		assert.Empty(t, b.Status.Conditions)
	}
}

// Statuses that show their conditions, and statuses that only seem to.
type (
	elsewhere struct {
		metav1.PartialObjectMetadata
		Status struct {
			Conditions []Condition `json:"states"`
		} `json:"status"`
	}
	pointed struct {
		metav1.PartialObjectMetadata
		Status *struct {
			Conditions []Condition `json:"conditions"`
		} `json:"status,omitempty"`
	}
	inside struct {
		metav1.PartialObjectMetadata
		*pointed
	}
)

func TestATypeShowsConditionsWhereItsJSONHasThemAndAllOfThem(t *testing.T) {
	said := []Condition{{Type: "Ready", Status: "True", Reason: "Good"}, {Type: "Other", Status: "False", Reason: "Bad", Message: "m"}}
	dated := []Condition{{Type: "Ready", Status: "True", Reason: "Good", ObservedGeneration: 3}}
	for _, object := range []any{&policyv1.PodDisruptionBudget{}, &pointed{}} {
		assert.True(t, Shown(object, said), "%T", object)
		assert.True(t, Shown(object, dated), "%T", object)
	}
	assert.True(t, Shown(&appsv1.Deployment{}, said))
	assert.False(t, Shown(&appsv1.Deployment{}, dated), "its conditions have no generation")
	for _, object := range []any{&corev1.ConfigMap{}, &elsewhere{}, &inside{}, &metav1.PartialObjectMetadata{}, &struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}{}} {
		assert.False(t, Shown(object, said), "%T", object)
	}
}

func TestConditionsOfManyBuiltInKindsHaveNoObservedGeneration(t *testing.T) {
	for object, want := range map[any]bool{
		&appsv1.Deployment{}: false, &appsv1.StatefulSet{}: false, &corev1.Node{}: false, &corev1.Service{}: true,
		&policyv1.PodDisruptionBudget{}: true, &corev1.ConfigMap{}: true, &unstructured.Unstructured{}: true, new(string): true,
		&struct {
			Status *struct{ Conditions []*Condition }
		}{}: true,
		&struct {
			Status struct{ Conditions []appsv1.ReplicaSetCondition }
		}{}: false,
		&struct {
			Status struct{ Conditions map[string]string }
		}{}: true,
		&struct{ Status string }{}: true,
	} {
		assert.Equal(t, want, Observe(reflect.TypeOf(object)), "%T", object)
	}
}
