package stream

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// stream is one list+watch and the store that it fills, shared by all who ask for the same.
// It keeps G5 (monotonic) and, with own writes laid over the store, G4.
//
// mu is held for moments only: never while a request is under way or a user's function runs.
type stream struct {
	intake.Intake
	set       *Set
	config    *Config // of the set
	requests  source.Requests
	reflector *reflector
	use       use // guarded by the set's lock
	tally     tally
	done      chan struct{} // closed when the stream has ended

	mu        lockorder.Mutex[lockorder.Stream]
	store     store
	places    places
	progress  progress
	health    health
	own       ownWrites
	listeners audience
	waiters   waiters // for Sync
}

// progress is how far a stream has come.
type progress struct {
	synced bool // the first list is in
	ended  bool
	// unversioned is the number of the latest deletion without a version that is known, see
	// Set.unversioned, and unversionedRV the position then: until there is a newer one, the stream
	// is newer than its position.
	unversioned   int64
	unversionedRV string
	// watchRV is the newest version that the stream's own lists and watches have brought. A Sync
	// may have moved the position past it, by a list of its own.
	watchRV string
	kept    kept // for the next process, see warm.go
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

func newStream(set *Set, s intake.Intake) *stream {
	st := &stream{
		Intake: s, set: set, config: &set.config, store: newStore(set.config.Hold, s.Whole()),
		listeners: make(audience),
		waiters:   make(waiters),
		done:      make(chan struct{}),
		own:       ownWrites{unsettled: make(map[object.Key]bound), flights: make(map[object.Key]*flight)},
	}
	st.health.since = time.Now()
	st.tally.id = streamIDs.Add(1)
	st.requests = source.Requests{
		Source: s.Source, Resource: s.Key.Resource, Namespace: s.Key.Namespace,
		Selection: metav1.ListOptions{LabelSelector: s.Key.Labels, FieldSelector: s.Key.Fields, ShardSelector: s.Selector.Shard.String()},
	}
	st.reflector = newReflector(st, st.requests, st.config)
	st.reflector.step = s.Step
	st.reflector.tally = &st.tally
	if st.config.Warm != nil {
		st.reflector.first = st
	}
	return st
}

// position is the version up to which the watch has delivered everything.
func (s *stream) position() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.view.Position()
}

// floor is the version that no list may be older than: that of the newest own write, and the
// position.
func (s *stream) floor() string {
	written := s.set.floor(s.Resource.Storage)
	return coherence.Newest(s.position(), written)
}

// event takes in a live event of the watch. An error means that the watch cannot go on: that there
// is no room for the object, or that no server should send it.
func (s *stream) event(item runtime.Object, deleted bool) error {
	o, err := s.Checked(item)
	if err != nil {
		return err
	}
	if err := s.unversioned("an event", o.GetResourceVersion()); err != nil {
		return source.Garbled{Cause: err}
	}
	key := object.KeyOf(o)
	in := !deleted && s.Matches(o)
	if in {
		o = s.prepare(o)
		s.tally.taken(o)
	}
	s.tally.events.Add(1)
	eventRV, lastRV := o.GetResourceVersion(), ""
	var few [8]func()
	wake := few[:0]
	s.mu.Lock()
	recovered := s.health.read()
	s.progress.watchRV = coherence.Newest(s.progress.watchRV, eventRV)
	before, last := s.store.read(key), deleted && s.store.lastState(key, o)
	if last {
		eventRV, lastRV = "", eventRV // rule 10: the event does not tell the version of the deletion
		s.progress.noteUnversioned(s.set.unversioned.Add(1), s.store.view.Position())
	}
	if last || !s.store.stale(key, o) {
		var seen coherence.Object
		had := s.store.objects[key]
		if !in {
			s.remove(key, o)
		} else if seen = o; !s.put(key, s.store.echo(before, s.store.beside(key, o))) {
			s.mu.Unlock()
			return s.set.room.full()
		}
		if in || had != nil { // else it is none of the query's
			s.progress.kept.note(key, len(s.store.objects))
		}
		undated := s.store.view.Undated()
		ended := s.store.view.Observe(coherence.Event{Key: key, UID: o.GetUID(), Object: seen, Version: eventRV, LastRV: lastRV})
		s.noteUndated(undated)
		wake = s.settle(s.mark(wake, key, before, delivered), ended, key)
		s.waiters.wake() // an echo changes nothing, but a Sync may wait for it
	}
	s.mu.Unlock()
	s.logRecovered(recovered)
	run(wake)
	return nil
}

