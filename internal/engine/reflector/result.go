package reflector

import (
	"errors"
	"time"

	"github.com/kates-go/kates/internal/engine/source"
)

// ending is how a watch has ended.
type ending int

const (
	inTime  ending = iota // the server has ended it, after the time of a watch
	early                 // the server has ended it before that
	silent                // nothing came, not even a bookmark
	failed                // with an error
	garbled               // with something that no server should send
	moved                 // the connection was exchanged
	expired               // the server has forgotten the version
	full                  // there was no room for an object
)

// endings says what follows each. Whether there is a pause before it depends on the result, too:
// see [result.futile].
var endings = [...]struct {
	probe  bool        // the server is asked for its newest version (rule 8)
	list   bool        // only a list helps
	reason watchReason // why the next watch is opened
}{
	inTime:  {reason: watchEnded},
	early:   {probe: true, reason: watchShort},
	silent:  {probe: true, reason: watchIdle},
	failed:  {probe: true, reason: watchError},
	garbled: {probe: true, reason: watchError},
	moved:   {probe: true, reason: watchMoved},
	expired: {list: true, reason: watchError},
	full:    {list: true, reason: watchError},
}

// result is what came of a watch.
type result struct {
	ending  ending
	err     error
	brought brought
	lasted  time.Duration
}

// brought is what a watch has brought.
type brought int

const (
	nothing brought = iota
	oldNews         // no version that the sink did not have
	news
)

const (
	// steady is how long a watch must have lasted for its end to be no failure.
	steady = time.Second
	// fullTerm is less than the least time for which the server is asked to keep a watch open,
	// which is five minutes.
	fullTerm = 5*time.Minute - source.OpenTimeout
	// pauseMost is the longest pause between failures. After a watch that lasts for longer, pauses
	// are short again.
	pauseMost = 30 * time.Second
	// garbledMost is how many watches may be unreadable and bring nothing new before a list is
	// made, with none between them that brought something.
	garbledMost = 4
)

// endingOf tells how a watch has ended that was closed, or has brought an error.
func endingOf(err error, lasted time.Duration) ending {
	switch {
	case err == nil && lasted < fullTerm:
		return early
	case err == nil:
		return inTime
	case source.Expired(err):
		return expired
	case errors.Is(err, source.ErrTooMany):
		return full // deletions that make room come after the event: only a list shows them
	case source.IsGarbled(err):
		return garbled
	}
	return failed
}

// futile: the watch brought nothing new, and failed or did not last. There has to be a pause.
func (r result) futile() bool {
	return r.brought != news && (r.err != nil || r.lasted < steady)
}

// unheard: the watch is futile, and says nothing about how new the objects are.
func (r result) unheard() bool {
	return r.futile() && (r.brought == nothing || r.lasted < steady)
}

// resets reports whether the pauses are short again after it.
func (r result) resets() bool { return !r.futile() || r.lasted > pauseMost }
