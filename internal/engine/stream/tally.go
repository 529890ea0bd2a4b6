package stream

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// tally counts what a stream has done. Nothing of the stream depends on it. It needs no lock.
type tally struct {
	id          int64 // tells the streams of a process apart
	events      atomic.Uint64
	bookmarks   atomic.Uint64
	undecodable atomic.Uint64
	listed      atomic.Int64 // the objects of the list under way
	lists       [len(listReasons)]atomic.Uint64
	watches     [len(watchReasons)]atomic.Uint64
	size        atomic.Pointer[sized]
}

var streamIDs atomic.Int64

// listReason is why a stream lists.
type listReason int

const (
	listFirst     listReason = iota // the stream begins
	listAgain                       // the list before has failed
	listExpired                     // the server has forgotten the version of the watch
	listOwnWrites                   // own writes that no watch has shown in time
	listNoRoom                      // there was no room for an object
	listHistory                     // the server's version is older than what was shown
	listUnread                      // watches cannot be read
	listRefused                     // the watch could not be opened
)

var listReasons = [...]string{"first", "again", "expired", "own_writes", "no_room", "history", "unreadable", "refused"}

// watchReason is why a stream opens a watch.
type watchReason int

const (
	watchListed watchReason = iota // after a list
	watchEnded                     // the server has ended the one before, in time
	watchShort                     // the one before has ended early, without an error
	watchError                     // the one before has ended with an error
	watchIdle                      // the one before has brought nothing for the idle time-out
	watchMoved                     // the client has moved to another connection
	watchKept                      // the stream begins with what was kept, without a list
)

var watchReasons = [...]string{"listed", "ended", "short", "error", "idle", "moved", "kept"}

// lists counts a list. A nil tally counts nothing.
func (t *tally) list(why listReason) {
	if t != nil {
		t.lists[why].Add(1)
	}
}

// watch counts an open watch.
func (t *tally) watch(why watchReason) {
	if t != nil {
		t.watches[why].Add(1)
	}
}

// taken counts an object that has come.
func (t *tally) taken(o object.Object) {
	if object.Fault(o) != nil {
		t.undecodable.Add(1)
	}
}

// next returns why a list follows a round that has ended with an error. followed: its list was
// taken in. asked: somebody has asked for a list.
func (err roundError) next() listReason {
	switch {
	case err.error == nil:
		return listOwnWrites
	case source.Expired(err.error):
		return listExpired
	case errors.Is(err.error, source.ErrTooMany):
		return listNoRoom
	case errors.Is(err.error, errOlder):
		return listHistory
	case !err.followed:
		return listAgain
	case source.IsGarbled(err.error):
		return listUnread
	}
	return listRefused
}

// roundError is how a list, and what was watched on it, has ended.
type roundError struct {
	error
	followed bool // the list was taken in
}

// next returns why another watch follows one that has ended.
func (e ending) next() watchReason {
	switch {
	case e.moved:
		return watchMoved
	case e.silent:
		return watchIdle
	case e.err != nil:
		return watchError
	case e.bad || e.barren:
		return watchShort
	}
	return watchEnded
}

// sized is an estimate of how many bytes an object of a stream takes.
type sized struct {
	per     int64
	objects int // that there were
	at      time.Time
}

// counted returns how often something has happened, by reason.
func counted(names []string, counts []atomic.Uint64) map[string]uint64 {
	all := make(map[string]uint64)
	for i := range counts {
		if n := counts[i].Load(); n > 0 {
			all[names[i]] = n
		}
	}
	return all
}
