package stream

import (
	"fmt"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/object"
)

// listeners are those of a stream. Its lock guards them.
type listeners map[*Listener]struct{}

// trouble appends the functions to run after a request has failed.
func (all listeners) trouble(wake []func()) []func() {
	for l := range all {
		wake = append(wake, l.Wake, l.Trouble)
	}
	return wake
}

// optional reports whether every listener can do without the objects.
func (all listeners) optional() bool {
	for l := range all {
		if !l.Optional {
			return false
		}
	}
	return true
}

// Listener is one reader's view of one stream, or of a part of it. A thousand events on one object
// are one dirty key, and a slow reader costs nobody anything. Its methods are safe for concurrent
// use; its stream's lock guards its fields.
type Listener struct {
	stream  *Stream
	as      intake.Key     // the stream that the listener would have of its own
	part    *audience.Part // of the stream that it sees; nil: all
	untaken audience.Untaken
	ListenOptions
}

// ListenOptions says what a listener wants to hear. Its functions are called without locks, but
// for Noted.
type ListenOptions struct {
	// From says which streams may serve the listener.
	From From
	// Optional: a resource that is gone leaves no field behind.
	Optional bool
	// PerKey: the listener wants to know for each key whether it is worth a signal.
	PerKey bool
	// QuietOwn: own writes do not signal.
	QuietOwn bool
	// Signal decides which changes are worth a signal; nil: all.
	Signal object.Signal
	// Wake says that something has changed.
	Wake func()
	// Noted says so at that very moment, worth a signal or not; it may be nil. If it was not called,
	// the next batch of a reader that has had one is empty. It alone is called with the stream's
	// lock held. It takes no other lock but one of its own, for a moment.
	Noted func()
	// Trouble says that requests fail.
	Trouble func()
}

// From says which streams may serve a listener.
type From int

const (
	// Any: one of what the listener wants, or, with [Config].Share, one that has more.
	Any From = iota
	// Own: one of what the listener wants and no more.
	Own
)

// mark notes that what is shown for key went from before to after. It returns what is to be run
// for that once no lock is held, nil if nothing. Called with the stream's lock held.
func (l *Listener) mark(key object.Key, before, after object.Object, own bool) func() {
	before, after = l.part.Narrow(key, before), l.part.Narrow(key, after)
	if before == after {
		return nil // none, or the same part of two objects
	}
	l.noted()
	switch l.untaken.Mark(key, before, after) {
	case audience.Unseen:
		return nil
	case audience.All:
		if l.stream.progress.phase.listed() {
			return l.Wake
		}
		return nil
	}
	if own && l.QuietOwn {
		return nil
	}
	return l.waking(key, before, after)
}

// noted says at once that something has changed. Called with the stream's lock held.
func (l *Listener) noted() {
	if l.Noted != nil {
		l.Noted()
	}
}

// Take returns what has changed since the last batch.
func (l *Listener) Take() audience.Batch {
	l.Reach(AtTake, object.Key{})
	s := l.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.progress.phase.listed(), s.progress.phase == givenUp && l.untaken.Nothing():
		return audience.Batch{}
	case s.progress.phase == givenUp:
		return audience.Batch{Extent: audience.Lost}
	}
	return l.untaken.Take(l.everything, l.read)
}

// TakeAll is Take for a reader that needs all objects, whatever it has taken.
func (l *Listener) TakeAll() audience.Batch {
	l.stream.mu.Lock()
	l.untaken.Restart()
	l.stream.mu.Unlock()
	return l.Take()
}

// Untake takes a first batch back.
func (l *Listener) Untake() {
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	l.untaken.Untake()
}

// State returns what the listener can know of its stream now.
func (l *Listener) State() ListenerState {
	s := l.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	st := ListenerState{
		Health: s.health.state, Gone: s.health.gone, Misplaced: object.Misplaced(s.health.err),
		PositionRV: s.store.View.Position(),
	}
	switch phase := s.progress.phase; {
	case !phase.listed():
		st.First = s.health.refusal()
	case phase == givenUp && l.untaken.Nothing():
		st.Phase = audience.Dropped
	case phase == givenUp:
		st.Phase = audience.Relisting
	default:
		st.Phase = audience.Following
		st.News = l.untaken.News(l.Optional)
	}
	return st
}

// Get returns what the stream shows of a key, nil if there is none. It changes nothing.
func (l *Listener) Get(key object.Key) object.Object {
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	return l.read(key)
}

// Newest returns an upper bound for the versions that the stream has shown: rv is its position, or
// the version of the newest own write that is pending. A deletion that came without its version may
// be newer than rv. Then deletion is the number of the latest such deletion, else 0. The numbers
// grow over all streams of a client.
func (l *Listener) Newest() (rv string, deletion int64) {
	s := l.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	rv = s.store.View.Newest()
	if s.progress.phase.gaveUp() {
		rv = coherence.Newest(rv, s.own.atLeastRV) // what it has given up may have been shown
	}
	return rv, s.deletion()
}

