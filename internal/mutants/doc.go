// Package mutants breaks the library on purpose, in one place at a time, and wants the test of
// the guarantee that is hurt to fail. What no test notices, nobody has promised.
//
// It is all tests. The table of mutants is in the files rule*_test.go, by the rules that keep the
// guarantees on own writes and monotony, peers_test.go, by what other libraries of this kind
// are known to get wrong, and run_test.go, partitions_test.go, references_test.go and modify_test.go, by what
// other documentation says. A mutant is a piece of source text and what stands in its place, applied
// with go test's -overlay, so that nothing in the tree is touched. One whose text is no longer
// there, exactly once, fails.
//
//	make mutants                                    all of them, and the table of what caught which
//	go test ./internal/mutants -run Mutants/floor   those whose name has "floor"
package mutants
