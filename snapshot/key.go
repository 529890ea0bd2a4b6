package snapshot

import "github.com/kates-go/kates/internal/object"

// Object is an object as a stream holds it: an *unstructured.Unstructured, a typed object, or a
// *metav1.PartialObjectMetadata. It is a pointer. Once this package has it, nobody writes to it:
// two Objects are the same exactly when they are the same pointer.
type Object = object.Object

// Key names an object within one query. A cluster-scoped object has no namespace.
type Key = object.Key

func compareObject(o Object, k Key) int { return object.Compare(object.KeyOf(o), k) }

func compareRow(r Row, k Key) int { return compareObject(r.Source, k) }