// Each calls f with every object that the stream shows in a namespace ("" for all). It calls it
// without locks.
func (l *Listener) Each(namespace string, f func(object.Key, object.Object)) {
	s := l.stream
	s.mu.Lock()
	all := l.everything()
	s.mu.Unlock()
	for _, c := range all {
		if namespace == "" || c.Key.Namespace == namespace {
			f(c.Key, c.Object)
		}
	}
}

// Covers reports whether an object of that name can be among those that the listener sees.
func (l *Listener) Covers(key object.Key) bool {
	return l.part.Covers(key) && l.stream.Covers(key)
}

// Namespace is that of the objects, "" for all.
func (l *Listener) Namespace() string {
	if l.part != nil {
		return l.as.Namespace
	}
	return l.stream.Key.Namespace
}

// Storage names the stored resource, see [object.Resource].
func (l *Listener) Storage() string { return l.stream.Resource.Storage }

// Stream is the stream that the listener has joined, or the part of it.
func (l *Listener) Stream() ID {
	if l.part != nil {
		return ID{l.stream, l.as}
	}
	return ID{stream: l.stream}
}

// Close leaves the stream. The last listener to leave ends it.
func (l *Listener) Close() { l.stream.leave(l) }

// ListenerState is what a listener can know of its stream at one moment.
type ListenerState struct {
	Phase audience.Phase
	// Health is how the stream's requests fare.
	Health State
	// Gone: there is certainly no such resource, or no such namespace.
	Gone bool
	// Misplaced: the last answer was one that a server gives if the kind is served in another way.
	Misplaced bool
	// First says whether the server refuses the first list. It counts while there is none.
	First Refusal
	// News: there is something worth a signal.
	News bool
	// PositionRV is the version up to which the watch has delivered everything.
	PositionRV string
}

// Ready reports whether the whole first list is in.
func (s ListenerState) Ready() bool { return s.Phase >= audience.Relisting }

// Absent reports whether there is certainly nothing: the resource is gone, or could never be read.
func (s ListenerState) Absent() bool { return s.Gone || s.First >= Refused }

// Settled reports whether the stream does not hold up a first snapshot.
func (s ListenerState) Settled(optional bool) bool {
	return s.Ready() || optional && s.First >= Refused
}

// theSignal is what a stream's step runs meanwhile.
var theSignal = "the function that judges what is worth a signal"

// waking returns what is to be run, without locks, for a change that may be worth a signal. Called
// with the stream's lock held.
func (l *Listener) waking(key object.Key, before, after object.Object) func() {
	if l.Signal == nil {
		l.untaken.Signal(key)
		return l.Wake
	}
	return func() {
		if !l.worth(before, after) {
			return
		}
		l.stream.mu.Lock()
		l.untaken.Signal(key)
		l.stream.mu.Unlock()
		l.Wake()
	}
}

// worth asks the user's function whether a change is worth a signal.
func (l *Listener) worth(before, after object.Object) (yes bool) {
	before, after = object.Bare(before), object.Bare(after)
	if object.Fault(before) != nil || object.Fault(after) != nil {
		return true
	}
	ask := func() error {
		if before != nil && after != nil && before.GetUID() != after.GetUID() {
			yes = l.Signal(before, nil) || l.Signal(nil, after)
		} else {
			yes = l.Signal(before, after)
		}
		return nil
	}
	l.stream.Step.Do(&theSignal)
	defer l.stream.Step.Do(nil)
	_ = guard.Handle(ask, func(p *guard.Panic) error {
		yes = true
		l.stream.config.Logger.Error(fmt.Errorf("%v", p.Value), "the function that judges what is worth a signal panicked",
			"resource", l.stream.Key.Resource, "stack", string(p.Stack))
		return nil
	})
	return yes
}

// read returns what the listener sees of a key. Called with the stream's lock held.
func (l *Listener) read(key object.Key) object.Object {
	return l.part.Narrow(key, l.stream.store.Read(key))
}

// everything returns all objects that the listener sees. Called with the stream's lock held.
func (l *Listener) everything() []audience.Change { return l.part.Filter(l.stream.store.Everything()) }

// count returns how many objects of the server the listener sees. Called with the stream's lock
// held.
func (l *Listener) count() (n int) {
	if l.part == nil {
		return l.stream.store.Size()
	}
	for _, o := range l.stream.store.Objects {
		if l.part.Has(o) {
			n++
		}
	}
	return n
}

// Reach is [Stream.Reach] of the listener's stream.
func (l *Listener) Reach(p Point, key object.Key) { l.stream.Reach(p, key) }
