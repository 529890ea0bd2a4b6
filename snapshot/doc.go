// Package snapshot binds Kubernetes objects to the fields of a caller's struct.
//
// Start with [Compile]. It checks a struct type against a list of queries, once, and returns a
// [Binding]: a program that has a struct type at run time learns here whether the type can hold the
// objects, and why not. The Binding converts objects, makes one table for each query, and stores
// the tables in a struct. Whenever objects have changed:
//
//	value, err := binding.Convert(query, object) // once per change; may run user code
//	diffs, _ := table.Apply(changes)             // a key is shown, left out, or gone
//	binding.Set(target, query, table, nil)       // the field gets the table's slice or map
//
// Most programs have no use for that: package kates does it with what the client watches.
//
// # Fields
//
// A field is a []T, map[types.NamespacedName]T, map[types.UID]T or map[string]T (or a named type
// of that form). T is, or points to, an API type, unstructured.Unstructured,
// metav1.PartialObjectMetadata, map[string]any, or any struct that decodes from the object's
// JSON. Slices are ordered by namespace, then name (G9). A kates.Lookup of T finds objects by name
// or by selector. What a field has got is never written to again (G10).
//
// This package is pure logic: no I/O, no goroutine, no clock.
package snapshot
