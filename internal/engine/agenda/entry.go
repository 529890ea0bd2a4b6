package agenda

import "time"

// Entry is one key of an [Agenda]. The zero value, with its key, is a key with nothing to do.
type Entry struct {
	Key string // set once

	state         keyState
	failures      int       // turns in a row that ended in a rest
	notBefore     time.Time // of a key that waits for quiet, or rests; else zero
	first, latest time.Time // the changes of a key that waits for quiet
	since         time.Time // when a key that is ready became so, or one that runs got its turn
	place         int       // in a set or heap, from 1; 0: in none
	own, was      bool      // due for itself, see queue; was: so was the present turn
	before, after *Entry    // in a list
}

// Runs reports whether a worker has the key.
func (e *Entry) Runs() bool { return e.state.runs() }

// Attempt is 1, or higher after turns in a row that ended in a rest.
func (e *Entry) Attempt() int { return e.failures + 1 }

// keyState is the state of one key of an [Agenda].
//
//	       due              Release, MakeReady           Next
//	idle ───────▶ waiting ───────────────────▶ ready ───────────▶ running
//	  │                        MakeReady        ▲ ▲               │     │
//	  └─────────────────────────────────────────┘ │          Done │     │ Rest
//	                                              │               ▼     ▼
//	                              the time is over│             idle  resting
//	                                              └──────────────────────┘
//
// A running key that gets due again stays with its worker, and goes on from there:
//
//	         due                  Release, MakeReady
//	running ───────▶ runningWaiting ───────────────▶ runningReady
//	   │                │       │                       │     │
//	   │ MakeReady      │ Done  │ Rest             Done │     │ Rest
//	   ▼                ▼       ▼                       ▼     ▼
//	runningReady     waiting  resting                 ready  resting
//
// What is not drawn changes nothing: a resting key rests on, however much changes. Only Drop leads
// from any state to idle.
type keyState uint8

const (
	keyIdle           keyState = iota // nothing is to be done
	keyWaiting                        // for a release, and for quiet where that is asked for
	keyReady                          // in the queue
	keyResting                        // waits after a failure, until a time
	keyRunning                        // a worker has it
	keyRunningWaiting                 // a worker has it, and its next turn already waits
	keyRunningReady                   // a worker has it, and its next turn is ready
)

// runs reports whether a worker has the key.
func (s keyState) runs() bool { return s >= keyRunning }

// waits reports whether the key waits for a release.
func (s keyState) waits() bool { return s == keyWaiting || s == keyRunningWaiting }

func (s keyState) String() string {
	return [...]string{"idle", "waiting", "ready", "resting", "running", "running, waiting", "running, ready"}[s]
}
