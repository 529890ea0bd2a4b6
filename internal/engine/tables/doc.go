// Package tables holds the objects of queries as the fields of a struct show them: converted to the
// fields' types, in order, and shared with the previous snapshot where nothing changed.
//
// A [Form] is what the type of one field says. A [Table] is the content of one field. A [Row] is an
// object with the result of its conversion. A table holds the rows that are shown. It also holds
// those that are left out, because they do not decode ([Table.Invalid]) or because a predicate
// excludes them: one bad object never empties or stalls a field (G8). [Lookup] is a field in which
// objects are found by name or by selector.
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
package tables
