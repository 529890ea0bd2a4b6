// Package plan decides what to watch for those who follow some objects of one kind in one cluster.
// It is pure logic: package fleet makes lists and watches of it. Begin at [Schedule].
//
// # The rule
//
// A [Target] says which objects somebody follows, and a [Part] is a list and a watch. Each target
// is in one part of a [Plan]. The first level of this table that fits all targets is the plan's:
//
//	level       a target's part                 fits if                               limit  to return
//	Selections  its name, or its labels, in     each target has a name or labels,       8        4
//	            its namespace or in all         no object may be in two parts,
//	                                            and they are no more than
//	Namespaces  its namespace                   each target has a namespace,            4        2
//	                                            and these are no more than
//	Kind        everything                      always                                  1
//
// The first limit is for a plan that stays at its level, or comes from a narrower one. To return
// from a wider level there may be half as many: so a target that comes and goes does not change
// the level each time. One that is no longer followed also stays in the plan for a while, which is
// the caller's to say.
//
// # Where rights are narrow
//
// If the server refuses a target's part, the target gets its part of the next level upwards in the
// table, which needs fewer rights: its namespace, then its name or labels. No limit holds for
// these. A target all of whose parts are refused is left out, so that it stops no other. What the
// present plan has stays, also if it is refused now: a refusal takes nothing away that was shown.
//
// A part that lies in another part of the plan is left out. If one target needs whole objects, all
// parts are of whole objects, else of metadata.
//
// # No overlap
//
// An object is in one part of a plan, at most: so it is in one stream of the query that watches the
// plan (see [Cover], which that query uses too). A part has a namespace or all, and a name or any;
// of labels nobody knows which objects have them. Where rights are narrow, a part that overlaps with
// another one is left out, unless it is shown already: labels in all namespaces, say, beside a
// namespace.
//
// # No gap
//
// A plan replaces the one before when all of its parts are complete, and not earlier. A target is
// known if the plan that is shown has it, and each one that waits to be shown: it stays known
// whichever of them is shown next.
package plan
