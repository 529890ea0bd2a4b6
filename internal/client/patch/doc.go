// Package patch computes what has to be sent to change an object.
//
// [Merge] is the difference of two objects as a JSON merge patch. [CarryObject] carries a change
// of a partial view over to the whole object. [Blind] is the patch for an object of which only
// such a view is known. [Dropped] tells what of a change the server has not stored. [MergeUpdate]
// lays one object over another. [KeepIdentity] refuses changes of what an object is.
//
// The package is pure: it knows no client and sends nothing.
package patch
