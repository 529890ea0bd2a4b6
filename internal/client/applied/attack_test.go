package applied

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Another writer may apply other values under the name of the same manager. The fields that this
// manager owns are the same then.
func TestAForeignValueUnderTheManagersOwnNameIsFound(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "u", Controller: new(true)}
	owned := func(change func(*metav1.ObjectMeta)) bool {
		live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"a": "b", "more": "x"}, Annotations: map[string]string{"n": "1"}, OwnerReferences: []metav1.OwnerReference{*owner.DeepCopy()},
		}}
		change(&live.ObjectMeta)
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
			"labels": map[string]any{"a": "b"}, "annotations": map[string]any{"n": "1"},
		}}}
		check := &Check{Now: live, Owners: []metav1.OwnerReference{owner}, Whole: func(fieldpath.Path, any) bool { return false }}
		return check.OwnsJust([]byte(`{"f:metadata":{"f:labels":{"f:a":{}},"f:annotations":{"f:n":{}}}}`), u)
	}
	assert.True(t, owned(func(*metav1.ObjectMeta) {}))
	for what, change := range map[string]func(*metav1.ObjectMeta){
		"a label":            func(m *metav1.ObjectMeta) { m.Labels["a"] = "c" },
		"an annotation":      func(m *metav1.ObjectMeta) { m.Annotations["n"] = "2" },
		"a label that lacks": func(m *metav1.ObjectMeta) { delete(m.Labels, "a") },
		"a reference":        func(m *metav1.ObjectMeta) { m.OwnerReferences[0].Controller = new(false) },
		"another owner":      func(m *metav1.ObjectMeta) { m.OwnerReferences[0].UID = "v" },
	} {
		assert.False(t, owned(change), what)
	}
}

func TestValuesThatAreZeroOrEmptyAreComparedWhereTheySaySomething(t *testing.T) {
	type spec struct {
		Replicas int32  `json:"replicas"`
		Name     string `json:"name,omitempty"`
	}
	assert.True(t, within(reflect.ValueOf(spec{}), reflect.ValueOf(spec{Name: "default"})))
	assert.False(t, within(reflect.ValueOf(spec{}), reflect.ValueOf(spec{Replicas: 3})))
	policy := func(s metav1.LabelSelector) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PodSelector: s, Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &s}}}}}}
	}
	some := metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	assert.True(t, HasValues(policy(metav1.LabelSelector{}), policy(metav1.LabelSelector{})))
	assert.False(t, HasValues(policy(metav1.LabelSelector{}), policy(some)), "it selects everything")
	assert.False(t, HasValues(policy(some), policy(metav1.LabelSelector{})))
	other := some.DeepCopy()
	other.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Exists"}}
	assert.False(t, HasValues(policy(some), policy(*other)))
}
