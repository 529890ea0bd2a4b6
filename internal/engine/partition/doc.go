// Package partition makes a snapshot for each key. It is for a program that has one output per
// tenant or per gateway.
//
// Start at [Start], which makes [Partitions] of some queries, and at [Partitions.Next], which
// hands out a [Turn]. [query.Query.Key] returns the keys of an object. Each key gets a struct of
// its own, with its objects and those that belong to every partition. Package collect takes the
// changes.
//
//	batches ──▶ index: object ─▶ keys ──▶ partitions: what has changed in each
//	                                          │ due: at a signal, or when quiet
//	                                          ▼
//	                                       agenda ──▶ Next: a Turn ──▶ Done
//
// # Keys that are due
//
// A key becomes due when one of its objects changes, and the change is worth a signal. An object
// that moves makes both keys due. A change that is not worth a signal ([query.Query.Signal], quiet
// own writes) is in the key's next turn. Changes coalesce: an object that is again as the last
// turn showed it causes no turn. Next first takes what all streams have, so a turn is as new as it
// can be (G2, G4). Nothing runs while all workers are busy, but the goroutine of a debounce, if
// there is one.
//
// # Which key is next
//
// Package agenda says that. It has two classes. A key that is due for itself goes before those
// that are due with all keys: something of its own has changed, or somebody asks for it. The
// others wait for their first turn, or for one because of a change that concerns every key.
//
// # Keys that come and go
//
// A partition exists as long as an object has its key; objects that belong to every partition do
// not make one. After the last object has left a partition that was handed out, the partition is
// handed out once more, empty, until that turn ends without an error. Then it is forgotten. An
// invalid object keeps the keys that it had, so a partition never ends because an object does not
// decode.
//
// # What a turn costs
//
// A turn costs what changed in its partition. One index per field holds the rows of all objects by
// name, each converted once. A partition has tables of pointers into the index, and its turns
// bring them up to date. For a field without objects of its own it uses a table that all such
// partitions share. A change of an object that belongs to every partition is noted for each
// partition until its turn: this takes time and memory in the number of partitions.
//
// # Look-ups
//
// A field that is a [tables.Lookup] belongs to no partition, and every turn can read it. When a
// turn ends, its look-ups replace those of the turn before, also look-ups that found nothing, or
// an invalid object. A change of an object makes those partitions due that have read it. The reads
// of a turn are known when it ends: what changed since it began is compared with them then.
//
//	turn ──reads──▶ Done ──▶ readers: object ─▶ partitions
//	                 ▲                 ▲
//	         meanwhile: what changed   └── what changes
//	         since the turn began
package partition
