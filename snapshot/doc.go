// Package snapshot puts Kubernetes objects into the fields of a caller's struct. It converts them
// to the fields' types, sorts them, and shares what did not change with the previous snapshot.
//
// Start with [Compile]. It checks a struct type against a list of queries, once, and returns a
// [Binding]. For each reader the Binding makes one [Table] per query. Then, whenever objects have
// changed:
//
//	value, err := binding.Convert(query, object)       // once per change; may run user code
//	diffs, _   := table.Apply([]snapshot.Change{...})  // a key is shown, left out, or gone
//	binding.Set(target, query, table)                  // the field gets the table's slice or map
//
// A [Row] is an object with the result of its conversion. A table holds the rows that are shown.
// It also holds those that are left out, because they do not decode ([Table.Invalid]) or because
// a predicate excludes them: one bad object never empties or stalls a field (G8).
//
// # Fields
//
// A field is a []T, map[types.NamespacedName]T, map[types.UID]T or map[string]T (or a named type
// of that form). T is, or points to, an API type, unstructured.Unstructured,
// metav1.PartialObjectMetadata, map[string]any, or any struct that decodes from the object's
// JSON. Slices are ordered by namespace, then name (G9). A [Lookup] of T finds objects by name or
// by selector, and can record each look-up.
//
// # Everything delivered is shared
//
// Slices, maps and objects that a Table has delivered are never written to again (G10). A change
// makes a new slice or map that shares all elements but the changed ones. Without a change the
// same slice or map stays in place. Successive snapshots, several readers and the streams share
// the objects, so neither this package nor its callers write to them.
//
// # What a change costs
//
// When one of N objects changes, it is converted, its place is found by a search, and it is put
// into a copy of the last delivered value:
//
//   - a []*T or []map[string]any: N pointers, 8 bytes for each object, in one allocation. A Go
//     slice cannot do with less if nobody may write to the previous one;
//   - a map of such elements: the hash table, 40 to 90 bytes for each object, with an allocation
//     for about each thousand. It takes five to ten times as long as the slice;
//   - a []T or map[K]T of structs: all the structs.
//
// Unchanged objects cause no allocation and no call of their own, and a batch without changes
// costs nothing. For many objects that change often, choose []*T.
//
// Most of the copying can be done before the change comes: a reader calls [Table.Ahead] when it
// has delivered a value, and lets another goroutine run the function that it returns. The next
// value then costs only what has changed.
//
// # What it does not know
//
// This package is pure logic: no I/O, no goroutine, no clock, and only one lock, that of a copy
// which is made ahead. It knows nothing of clients, watches, or own writes. Package accumulator
// feeds it.
package snapshot
