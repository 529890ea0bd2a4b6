package refs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/object"
)

func TestANameIsInTheNamespaceOfTheObjectUnlessItSaysOneOrItsKindHasNone(t *testing.T) {
	var n naming
	by := &unstructured.Unstructured{}
	by.SetNamespace("ns")
	assert.Equal(t, object.Key{Namespace: "ns", Name: "x"}, n.complete(object.Key{Name: "x"}, by))
	assert.Equal(t, object.Key{Namespace: "other", Name: "x"}, n.complete(object.Key{Namespace: "other", Name: "x"}, by))
	n.wide = true
	assert.Equal(t, types.NamespacedName{Name: "x"}, n.complete(object.Key{Namespace: "other", Name: "x"}, by))
}
