// Package inspect says what a client of kates does now, and what it has done, in numbers: for
// metrics, status pages and tests. It reads; it changes nothing, and sends no request.
//
//	report := inspect.Of(client)
//	for _, w := range report.Watches {
//	    fmt.Println(w.Name, w.Completed, len(w.Queries), w.Snapshots)
//	}
//
// A report costs a few microseconds per query and stream, and the estimate of bytes looks at some
// objects of each: ask for it some times per second at most. Everything in it is the caller's.
// Objects that [Watch.Object] returns are shared: do not write to them.
package inspect

import (
	"time"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/kates"
)

// Report is what a client does and has done. It marshals to JSON.
type Report struct {
	// At is when it was made.
	At time.Time `json:"at"`
	// Server is the address of the API server, without credentials; empty for a fake.
	Server  string    `json:"server,omitempty"`
	Watches []*Watch  `json:"watches"` // in the order of their beginning
	Streams []*Stream `json:"streams"` // by resource, namespace and selectors
	Loops   []*Loop   `json:"loops"`   // in the order of their beginning
	// Leaders and Shards are those of [kates.Status].
	Leaders []kates.LeaderStatus `json:"leaders,omitempty"`
	Shards  []kates.ShardStatus  `json:"shards,omitempty"`
}

// WatchKind says who reads a watch.
type WatchKind string

// The kinds of watches.
const (
	OfSnapshots  WatchKind = "snapshots"  // one snapshot of all queries: Watch, Run
	OfPartitions WatchKind = "partitions" // one for each key: WatchEach, RunEach, controllers
	OfLister     WatchKind = "lister"     // no snapshot: a lister
)

// Watch is an open watch.
type Watch struct {
	// ID tells the watches of this process apart.
	ID int64 `json:"id"`
	// Name is set by [kates.WithName]. Default: the Go type of the snapshot's struct, the name of
	// the controller, or the names of the queries. Several watches may have the same.
	Name string    `json:"name"`
	Kind WatchKind `json:"kind"`
	// Opened is when the watch was opened, and Completed when its first snapshot was complete;
	// zero before that. Incomplete says then what is missing.
	Opened     time.Time `json:"opened"`
	Completed  time.Time `json:"completed,omitzero"`
	Incomplete string    `json:"incomplete,omitempty"`
	Queries    []*Query  `json:"queries"`
	// Signals on Changed; Updates are the calls that found a complete snapshot, and Snapshots those
	// of them that delivered one which differs from the last. Changes are the objects that these
	// have added, changed or removed. For partitions, a turn counts as a snapshot.
	Signals   uint64 `json:"signals"`
	Updates   uint64 `json:"updates"`
	Snapshots uint64 `json:"snapshots"`
	Changes   uint64 `json:"changes"`
	// Signalled is when the last signal was given, and Updated when the last snapshot was
	// delivered.
	Signalled time.Time `json:"signalled,omitzero"`
	Updated   time.Time `json:"updated,omitzero"`
	// Keys are those of partitions; nil for other watches.
	Keys *Keys `json:"keys,omitempty"`

	of collect.Watch
}

// Query is one query of a watch.
type Query struct {
	kates.QueryStatus
	// Streams are the IDs of the streams that the query reads. The objects of a stream that several
	// queries read are in memory once.
	Streams []int64 `json:"streams"`
	// Bytes is an estimate of the memory of the query's objects.
	Bytes int64 `json:"bytes"`
	// Events is how often something has changed for the query, and Coalesced how many of these were
	// changes of an object that had changed before and was not taken yet: no snapshot shows what
	// was between.
	Events    uint64 `json:"events"`
	Coalesced uint64 `json:"coalesced"`
	// Untaken is the number of objects that have changed and are in no snapshot yet, and
	// UntakenSince when the first of them has changed; zero if there is none.
	Untaken      int       `json:"untaken"`
	UntakenSince time.Time `json:"untakenSince,omitzero"`
}

