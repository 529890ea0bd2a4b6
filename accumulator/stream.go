package accumulator

import (
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/object"
)

// streamKey tells streams apart: who asks for the same gets the same.
type streamKey struct {
	resource                  string // group/version/resource
	namespace, labels, fields string
	form                      Form
	transform                 unsafe.Pointer // the function value; nil for none
}

// stream is one list+watch and the store it fills, shared by all who ask for it.
// It keeps G5 (monotonic) and, with the view laid over the store, G4 (own writes).
//
// The store holds what the watch shows, the view what this client wrote and the
// watch does not show yet. Everything below mu is touched for moments only: never
// while a request is under way or a user's function runs.
type stream struct {
	key      streamKey
	resource Resource
	selector selector
	name     string // the only one that is selected; "" for all
	streams  *Streams
	feed     *feed
	stop     func()
	users    int // guarded by streams.mu
	left     int // how often the last user has left; likewise
	// transform changes what is stored; nil for none.
	transform Transform

	mu     sync.Mutex
	store  map[Key]Object
	view   *coherence.View
	subs   map[*subscription]struct{}
	synced bool
	health health
	// asOf is the version of what is being taken in; "" if unknown.
	asOf string
	// flights are own writes that are under way, by key.
	flights map[Key]*flight
	expiry  *time.Timer
	// expired: some own write has been shown for long enough without an event that
	// confirms it; the next list ends it.
	expired bool
	ended   bool
	// givenUp: more own writes were pending than may be, and they were dropped. What
	// the stream has may be older than what was shown, so it shows nothing until a list no
	// older than the newest own write is in.
	givenUp bool
	atLeast string // the version that such a list must have
	// unsettled are own writes that the server could not be asked about, by the
	// version up to which the watch has to come to show them.
	unsettled map[Key]bound
	// listed is the version of the latest list that moved the position: what came and went since the
	// position before is not known.
	listed string
	done   chan struct{} // closed when the stream has ended
	// waiters are told of every change: for Sync.
	waiters map[chan struct{}]struct{}
}

func newStream(s *Streams, key streamKey, r Resource, q Watched) *stream {
	st := &stream{
		key: key, resource: r, selector: newSelector(r, q.Selection), streams: s, transform: q.Transform,
		store:   make(map[Key]Object),
		subs:    make(map[*subscription]struct{}),
		waiters: make(map[chan struct{}]struct{}),
		view: coherence.NewView(coherence.Options{
			ByContent: s.config.ByContent, Same: sameContent, Hold: s.config.Hold,
			Whole: key.labels == "" && key.fields == "",
		}),
		unsettled: make(map[Key]bound),
		flights:   make(map[Key]*flight),
		done:      make(chan struct{}),
	}
	if q.Fields != nil {
		st.name, _ = q.Fields.RequiresExactMatch("metadata.name")
	}
	st.health.since = time.Now()
	st.feed = newFeed(st, s.config.Source(r, key.namespace, key.form))
	return st
}

// stored returns what the watch shows for key, nil if nothing. Called with mu held.
func (s *stream) stored(key Key) coherence.Object {
	if o, ok := s.store[key]; ok {
		return o
	}
	return nil
}

// read returns what is true of key now. Called with mu held.
func (s *stream) read(key Key) Object {
	o := s.view.Read(key, s.stored(key))
	if o == nil {
		return nil
	}
	return o.(Object)
}

// everything returns all that is true now. Called with mu held.
func (s *stream) everything() []change {
	changes := make([]change, 0, len(s.store))
	pending := s.view.Pending() > 0
	for key, o := range s.store {
		if pending {
			o = s.read(key)
		}
		if o != nil {
			changes = append(changes, change{key, o})
		}
	}
	for key := range s.view.Keys {
		if _, stored := s.store[key]; !stored {
			if o := s.read(key); o != nil {
				changes = append(changes, change{key, o})
			}
		}
	}
	return changes
}

// covers reports whether an object of that name can be in the stream's query.
func (s *stream) covers(key Key) bool {
	return (s.key.namespace == "" || s.key.namespace == key.Namespace) && (s.name == "" || s.name == key.Name)
}

