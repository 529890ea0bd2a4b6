package stream

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/reflector"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/store"
	"github.com/kates-go/kates/internal/engine/warm"
	"github.com/kates-go/kates/internal/object"
)

// Stream is one list+watch and the store that it fills, shared by all who ask for the same. It
// keeps G5 (monotonic) and, with own writes laid over the store, G4. It is safe for concurrent use.
//
// mu is held for moments only: never while a request is under way or a user's function runs.
type Stream struct {
	intake.Intake
	shared    *Shared
	config    *Config // of shared
	requests  source.Requests
	reflector *reflector.Reflector
	kept      *warm.Keeper // for the next process; nil: nothing is kept
	tally     tally
	done      chan struct{} // closed when the stream has ended

	mu lockorder.Mutex[lockorder.Stream]
	guarded
}

// guarded is what the lock of a stream guards.
type guarded struct {
	store     store.Store
	progress  progress
	health    health
	own       ownWrites
	listeners listeners
	waiters   waiters // for Sync
}

// progress is how far a stream has come.
type progress struct {
	phase phase
	ended bool
	// unversioned is the number of the latest deletion that the watch has brought without its
	// version, see Shared.deletions. unversionedRV is the position at that moment. As long as the
	// position is not newer, the stream may show a newer state than its position says.
	unversioned   int64
	unversionedRV string
	// watchRV is the newest version that the stream's own lists and watches have brought. A Sync
	// may have moved the position past it, by a list of its own.
	watchRV string
}

// phase is how far a stream has come with its lists.
//
//	firstList ─────────▶ following
//	    │                 │    ▲      down: own writes were given up
//	    ▼                 ▼    │      right, and up: a list was committed
//	firstGivenUp ──┐   givenUp ┘
//	               └────▶ following
//
// [Stream.follow] and [Stream.giveUp] move it, and nothing else does. A resource that is gone leads
// from givenUp to following, too.
type phase int

const (
	// firstList: the first list is not in.
	firstList phase = iota
	// firstGivenUp: the first list is not in, and own writes were given up.
	firstGivenUp
	// following: what the stream has may be shown.
	following
	// givenUp: more own writes were pending than may be, and were given up. What the stream has may
	// be older than what was shown. So the stream shows nothing until a list has come that is no
	// older than the newest own write.
	givenUp
)

// listed reports whether the first list is in.
func (p phase) listed() bool { return p >= following }

// gaveUp reports whether own writes were given up, and no list has come since.
func (p phase) gaveUp() bool { return p == firstGivenUp || p == givenUp }

// afterGivingUp returns the next phase where own writes are given up.
func (p phase) afterGivingUp() phase {
	if p.listed() {
		return givenUp
	}
	return firstGivenUp
}

// noteUnversioned notes that the watch has shown a deletion whose version is not known: rule 10.
// What it shows next is newer.
func (p *progress) noteUnversioned(number int64, positionRV string) {
	p.unversioned, p.unversionedRV = number, positionRV
}

// deletion returns the number of such a deletion, if the stream may be newer than its position
// because of it; else 0.
func (p *progress) deletion(positionRV string) int64 {
	if p.unversioned == 0 || coherence.Newer(positionRV, p.unversionedRV) {
		return 0
	}
	return p.unversioned
}

// New returns a stream without listeners, which [Stream.Run] fills.
func New(shared *Shared, in intake.Intake) *Stream {
	c := &shared.Config
	s := &Stream{
		Intake: in, shared: shared, config: c, done: make(chan struct{}),
		guarded: guarded{
			store: store.New(shared.Room, c.Hold, in.Whole()), listeners: make(listeners), waiters: make(waiters),
			own:    ownWrites{unsettled: make(map[object.Key]bound), flights: make(map[object.Key]*flight)},
			health: health{since: time.Now()},
		},
	}
	s.tally.id = streamIDs.Add(1)
	s.requests = source.Requests{
		Source: in.Source, Resource: in.Key.Resource, Namespace: in.Key.Namespace,
		Selection: metav1.ListOptions{LabelSelector: in.Key.Labels, FieldSelector: in.Key.Fields, ShardSelector: in.Selector.Shard.String()},
	}
	s.kept = warm.NewKeeper(c.Warm, warm.Stream{
		Intake: &s.Intake, Requests: s.requests, Lock: &s.mu, Stored: s.stored,
	}, c.Logger)
	s.reflector = reflector.New(s, s.reflectorConfig())
	return s
}

