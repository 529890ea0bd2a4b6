// Package applied is the bookkeeping of server-side apply for sets of owned objects: it finds
// out, without a request, that applying an object again would change nothing.
//
// Two things in an object tell this, to any reader and also after a restart:
//
//   - An annotation holds a [Digest] of what was applied last. It is applied with the rest, so it
//     changes whenever the rest does.
//   - The managedFields list the fields that the applier owns. Another writer that changes a value
//     takes the field away from the applier.
//
// If the annotation fits what is to be applied, and the applier owns every part of it and nothing
// else, the server has only two things left to do. It would restore the order of list items,
// which has no owner, and restore values: a schema change has lost them, or another writer has
// applied others under the name of the same manager, which no owner shows. [Check] compares these
// with the live object, as far as that is known. What is more in a part that is owned as a whole
// passes for a default of the server, but for selectors of labels. Which parts are owned as a
// whole only, the kind's OpenAPI document says; the managedFields cannot.
//
// Watches of Go types drop the managedFields. What the client's manager has applied is read before
// that, for the version of the object that comes with it ([Entries]). Where this is not known, the
// object's version decides: it was answered by the server to an apply ([Marks]), or a list of
// metadata has shown it ([Recollections]).
//
// [Set] holds the rules of one set: which objects belong to it, which may be applied or pruned,
// and what is sent.
//
// The package knows no client. What it needs from the server, its callers pass in as functions.
package applied
