// Package keyed has the loops that call the functions of users. [Loop] calls for keys: it is that
// of kates.RunEach and of the controllers of package controller. [Whole] calls with snapshots that
// have no keys: it is that of kates.Run and fleet.Run.
//
// Start at [Loop]. A loop knows keys, and no objects and snapshots:
//
//	Source   hands out the turns of keys: package turns makes partitions a Source
//	Work     does what is to be done in a turn: the user's function, of RunEach or a controller
//	Config   how: workers, backoff, triggers, leadership, shards
//
// A turn goes this way:
//
//	Source.Next ─▶ Shards.Enter ─▶ Work.Begin ─▶ Work.Call ─▶ leave the shard ─▶ Work.End
//	                                   └─▶ Turn.Drop: another replica's key, or nothing to do
//
// Several workers take turns at a time, and no key is in two of them: the source sees to that. A
// panic of the work is an error. An error backs its key alone off; what that means for the turn,
// and whether a permanent error ends the loop, is for the Work to say.
//
// # Why the types are here
//
// Package controller needs parts of package kates that are not public: how a struct's fields
// become queries, and the partitions of roots. [Plan], [Roots] and [Root] are the types of what
// package kates gives it, through package doors. They are here because both packages know them,
// and kates cannot import controller. Public types stay in package kates. This package makes its
// errors through [Policy].
package keyed
