// Package snapshot puts Kubernetes objects into the fields of a caller's struct: converted to the fields' types, in order,
// and with everything that did not change shared with what was put there before.
//
// Start with [Compile]. It checks a struct type against a list of queries, once, and gives a [Binding]. For each reader
// the Binding makes one [Table] per query. Then, whenever objects have changed:
//
//	value, err := binding.Convert(query, object)       // once per changed object; may run the user's code
//	diffs, _   := table.Apply([]snapshot.Change{...})  // what is shown, left out, or gone from now on
//	binding.Set(target, query, table)                  // the field gets the table's slice or map
//
// A [Row] is an object and what became of it. Besides what is shown a table remembers what is left out, because it does not
// decode ([Table.Invalid]) or because a predicate does not want it: one bad object never empties or stalls a field (G8).
//
// # Fields
//
// A field is a []T, map[types.NamespacedName]T, map[types.UID]T or map[string]T (or a named type of that form), where T is,
// or points to, an API type, unstructured.Unstructured, metav1.PartialObjectMetadata, map[string]any, or any struct that
// decodes from the object's JSON. Slices are ordered by namespace, then name (G9). A [Lookup] of T is looked up in, by name or
// selector, and may be told to record that.
//
// # Everything delivered is shared
//
// Slices, maps and objects that a Table has delivered are never written to again (G10). A change makes a new slice or map
// that shares all elements but the changed ones; no change leaves the very same slice or map in place. Successive
// snapshots, several readers and the streams share the objects, so neither this package nor its callers write to them.
//
// # What a change costs
//
// One changed object among N is converted, found by a search, and put into a copy of what was delivered last:
//
//   - of a []*T or []map[string]any, N pointers: 8 bytes for each object, one allocation; no less would do for a Go slice
//     of which nobody may write to the last one;
//   - of a map of such, the hash table: 40 to 90 bytes for each object, an allocation for about a thousand; five to ten times as
//     long as the slice's;
//   - of a []T or map[K]T of structs, all the structs.
//
// Nothing is allocated or called for a single object that did not change, and nothing at all where none did. For many
// objects that change often, []*T is the field to choose.
//
// # What it does not know
//
// It is pure logic: no I/O, no goroutine, no lock, no clock. It knows nothing of clients, watches, or own writes; package
// accumulator feeds it.
package snapshot
