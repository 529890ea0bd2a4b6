// Package kinds finds the resource that a kind stands for, in whatever form kubectl takes it, and
// tells what the server says of it: whether it is served, what it is stored as, which fields it
// can be selected by, and which parts of it are owned as a whole. [Resolver] is the type to start
// from.
//
// The package reads discovery and OpenAPI. It knows nothing of clients, watches or objects.
package kinds
