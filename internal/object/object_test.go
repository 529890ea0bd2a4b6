package object

import (
	"sort"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestG7AKeyIsTheNamespaceAndTheName: objects of one name in two namespaces are two.
func TestG7AKeyIsTheNamespaceAndTheName(t *testing.T) {
	for want, o := range map[Key]Object{
		{Namespace: "n1", Name: "x"}: &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "n1", "name": "x"}}},
		{Namespace: "n2", Name: "x"}: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n2", Name: "x"}},
		{Name: "x"}:                  &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}}},
		{Namespace: "ns", Name: "a"}: projected(nil),
		{}:                           &unstructured.Unstructured{},
	} {
		assert.Equal(t, want, KeyOf(o))
	}
}

func TestG9KeysAreOrderedByNamespaceThenByName(t *testing.T) {
	ordered := []Key{{Name: "z"}, {Namespace: "a", Name: "b"}, {Namespace: "a", Name: "c"}, {Namespace: "a-b", Name: "a"}, {Namespace: "b", Name: "B"}, {Namespace: "b", Name: "a"}}
	mixed := append([]Key{}, ordered[3:]...)
	mixed = append(mixed, ordered[:3]...)
	sort.Slice(mixed, func(i, k int) bool { return Compare(mixed[i], mixed[k]) < 0 })
	assert.Equal(t, ordered, mixed)
	assert.Zero(t, Compare(ordered[1], ordered[1]))
}

func TestNoObjectHasNoUID(t *testing.T) {
	assert.Empty(t, UIDOf(nil))
	assert.EqualValues(t, "u", UIDOf(projected(nil)))
}
