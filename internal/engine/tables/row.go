package tables

import (
	"github.com/kates-go/kates/internal/object"
)

// Object is an object as a stream holds it: an *unstructured.Unstructured, a typed object, or a
// *metav1.PartialObjectMetadata. It is a pointer. Once this package has it, nobody writes to it:
// two Objects are the same exactly when they are the same pointer.
type Object = object.Object

// Key names an object within one query. A cluster-scoped object has no namespace.
type Key = object.Key

// Value is an object converted to the element type of its query's field: *T for []*T, T for []T,
// map[string]any for []map[string]any. It comes from [Binding.Convert], and is shared and
// read-only.
type Value any

// Row is one object of a query with its outcome: shown, left out because of an error, or left out
// by the predicate.
type Row struct {
	// Source is the object as the stream holds it. It is never nil.
	Source Object
	// Value is what the snapshot shows. It is set only if the row is shown.
	Value Value
	// Err says why the object is left out: it does not decode, or a predicate rejected it.
	Err error
	// Excluded says that the predicate left the object out.
	Excluded bool
	// Counts says that a change of an excluded object is one of the snapshot.
	Counts bool
}

// Shown reports whether the object is in the snapshot.
func (r Row) Shown() bool { return r.Err == nil && !r.Excluded }

// Change is the new state of one key of a query.
type Change struct {
	// Key is the key of Row.Source.
	Key Key
	// Row is nil if the object is gone.
	Row *Row
}

// Diff is a visible change of one key between two values of a table. Old is nil if nothing was
// shown before, New if nothing is shown now. Two different UIDs mean that the object was
// replaced: a delete, then an add.
type Diff struct {
	Key      Key
	Old, New Object
}

// sameFault reports whether two rows have the same error. It compares texts: a repeated
// conversion makes a new error value, and error types need not be comparable.
func sameFault(a, b Row) bool {
	return a.Source == b.Source && a.Err.Error() == b.Err.Error()
}

// sameLeftOut reports whether two rows are left out for the same reason.
func sameLeftOut(a, b Row) bool {
	if a.Source != b.Source || a.Excluded != b.Excluded || a.Counts != b.Counts || (a.Err == nil) != (b.Err == nil) {
		return false
	}
	return a.Err == nil || sameFault(a, b)
}

func compareObject(o Object, k Key) int { return object.Compare(object.KeyOf(o), k) }

func compareRow(r Row, k Key) int { return compareObject(r.Source, k) }
