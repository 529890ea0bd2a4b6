// Package mutants breaks the library on purpose, in one place at a time. The test of what breaks
// must fail. What no test notices is not guaranteed.
//
// The package consists of tests. A mutant names a function, and a pattern of statements in it
// (see replaced). The pattern is looked for in the syntax tree: moving a package, renaming a file
// and formatting code anew break no mutant. A mutant whose place is gone is an error with its name.
//
// All mutants are compiled and linked at once (see weave): each is a copy of its function, and the
// environment says which copy counts. No file in the tree changes.
//
// Each table is sorted by what its mutants break. rules*_test.go has the rules that keep the
// guarantees on own writes and monotony (package coherence explains them), those of warm starts,
// those of queries of several streams (package internal/engine/query), and those of package derive.
// peers_test.go has the known mistakes of other libraries of this kind. promises*_test.go has
// promises of the documentation, which are these:
//
//   - Run tries again after an error, with the newest snapshot and all deltas of the try
//     before, no sooner than its backoff
//   - a call may finish within the shutdown timeout, but for that of a leader that has lost
//     its lease
//   - a panic of a user's function is an error like any other
//   - a replica stands for election when its first snapshot is complete, and never acts on one
//     from before it has won
//   - a lease is released by the process that holds it, when its work has ended
//   - a lease that was not renewed is lost, by no clock but one's own
//   - a write that a lease guards is sent only while the lease holds
//   - a key that has changed goes before keys that wait for their first call, and no key
//     starves
//   - a key whose last object has gone is handed out once more, empty
//   - a key has one worker at a time, and what changes meanwhile is for its next turn
//   - the deltas of a turn are those since the last turn of its key that ended without an
//     error
//   - a key has a turn when something has changed that it has read, absence included
//   - an object is shown when what it names is known
//   - what is named is watched for as long as it is named
//   - a reconciler is told of a root that has departed, and of no other
//   - a reconciler says when its key is next, by RequeueAfter or by a permanent error
//   - each key is one replica's, and moves when its work has ended
//   - the keys of a replica that has died move to the others, and no other key does
//   - a replica gives keys up before its claim is written, and takes keys after it
//   - an object of another shard is left out, also where the server does not shard
//   - ApplyOwned sends what differs and nothing else, and removes what is no longer there
//   - ApplyOwned reports in the order of its objects, and keeps that order if it is told to
//   - Modify changes nothing that the caller's type does not know
//   - a read outside of a watch changes nothing that watches show
//   - a write whose outcome is unknown is an error, and no write is sent again by the client
//   - a query for a part of what a watch has is served from it, and shows no other object
//   - an object of which a part is held is the whole one without the other fields
//   - what is held in part is never the base of a write
//   - a field of structs is a whole object's in all that it has
//   - each line of a log comes once
//   - a status about another generation is no status
//   - a new connection takes over when it works, and no watch has a gap
//   - a kubeconfig from a cluster runs no program, and no error quotes its credentials
//   - a file that is half written removes no cluster
//   - a cluster that fails keeps its last known objects, and nothing of it is pruned
//   - a cluster that takes the name of another has nothing of the other's
//   - a cluster that hangs holds up no other
//   - a change of targets leaves no gap in what is watched
//   - a watch that has no room says so, and what it has shown stays
//   - Update is asked for while it would show something new
//   - no error quotes a Secret
//   - an event that cannot be is not taken in
//   - a watch that cannot be read is opened with growing pauses
//   - a list that is broken, a lie or without end is an error
//   - what a server sends is bounded in bytes
//   - what comes from outside is decoded as its JSON is, or is an error
//   - objects share what is equal in all bytes, and only among readers
//   - what is decoded side by side is taken in in its order
//   - a recording has no secrets, and is readable up to a crash
//   - a replay shows at each position what was there
//   - the server in memory collects what has lost its owners, and what was defined
//   - the server in memory lists and watches as a real one does
//   - a golden file is the same in each run
//   - a trial finds what a program does not finish, and what a crash breaks
//   - the detector sees each write to a shared object
//   - the status page shows no secrets, and is read-only
//   - HealthCheck names what hangs
//   - an observer is told once, and its panic ends nothing
//   - Secrets are in no file in the clear
//   - an object's own functions read it as its query holds it
//
// There are at most 200 mutants and 60 promises, so that all can be tried each time: who adds one
// where there are as many takes one away that others make needless.
package mutants
