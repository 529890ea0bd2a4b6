package kindstest

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// SchemeMapper is a mapper of everything in client-go's scheme, like the one that a unit test on
// the fake client makes: many versions, no priorities.
func SchemeMapper(t *testing.T) *meta.DefaultRESTMapper {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvk := range clientscheme.Scheme.AllKnownTypes() {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	return mapper
}
