package snapshot

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	return Key{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// CompareKeys orders by namespace, then by name, both bytewise. It is the order of every delivered slice (G9).
func CompareKeys(a, b Key) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// compareObject is CompareKeys(KeyOf(o), k). It asks for the name only where the namespaces agree: an untyped object
// answers from nested maps.
func compareObject(o Object, k Key) int {
	if c := strings.Compare(o.GetNamespace(), k.Namespace); c != 0 {
		return c
	}
	return strings.Compare(o.GetName(), k.Name)
}

func compareRow(r Row, k Key) int { return compareObject(r.Source, k) }