// bookmark takes in a position without an object. One that the watch has passed makes no sense.
// One that only a Sync has passed says nothing.
func (s *stream) bookmark(rv string) error {
	if err := s.unversioned("a bookmark", rv); err != nil {
		return source.Garbled{Cause: err}
	}
	s.tally.bookmarks.Add(1)
	s.mu.Lock()
	s.health.heard = time.Now()
	if watchRV := s.progress.watchRV; coherence.Newer(watchRV, rv) {
		s.mu.Unlock()
		s.failed(toRead, s.requests.Named(fmt.Errorf("a bookmark at version %s, and the watch was at %s before", rv, watchRV)))
		return nil
	}
	recovered := s.health.read()
	s.progress.watchRV = rv
	var wake []func()
	if !coherence.Newer(s.store.view.Position(), rv) {
		wake = s.settle(nil, s.store.view.Advance(rv), object.Key{})
		s.waiters.wake()
	}
	s.mu.Unlock()
	s.logRecovered(recovered)
	run(wake)
	return nil
}

// settle marks the keys whose own write has ended, but one, where what is shown changed. It
// appends to wake the functions to run after mu is released. Called with mu held.
func (s *stream) settle(wake []func(), ended []coherence.Ended, but object.Key) []func() {
	for _, e := range ended {
		if e.Key == but {
			continue
		}
		var shown object.Object
		if e.Object != nil {
			shown = e.Object.(object.Object)
		}
		if stored, ok := s.store.objects[e.Key]; ok {
			s.store.objects[e.Key] = s.store.echo(shown, stored)
		}
		wake = s.mark(wake, e.Key, shown, delivered)
	}
	return wake
}

// cause is what makes a change: the watch, or a write of this client.
type cause int

const (
	delivered cause = iota
	written
)

// mark tells the listeners that key is no longer shown as before. Called with mu held.
func (s *stream) mark(wake []func(), key object.Key, before object.Object, by cause) []func() {
	after := s.store.read(key)
	if before == after {
		return wake
	}
	own := by != delivered
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

// join adds a listener, to a part of the stream or to all of it (nil). What the stream holds
// already is its first batch.
func (s *stream) join(part *narrow, o ListenOptions) *Listener {
	l := &Listener{stream: s, narrow: part, ListenOptions: o, untaken: untaken{
		taken: takenNothing, dirty: make(map[object.Key]bool), signals: signals{perKey: o.PerKey},
	}}
	s.mu.Lock()
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	return l
}

// leave removes a listener, once. The last one to leave ends the stream.
func (s *stream) leave(l *Listener) {
	s.mu.Lock()
	_, in := s.listeners[l]
	delete(s.listeners, l)
	s.mu.Unlock()
	if in {
		s.set.release(s)
	}
}

// end stops what time would still do.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.ended = true
	s.recount()
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

// lost reports whether err makes it certain that there is nothing left to watch. It may ask the
// server.
func (s *stream) lost(ctx context.Context, err error) bool {
	suspect := object.Misplaced(err) || apierrors.IsForbidden(err) && s.Key.Namespace != ""
	if s.config.Gone == nil || !suspect {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, source.OpenTimeout)
	defer cancel()
	return s.config.Gone(ctx, s.Resource, s.Key.Namespace, err)
}

// unversioned says why an event or a bookmark with that version cannot be placed, if this server's
// versions can be compared.
func (s *stream) unversioned(what, rv string) error {
	if coherence.Comparable(rv) || !coherence.Comparable(s.position()) {
		return nil
	}
	if rv == "" {
		return fmt.Errorf("%s without a version", what)
	}
	return fmt.Errorf("%s at version %q, which is no version", what, object.Brief(rv))
}
