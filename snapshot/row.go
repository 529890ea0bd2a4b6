package snapshot

// Value is an object converted to the element type of its query's field, as the field holds it: *T for []*T, T for []T,
// map[string]any for []map[string]any. It comes from [Binding.Convert], and is shared and read-only.
type Value any

// Row is one object of a query and what became of it: shown, left out because it is in error, or left out by the
// predicate.
type Row struct {
	// Source is the object as the stream holds it; never nil.
	Source Object
	// Value is what the snapshot shows; set only when the row is shown.
	Value Value
	// Err says why the object is left out: it does not decode, or was rejected.
	Err error
	// Excluded says that the predicate left the object out.
	Excluded bool
}

// Shown reports whether the object is in the snapshot.
func (r Row) Shown() bool { return r.Err == nil && !r.Excluded }

// Change is what one key of a query is from now on.
type Change struct {
	// Key is the key of Row.Source.
	Key Key
	// Row is nil where the object is gone.
	Row *Row
}

// Diff is a visible change of one key between two values of a table. Old is nil where nothing was shown before, New where
// nothing is shown now. Two different UIDs mean that the object was replaced: a delete, then an add.
type Diff struct {
	Key      Key
	Old, New Object
}

// sameFault reports whether two rows that are both in error say the same. Errors are compared by text: a repeated
// conversion makes a new error value, and error types need not be comparable.
func sameFault(a, b Row) bool {
	return a.Source == b.Source && a.Err.Error() == b.Err.Error()
}

// sameLeftOut reports whether two rows that are both left out are left out alike.
func sameLeftOut(a, b Row) bool {
	if a.Source != b.Source || a.Excluded != b.Excluded || (a.Err == nil) != (b.Err == nil) {
		return false
	}
	return a.Err == nil || sameFault(a, b)
}
