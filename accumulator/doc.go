// Package accumulator makes one snapshot of many queries: lists and watches go in, coalesced
// changes of one snapshot come out.
//
// Start at [New], which makes an [Accumulator] of some queries on a [streamset.Set], the streams of
// one client. Programs get theirs by kates.Client.Watch: package kates adds names, kinds and
// requests. This package knows of an API server only what a stream's source lists and watches. What
// is below has packages of its own:
//
//	accumulator ─┐
//	             ├─▶ collect ──▶ query ──▶ stream ──▶ coherence
//	partition ───┘
//
// Package stream lists, watches, and shows own writes. Package query makes one set of objects of
// the streams of one query. Package collect runs queries for one reader, and says when there is
// something new. Package partition makes a snapshot for each key, in place of one for all.
//
// # Updates
//
// A reader costs nothing while it is busy: a burst of events on one object is one dirty key. An
// Update takes a batch of each query, judges and converts the objects that have changed, and
// places them in one table for each field. So it costs what has changed. After each Update, a
// goroutine makes the copies that the next snapshot will need, while the reader is busy. Only a
// reader that asks again at once waits for them.
package accumulator
