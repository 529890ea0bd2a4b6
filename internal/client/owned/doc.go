// Package owned applies the sets of objects that owners want, and prunes what they want no more.
//
// In come a [Set] and the options of its writes. Out come a [Result], in the order of the set, and
// the errors, each of which names its object. A set is applied by a write.Writer, stage by stage,
// and what was applied is remembered in the client's memory (package applied), so that an object
// that is as it is wanted costs no request.
//
// The package never touches an object that does not belong to the set, never prunes while it is
// not certain what is wanted, and never takes fields from other managers on its own.
package owned
