// Package derived lets package katestest see all that a graph of package derive has. Package
// derive sets the functions. Users cannot import them.
package derived

// Node is what a source or a derived node has after an Update.
type Node struct {
	Name, Kind string
	Entries    []Entry // in the order of the node
	// Equal compares two values of the node by its own rule.
	Equal func(a, b any) bool
}

// Entry is one entry of a node. An entry that is invalid has no value.
type Entry struct {
	Key   string // as Explain takes it
	Value any
	Err   error // why it is invalid
}

// Each function takes a *derive.Graph as its argument graph.
var (
	// Verified makes each Update of a graph verify itself.
	Verified func(graph any)
	// Nodes returns what a graph has, in the order in which the nodes were declared.
	Nodes func(graph any) []Node
	// Difference returns the path at which two values differ first: ".Spec.Ports[0]".
	Difference func(a, b any) string
)
