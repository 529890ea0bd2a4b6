// Package mutants breaks the library on purpose, in one place at a time. The test of the
// guarantee that breaks must fail. What no test notices is not guaranteed.
//
// The package consists of tests. Each table is sorted by what its mutants break: rules*_test.go
// has the rules that keep the guarantees on own writes and monotony, peers_test.go the known
// mistakes of other libraries of this kind, and the other files sentences of the documentation. A
// mutant is a piece of source text and its replacement. It is applied with go test's -overlay, so
// no file in the tree changes. A mutant whose text does not occur exactly once fails.
//
//	make mutants                                    all of them, and the table of what caught which
//	go test ./internal/mutants -run Mutants/floor   those whose name contains "floor"
package mutants
