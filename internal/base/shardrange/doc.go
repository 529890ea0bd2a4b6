// Package shardrange has the shards of KEP-5866, sharded list and watch: which objects a server
// sends that is asked for a share of them, and how members of a group share all of them out. It
// is pure: no I/O, no goroutine, no clock.
//
// Start at [Shard], a share of the objects of a resource, and at [Plan], which gives each member
// its ranges of hashes.
//
// # The hash
//
// An object belongs to a shard by the 64-bit FNV-1a of its UID, or of its namespace ([Hash]).
// Neither ever changes while the object exists, so it never moves from one shard to another.
// FNV-1a's high bits hardly depend on a string's last letters: of 1,000 namespaces n0 to n999,
// 600 are in one quarter of all hashes, and none is in another. Therefore a plan is cut at
// quantiles of the hashes that there are ([Plan.Divide]), and not into equal parts.
//
// # The text
//
// [Shard.String] is what a request has as its shardSelector, and what the server repeats in
// metadata.shardInfo of the list:
//
//	shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || …
//
// A server without the feature gate ShardedListAndWatch ignores it without an error, and sends
// everything. So who asks for a share judges by [Shard.Has] what comes.
package shardrange
