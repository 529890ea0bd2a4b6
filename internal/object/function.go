package object

import "unsafe"

// Transform changes an object before a stream holds it. It gets each version of an object once,
// and again with each list that repeats the version: what it makes of it is compared with what is
// held. So it has to make the same of the same object, else each list is a change of all objects.
// Nobody else has the object: it may write to it, but not to its identity and version (apiVersion,
// kind, namespace, name, uid, resourceVersion). It is called without locks, by the goroutine that
// lists and watches and by those that write, at the same time. Where it returns an error or
// panics, that one object is left out as invalid, until its next version, or a list for which it
// does not fail.
//
// Selectors judge an object before it is transformed. Two Transforms are the same function if they
// are the same pointer.
type Transform struct {
	Do func(Object) error
	// Harmless: what it drops is not missed where an object is reported as left out.
	Harmless bool
}

// Changes reports whether it makes another object of an object, as far as anybody misses anything.
func (t *Transform) Changes() bool { return t != nil && !t.Harmless }

// Where decides whether an object is in a stream's query, as a selector does. It gets each version
// of an object in the form in which the stream holds it, before its Transform, and again with each
// list that repeats the version. So it has to decide the same for the same object. It does not
// write to the object, and runs like a Transform. Where it returns an error or panics, that one
// object is left out as invalid. What it leaves out is not held. Two Wheres are the same function
// if they are the same pointer.
type Where struct {
	Do func(Object) (in bool, err error)
	// OfMetadata: it reads nothing but metadata. So it decides on an object that does not decode,
	// too. Others such are in.
	OfMetadata bool
}

// Valid says why an object that a stream has changed, or holds in part, cannot be shown, nil if it can. A reader finds
// out by itself, but too late: the original is gone. It runs like a Where, after the Transform. Its
// values are comparable, and equal ones are the same function.
type Valid interface{ Check(Object) error }

// Signal decides whether a change of an object is worth a signal. old is nil for an object that is
// new, and current for one that is gone. For an object that was replaced by another of its name it
// is called twice, gone and new. A change that is not worth a signal is in the next snapshot, and
// in its deltas, all the same.
//
// It is called without locks, by the goroutine that lists and watches and by those that write, for
// changes in no particular order, before the change is coalesced with others. It does not write to
// its arguments. One that panics is logged, and counts as true.
type Signal func(old, current Object) bool

// FuncID tells function values apart. The zero FuncID is that of nil.
type FuncID struct{ value unsafe.Pointer }

// FuncIDOf returns the same FuncID for two values if they have the same code and, for closures,
// the same variables. Package reflect gives the code alone. The pointer keeps the closure in
// memory, so no other closure gets its address. Nothing is read through it. (Unsafe: no other way
// leads to the variables of a closure.)
func FuncIDOf[F any](f F) FuncID { return FuncID{*(*unsafe.Pointer)(unsafe.Pointer(&f))} }
