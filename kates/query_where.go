package kates

import "github.com/kates-go/kates/internal/client/compile"

// A Where decides which objects are in a query: see [Query]. [WhereOf] makes one of a function. The
// zero value is none: all objects are in. Values compare: one value is one function.
type Where struct{ f *compile.Where }

// WhereOf returns a [Query.Where] of a function that takes a T: see [Query] for what T may be. The
// function returns whether the object is in. Of an object for which it returns an error or panics,
// nobody can say that: the object is left out as [Invalid], with the error as its reason.
//
//	var ours = kates.WhereOf(func(c *gatewayv1.GatewayClass) (bool, error) {
//	    return c.Spec.ControllerName == "example.com/controller", nil
//	})
//
// Each call returns another Where. Keep it in a variable: queries that share a watch need the same
// one. An object that does not decode as a T is left out as Invalid. An API type of another kind
// than the field's is an error of Watch.
func WhereOf[T any](f func(T) (bool, error)) Where { return Where{compile.WhereOf(f)} }

// Selects reports whether an object of any Go type is in, as a watch would ask. The zero Where lets
// all in. An error says that the Where was made of nothing, what the function returned, or that it
// panicked. A watch refuses the first, and leaves the object out as [Invalid] for the others.
func (w Where) Selects(o Object) (bool, error) { return w.f.Selects(o) }

// IsZero reports whether it is none.
func (w Where) IsZero() bool { return w.f == nil }