// Keys are the partitions of a watch.
type Keys struct {
	// All of them; Waiting for a signal or for quiet; Ready for a worker; Running; Resting after an
	// error.
	All     int `json:"all"`
	Waiting int `json:"waiting"`
	Ready   int `json:"ready"`
	Running int `json:"running"`
	Resting int `json:"resting"`
	// ReadySince is when the key that is ready and has waited longest became ready; zero if there
	// is none.
	ReadySince time.Time `json:"readySince,omitzero"`
	// Some of the keys that run, rest or are ready, 100 at most, in this order, then by key.
	Some []Key `json:"some,omitempty"`
}

// KeyState is the state of a key.
type KeyState string

// The states of a key.
const (
	KeyIdle    KeyState = "idle"
	KeyWaiting KeyState = "waiting"
	KeyReady   KeyState = "ready"
	KeyRunning KeyState = "running"
	KeyResting KeyState = "resting"
	// A key that runs, and has changed since its turn began: its next turn waits, or is ready.
	KeyRunningWaiting KeyState = "running, waiting"
	KeyRunningReady   KeyState = "running, ready"
)

// Key is one partition.
type Key struct {
	Key   string   `json:"key"`
	State KeyState `json:"state"`
	// Since is when a key that is ready became ready, or one that runs got its turn.
	Since time.Time `json:"since,omitzero"`
	// Failures in a row, and Until when the key rests.
	Failures int       `json:"failures,omitempty"`
	Until    time.Time `json:"until,omitzero"`
}

// ListReason is why a stream lists.
type ListReason string

// The reasons of lists.
const (
	ListFirst     ListReason = "first"      // the stream begins
	ListAgain     ListReason = "again"      // the list before has failed
	ListExpired   ListReason = "expired"    // the server has forgotten the version of the watch: 410
	ListOwnWrites ListReason = "own_writes" // own writes that no watch has shown in time
	ListNoRoom    ListReason = "no_room"    // WithMaxObjects
	ListHistory   ListReason = "history"    // the server's version is older than what was shown
	ListUnread    ListReason = "unreadable" // watches cannot be read
	ListRefused   ListReason = "refused"    // the watch could not be opened: no rights, no such kind
)

// WatchReason is why a stream opens a watch.
type WatchReason string

// The reasons of watches.
const (
	WatchListed WatchReason = "listed" // after a list
	WatchEnded  WatchReason = "ended"  // the server has ended the one before, as it does after minutes
	WatchShort  WatchReason = "short"  // the one before has ended early, without an error
	WatchError  WatchReason = "error"  // the one before has ended with an error
	WatchIdle   WatchReason = "idle"   // the one before has brought nothing for the idle time-out
	WatchMoved  WatchReason = "moved"  // the client has moved to another connection
	WatchKept   WatchReason = "kept"   // the stream begins with what WithWarmStart has kept, without a list
)

// Stream is one list+watch, and what it holds.
type Stream struct {
	// ID tells the streams of this process apart.
	ID int64 `json:"id"`
	// Resource in the form "deployments.v1.apps" or "pods.v1".
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Labels    string `json:"labels,omitempty"` // the selectors
	Fields    string `json:"fields,omitempty"`
	// AnyOf has alternatives, label and field selectors, that the client judges: [kates.Query].AnyOf.
	AnyOf string `json:"anyOf,omitempty"`
	// Form of the objects, as in [kates.QueryStatus].
	Form  string      `json:"form,omitempty"`
	State kates.State `json:"state"`
	Since time.Time   `json:"since"`
	Error string      `json:"error,omitempty"`
	// Heard is when the server last said anything.
	Heard time.Time `json:"heard,omitzero"`
	// Version up to which the watch has delivered everything.
	Version string `json:"version,omitempty"`
	// Objects that are held, and an estimate of the bytes that they take.
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
	// Listing is the number of objects that the list under way has brought; 0 if there is none.
	Listing int `json:"listing,omitempty"`
	// Listeners are the queries that read the stream.
	Listeners int `json:"listeners"`
	// Events that the watch has brought, and bookmarks.
	Events    uint64 `json:"events"`
	Bookmarks uint64 `json:"bookmarks"`
	// Undecodable are the objects of lists and events that did not decode, or whose Where or
	// Transform failed.
	Undecodable uint64 `json:"undecodable"`
	// Lists and Watches that were begun, by reason. Reasons that never occurred are missing.
	Lists   map[ListReason]uint64  `json:"lists"`
	Watches map[WatchReason]uint64 `json:"watches"`
	// Pending own writes that the watch has not shown yet, and Unsettled ones: see
	// [kates.QueryStatus].
	Pending   int `json:"pending"`
	Unsettled int `json:"unsettled,omitempty"`
	// PendingSince is when the oldest pending write was answered; zero if there is none.
	PendingSince time.Time `json:"pendingSince,omitzero"`
	// Writes are some of the pending writes, the oldest 100.
	Writes []OwnWrite `json:"writes,omitempty"`
}