// Run lists and watches until ctx ends. It is called once.
func (s *Stream) Run(ctx context.Context) {
	s.reflector.Run(ctx)
	s.shutDown()
}

// Requests are how the stream asks the server.
func (s *Stream) Requests() source.Requests { return s.requests }

// Keeper keeps what the stream has for the next process; nil: nothing is kept.
func (s *Stream) Keeper() *warm.Keeper { return s.kept }

// Position is the version up to which the watch has delivered everything.
func (s *Stream) Position() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.View.Position()
}

// stored is what may be kept for the next process. Called with mu held.
func (s *Stream) stored() (objects map[object.Key]object.Object, atRV string, ok bool) {
	return s.store.Objects, s.store.View.Position(), s.progress.phase == following
}

// showStored marks the keys whose own write has ended, but one, where what is shown changed. It
// appends to wake the functions to run after mu is released. Called with mu held.
func (s *Stream) showStored(wake []func(), ended []coherence.Ended, but object.Key) []func() {
	for _, e := range ended {
		if e.Key == but {
			continue
		}
		var shown object.Object
		if e.Object != nil {
			shown = e.Object.(object.Object)
		}
		if stored, ok := s.store.Objects[e.Key]; ok {
			s.store.Objects[e.Key] = s.store.KeepIfSameVersion(shown, stored)
		}
		wake = s.notifyListeners(wake, e.Key, shown, Delivered)
	}
	return wake
}

// Cause is what makes a change: the watch, or a write of this client.
type Cause int

// The causes of a change.
const (
	Delivered Cause = iota
	Written
)

// notifyListeners tells the listeners that key is no longer shown as before. Called with mu held.
func (s *Stream) notifyListeners(wake []func(), key object.Key, before object.Object, by Cause) []func() {
	after := s.store.Read(key)
	if before == after {
		return wake
	}
	own := by != Delivered
	if f := s.own.flights[key]; f != nil && !own {
		f.hold(before) // an own write's event may overtake its answer
		own = true
	}
	for l := range s.listeners {
		if f := l.mark(key, before, after, own); f != nil {
			if len(wake) == cap(wake) {
				wake = slices.Grow(wake, len(s.listeners))
			}
			wake = append(wake, f)
		}
	}
	s.waiters.wake()
	return wake
}

// Join adds a listener, to a part of the stream or to all of it (nil). as is the key of the stream
// that the listener would have of its own. What the stream holds already is its first batch.
func (s *Stream) Join(as intake.Key, part *audience.Part, o ListenOptions) *Listener {
	l := &Listener{stream: s, as: as, part: part, ListenOptions: o, untaken: audience.NewUntaken(o.PerKey)}
	s.mu.Lock()
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	return l
}

// leave removes a listener, once.
func (s *Stream) leave(l *Listener) {
	s.mu.Lock()
	_, in := s.listeners[l]
	delete(s.listeners, l)
	s.mu.Unlock()
	if in {
		s.shared.Release(s)
	}
}

// shutDown stops what time would still do.
func (s *Stream) shutDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.ended = true
	s.store.Close()
	s.CloseOriginals()
	close(s.done)
	if s.own.expiry != nil {
		s.own.expiry.Stop()
	}
}

func run(wake []func()) {
	for _, f := range wake {
		f()
	}
}

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

// waiters get a signal at every change. The stream's lock guards them.
type waiters map[chan struct{}]struct{}

// wake gives each its signal.
func (w waiters) wake() {
	for c := range w {
		select {
		case c <- struct{}{}:
		default: // one waits already
		}
	}
}

// Reach lets tests do something at a point that concerns the stream. No lock is held there. In
// production it is a comparison with nil.
func (s *Stream) Reach(p Point, key object.Key) {
	if s.config.Points != nil {
		lockorder.CallOut("Config.Points")
		s.config.Points(Moment{p, ID{stream: s}, key})
	}
}
