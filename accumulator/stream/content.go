package stream

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/coherence"
)

// sameContent compares objects where versions cannot: those of a fake, which may have no UID.
func sameContent(a, b coherence.Object) bool {
	ra, ok1 := a.(*rejected)
	rb, ok2 := b.(*rejected)
	if ok1 || ok2 {
		return ok1 && ok2 && ra.text == rb.text && ra.Name == rb.Name && ra.Namespace == rb.Namespace
	}
	ua, ok1 := a.(*unstructured.Unstructured)
	ub, ok2 := b.(*unstructured.Unstructured)
	if ok1 && ok2 {
		return equality.Semantic.DeepEqual(ua.Object, ub.Object)
	}
	return equality.Semantic.DeepEqual(a, b)
}