// OwnWrite is a write of this client that a watch has not shown yet.
type OwnWrite struct {
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Since     time.Time `json:"since"`
	// Version of the write; empty where it is not known.
	Version string `json:"version,omitempty"`
	// Gone: the object was deleted, or is not in the query any more.
	Gone bool `json:"gone,omitempty"`
	// Unsettled: the server could not be asked what the write means here.
	Unsettled bool `json:"unsettled,omitempty"`
}

// Loop is an open [kates.Run], [kates.RunEach] or controller.
type Loop struct {
	Name string `json:"name"`
	// Workers are the calls that may run at a time.
	Workers int `json:"workers"`
	// Running are the calls that run now.
	Running []Call `json:"running,omitempty"`
	// Returned is how many calls have returned, by outcome. Outcomes that never occurred are
	// missing.
	Returned map[kates.CallOutcome]uint64 `json:"returned"`
	// Failing are the keys whose last call has failed, 100 at most, by key. Run has one, without a
	// key.
	Failing []Failure `json:"failing,omitempty"`
	// FailingAll is how many there are.
	FailingAll int `json:"failingAll"`
}

// Call is a call that runs.
type Call struct {
	Key     string    `json:"key,omitempty"`
	ID      string    `json:"id"`
	Since   time.Time `json:"since"`
	Attempt int       `json:"attempt"`
}

// Failure says how the last call of a key has failed.
type Failure struct {
	Key     string    `json:"key,omitempty"`
	Attempt int       `json:"attempt"` // how many have failed in a row
	Error   string    `json:"error"`
	At      time.Time `json:"at"`
	// Since is when the first of the failures in a row was.
	Since time.Time `json:"since,omitzero"`
	// ID of the call.
	ID string `json:"id"`
}

// ObjectKey is the name of an object.
type ObjectKey struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Object is what a watch has of one object.
type Object struct {
	// Shown is the object as the last snapshot has it, nil if it has none of that name. Invalid
	// says why it is left out.
	Shown   kates.Object `json:"shown,omitempty"`
	Invalid string       `json:"invalid,omitempty"`
	// Streams are what the streams of the query have of it: one, or several of a union.
	Streams []ObjectInStream `json:"streams"`
}

// ObjectInStream is what a stream has of one object.
type ObjectInStream struct {
	Stream int64 `json:"stream"`
	// Watched is the object as the watch has delivered it; nil if it has none.
	Watched kates.Object `json:"watched,omitempty"`
	// Current is what the stream shows now: Watched, or what an own write has laid over it; nil if
	// it shows none.
	Current kates.Object `json:"current,omitempty"`
	// Write is the own write that is laid over Watched; nil if there is none.
	Write *OwnWrite `json:"write,omitempty"`
	// Untaken: the object has changed since the last snapshot.
	Untaken bool `json:"untaken,omitempty"`
}

// InvalidObject is an object that the snapshots leave out.
type InvalidObject struct {
	ObjectKey
	// Why it is left out.
	Why string `json:"why"`
}
