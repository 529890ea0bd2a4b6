package reflector

import (
	"errors"
	"sync/atomic"

	"github.com/kates-go/kates/internal/engine/source"
)

// counts are how many lists and watches there were, by reason. Nothing depends on them.
type counts struct {
	lists   [len(listReasons)]atomic.Uint64
	watches [len(watchReasons)]atomic.Uint64
}

// listReason is why a reflector lists.
type listReason int

const (
	listFirst     listReason = iota // the reflector begins
	listAgain                       // the list before has failed
	listExpired                     // the server has forgotten the version of the watch
	listOwnWrites                   // own writes that no watch has shown in time
	listNoRoom                      // there was no room for an object
	listHistory                     // the server's version is older than what was shown
	listUnread                      // watches cannot be read
	listRefused                     // the watch could not be opened
)

var listReasons = [...]string{"first", "again", "expired", "own_writes", "no_room", "history", "unreadable", "refused"}

// watchReason is why a reflector opens a watch.
type watchReason int

const (
	watchListed watchReason = iota // after a list
	watchEnded                     // the server has ended the one before, in time
	watchShort                     // the one before has ended early, without an error
	watchError                     // the one before has ended with an error
	watchIdle                      // the one before has brought nothing for the idle time-out
	watchMoved                     // the client has moved to another connection
	watchKept                      // the first list did not come from the server
)

var watchReasons = [...]string{"listed", "ended", "short", "error", "idle", "moved", "kept"}

// listAfter returns why a list follows a round that has ended with an error. followed: the list of
// that round was committed.
func listAfter(err error, followed bool) listReason {
	switch {
	case err == nil:
		return listOwnWrites
	case source.Expired(err):
		return listExpired
	case errors.Is(err, source.ErrTooMany):
		return listNoRoom
	case errors.Is(err, ErrOlder):
		return listHistory
	case !followed:
		return listAgain
	case source.IsGarbled(err):
		return listUnread
	}
	return listRefused
}

// Lists returns how many lists were asked for, by reason.
func (f *Reflector) Lists() map[string]uint64 { return counted(listReasons[:], f.counts.lists[:]) }

// Watches returns how many watches were read, by reason.
func (f *Reflector) Watches() map[string]uint64 {
	return counted(watchReasons[:], f.counts.watches[:])
}

func counted(names []string, counts []atomic.Uint64) map[string]uint64 {
	all := make(map[string]uint64)
	for i := range counts {
		if n := counts[i].Load(); n > 0 {
			all[names[i]] = n
		}
	}
	return all
}
