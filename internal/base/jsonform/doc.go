// Package jsonform converts between the forms of an object: a Go type, an untyped object, a map,
// a struct of the program, and a manifest.
//
// The common form is unstructured.Unstructured. [ToUnstructured] makes it of any value, [Fill]
// and [FillList] decode it into any target, [Convert] goes from one Go type to another, and
// [EachObject] reads it from manifests. Results share no memory with what they were made of.
// [FieldValues] and [DropFields] take fields by their paths, from an object of any form.
//
// The package is pure: it knows no client and sends nothing.
package jsonform
