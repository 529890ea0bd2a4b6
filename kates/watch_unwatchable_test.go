package kates

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/test/suite/kindstest"
)

func TestAKindThatCannotBeWatchedIsAnErrorThoughItsQueryIsOptional(t *testing.T) {
	type snap struct{ X []*Unstructured }
	s := kindstest.New(t, false)
	s.Serve("metrics.k8s.io/v1beta1", metav1.APIResource{Name: "pods", SingularName: "pod", Kind: "PodMetrics", Namespaced: true, Verbs: []string{"get", "list"}})
	c, err := NewClientFromRESTConfig(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for name, q := range map[string]Query{
		"no watch":     {Kind: "pods.metrics.k8s.io"},
		"only created": {Kind: "bindings"},
		"its metadata": {Kind: "pods.metrics.k8s.io", MetadataOnly: true},
		"any of two":   {Kind: "bindings", AnyOf: []Selection{{LabelSelector: "a"}, {LabelSelector: "!a"}}},
		"in several":   {Kind: "bindings", Namespaces: []string{"a", "b"}},
	} {
		q.Name = "X"
		_, required := c.Watch(t.Context(), q)
		q.Optional = true
		_, optional := c.Watch(t.Context(), q)
		_, typed := Watch[snap](t.Context(), c, q)
		for _, err := range []error{required, optional, typed} {
			require.ErrorContains(t, err, "cannot be watched: it has only", name)
			require.ErrorContains(t, err, `query "X"`, name)
		}
	}
}
