// Package intern lets objects share memory for equal parts: strings (namespaces, labels, names of
// images and nodes), and whole maps of labels or of resource quantities. It looks for an equal
// part in the object's previous version first, then in a [Table].
//
// It is for objects that nobody writes to, because they share memory afterwards.
package intern
