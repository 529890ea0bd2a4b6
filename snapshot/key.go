package snapshot

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is an object as a stream holds it: an *unstructured.Unstructured, a typed object, or a
// *metav1.PartialObjectMetadata. It is a pointer, and from the moment it is handed to this package nobody writes to it:
// two Objects are the same exactly when they are the same pointer.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key names an object within one query. A cluster-scoped object has no namespace.
type Key = types.NamespacedName

// KeyOf returns the key of an object.
func KeyOf(o Object) Key {
	if u, ok := o.(*unstructured.Unstructured); ok { // as its own methods would, in half the time
		meta, _ := u.Object["metadata"].(map[string]any)
		namespace, _ := meta["namespace"].(string)
		name, _ := meta["name"].(string)
		return Key{Namespace: namespace, Name: name}
	}
	return Key{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// CompareKeys orders by namespace, then by name, both bytewise. It is the order of every delivered slice (G9).
func CompareKeys(a, b Key) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

func compareObject(o Object, k Key) int { return CompareKeys(KeyOf(o), k) }

func compareRow(r Row, k Key) int { return compareObject(r.Source, k) }
