package stream

import (
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/object"
)

// tally counts what a stream has done. Nothing of the stream depends on it. It needs no lock.
type tally struct {
	id          int64 // tells the streams of a process apart
	events      atomic.Uint64
	bookmarks   atomic.Uint64
	undecodable atomic.Uint64
	listed      atomic.Int64 // the objects of the list under way
	size        atomic.Pointer[sized]
}

var streamIDs atomic.Int64

// taken counts an object that has come.
func (t *tally) taken(o object.Object) {
	if object.Fault(o) != nil {
		t.undecodable.Add(1)
	}
}

// sized is an estimate of how many bytes an object of a stream takes.
type sized struct {
	per     int64
	objects int // that there were
	at      time.Time
}