// event takes in a live event of the watch.
func (s *stream) event(obj any, deleted bool) error {
	o, ok := obj.(Object)
	if !ok {
		return fmt.Errorf("unexpected %T in a watch of %s", obj, s.key.resource)
	}
	key := object.KeyOf(o)
	in := !deleted && s.matches(o)
	if in {
		o = s.prepare(o)
	}
	var few [8]func()
	wake := few[:0]
	s.mu.Lock()
	s.health.heard, s.asOf = time.Now(), o.GetResourceVersion()
	before := s.read(key)
	if !s.stale(key, o) {
		var seen coherence.Object
		if !in {
			delete(s.store, key)
		} else {
			s.store[key] = s.echo(before, o)
			seen = o
		}
		ended := s.view.Observe(coherence.Event{Key: key, UID: o.GetUID(), Object: seen, Version: o.GetResourceVersion()})
		wake = s.settle(wake, ended, key, before, delivered)
		s.tell() // an echo changes nothing, and yet is what a Sync waits for
	}
	s.mu.Unlock()
	run(wake)
	return nil
}

// stale reports whether an event is old news: the position is past it, or the store
// holds a newer version of this very object. Called with mu held.
func (s *stream) stale(key Key, o Object) bool {
	version := o.GetResourceVersion()
	if s.streams.config.ByContent || !coherence.Comparable(version) {
		return false
	}
	if position := s.view.Position(); coherence.Comparable(position) && !coherence.Newer(version, position) {
		return true
	}
	stored, ok := s.store[key]
	return ok && stored.GetUID() == o.GetUID() && coherence.Newer(stored.GetResourceVersion(), version)
}

// echo returns the object to store for o, given what has been shown: where that is
// the same version, the very same object stays, and nothing has changed.
func (s *stream) echo(shown, o Object) Object {
	if shown == nil || shown.GetUID() != o.GetUID() || shown.GetResourceVersion() != o.GetResourceVersion() {
		return o
	}
	if (s.streams.config.ByContent || !coherence.Comparable(o.GetResourceVersion())) && !sameContent(shown, o) {
		return o
	}
	return shown
}

// settle marks key, and every key whose pending write ended, where what is shown
// changed. It returns wake with the accumulators to wake. Called with mu held.
func (s *stream) settle(wake []func(), ended []coherence.Ended, key Key, before Object, by cause) []func() {
	wake = s.mark(wake, key, before, by)
	for _, e := range ended {
		if e.Key == key {
			continue
		}
		var shown Object
		if e.Object != nil {
			shown = e.Object.(Object)
		}
		if stored, ok := s.store[e.Key]; ok {
			s.store[e.Key] = s.echo(shown, stored)
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
	deleted // written, and gone from every stream
)

// mark tells the subscribers that key is no longer shown as before. Called with mu
// held.
func (s *stream) mark(wake []func(), key Key, before Object, by cause) []func() {
	after := s.read(key)
	if before == after {
		return wake
	}
	for sub := range s.subs {
		sub.leaves(key, before, after)
	}
	own := by != delivered
	if f := s.flights[key]; f != nil && !own {
		f.hold(before) // an own write's event may overtake its answer
		own = true
	}
	for sub := range s.subs {
		if f := sub.mark(key, before, after, own); f != nil {
			if len(wake) == cap(wake) {
				wake = slices.Grow(wake, len(s.subs))
			}
			wake = append(wake, f)
		}
	}
	s.tell()
	return wake
}

// advance takes in a position without objects: a bookmark.
func (s *stream) advance(version string) {
	s.mu.Lock()
	s.health.heard, s.asOf = time.Now(), version
	wake := s.settleAll(s.view.Advance(version))
	s.tell()
	s.mu.Unlock()
	run(wake)
}

// settleAll is settle for an end that no event of a key caused. Called with mu held.
func (s *stream) settleAll(ended []coherence.Ended) []func() {
	if len(ended) == 0 {
		return nil
	}
	return s.settle(nil, ended, Key{}, s.read(Key{}), delivered)
}

// join adds a subscriber. What the stream holds already is its bootstrap.
func (s *stream) join(l listener) *subscription {
	sub := &subscription{stream: s, all: true, dirty: make(map[Key]bool), listener: l}
	s.mu.Lock()
	s.subs[sub] = struct{}{}
	s.mu.Unlock()
	return sub
}

// leave removes a subscriber, once; the last one to leave ends the stream.
func (s *stream) leave(sub *subscription) {
	s.mu.Lock()
	_, in := s.subs[sub]
	delete(s.subs, sub)
	s.mu.Unlock()
	if in {
		s.streams.release(s)
	}
}

// tell wakes whoever waits for any change. Called with mu held.
func (s *stream) tell() {
	for w := range s.waiters {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func run(wake []func()) {
	for _, f := range wake {
		f()
	}
}
