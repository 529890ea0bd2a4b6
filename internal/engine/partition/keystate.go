package partition

// keyState is the state of one key of an [agenda].
//
//	       due               release, hurry              next
//	idle ───────▶ waiting ───────────────────▶ ready ───────────▶ running
//	  │                          hurry          ▲ ▲               │     │
//	  └─────────────────────────────────────────┘ │          done │     │ rest
//	                                              │               ▼     ▼
//	                              the time is over│             idle  resting
//	                                              └──────────────────────┘
//
// A running key that gets due again stays with its worker, and goes on from there:
//
//	         due                    release, hurry
//	running ───────▶ runningWaiting ───────────────▶ runningReady
//	   │                │       │                       │     │
//	   │ hurry          │ done  │ rest             done │     │ rest
//	   ▼                ▼       ▼                       ▼     ▼
//	runningReady     waiting  resting                 ready  resting
//
// What is not drawn changes nothing: a resting key rests on, however much changes. Only drop leads
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
