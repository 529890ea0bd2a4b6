// Package compile makes queries of the engine from what users want: from queries of package kates,
// and from the fields of a struct type.
//
// In come a [Wanted] for each query, which package kates fills, and the struct type. Out come
// query.Query values, or an error that names the query or the field. Begin at [Compiler.All], and
// at [Compiler.Fields] for a struct type.
//
//	a struct type ─▶ fields.go, roles.go ─▶ Wanted ─▶ compile.go ─▶ query.Query
//
// What a stream holds of each object is in form.go, what the server is asked in server.go, and the
// functions of users in functions.go, where.go, keys.go, signals.go and transforms.go. Each says
// what it reads: see [Reads].
//
// The package starts no stream. It asks the server what a kind is, and which fields the server
// selects by: when the engine resolves a query, and where the kinds of two queries have to agree.
package compile
