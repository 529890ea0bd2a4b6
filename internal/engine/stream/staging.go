package stream

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/reflector"
	"github.com/kates-go/kates/internal/engine/store"
	"github.com/kates-go/kates/internal/object"
)

// Staging drives one stream by hand, step by step, in place of its reflector and of the answers to
// own writes. Only tests and benchmarks use it.
type Staging struct{ l *Listener }

// Stage returns the staging of the listener's stream.
func (l *Listener) Stage() Staging { return Staging{l} }

// Event takes in an event of the watch.
func (s Staging) Event(o runtime.Object, deleted bool) error { return s.l.stream.event(o, deleted) }

// List takes in a whole list at a version, which was asked for when floorRV was known.
func (s Staging) List(objects map[object.Key]object.Object, rv, floorRV string) error {
	return s.commit(objects, rv, reflector.Asked{FloorRV: floorRV})
}

// ListInDoubt is List after a list that was older than what the server had shown.
func (s Staging) ListInDoubt(objects map[object.Key]object.Object, rv, floorRV string) error {
	return s.commit(objects, rv, reflector.Asked{FloorRV: floorRV, Doubted: true})
}

func (s Staging) commit(objects map[object.Key]object.Object, rv string, asked reflector.Asked) error {
	l := &listing{stream: s.l.stream, asked: asked, List: store.NewList(objects)}
	return s.l.stream.commit(l, rv)
}

// Initial reads the initial events of a watch, as a streamed list does, and drops the list.
func (s Staging) Initial(ctx context.Context, w watch.Interface) (list map[object.Key]object.Object, err error) {
	next := s.l.stream.newListing(reflector.Asked{})
	_, err = reflector.ReadInitial(ctx, w, next)
	return next.Objects, err
}

// Put returns what a list would hold for an item.
func (s Staging) Put(o object.Object, newHistory bool) (object.Object, error) {
	l := s.l.stream.newListing(reflector.Asked{Doubted: newHistory})
	err := l.put(o, false)
	for _, held := range l.Objects {
		o = held
	}
	return o, err
}

// Matches reports whether an object that the server sends is in the stream's query.
func (s Staging) Matches(o object.Object) bool { return s.l.stream.Matches(o) }

// Prepared returns what the stream would hold of an object; nil: nothing.
func (s Staging) Prepared(o object.Object) object.Object { return s.l.stream.TransformNew(o, nil) }

// LeavesOut reports whether Where leaves out an object that the selectors select.
func (s Staging) LeavesOut(o object.Object) bool { return s.l.stream.LeavesOut(o) }

// OwnWrite takes in a write of this client.
func (s Staging) OwnWrite(w coherence.Write) bool {
	return s.l.stream.RecordWrite(w, Written)
}

// Hush lets the listener's Wake do nothing.
func (s Staging) Hush() {
	s.l.stream.mu.Lock()
	defer s.l.stream.mu.Unlock()
	s.l.Wake = func() {}
}

// Objects returns a copy of the store, without own writes.
func (s Staging) Objects() map[object.Key]object.Object {
	s.l.stream.mu.Lock()
	defer s.l.stream.mu.Unlock()
	return maps.Clone(s.l.stream.store.Objects)
}

// Held counts what a stream holds, and what one of its listeners does.
type Held struct {
	Objects, Pending  int
	Dirty, Room       int // of the listener; Room is the most keys that its map has had
	Waiters, Flights  int
	GivenUp, Expiring bool
}

// Held counts what is held. Once the server is quiet and everything is read, nothing but Objects
// and Room remains (G6).
func (s Staging) Held() Held {
	st := s.l.stream
	st.mu.Lock()
	defer st.mu.Unlock()
	c := s.l.untaken.Counts()
	return Held{
		Objects: len(st.store.Objects), Pending: st.store.View.Pending(),
		Dirty: c.Dirty, Room: c.Room, Waiters: len(st.waiters), Flights: len(st.own.flights),
		GivenUp: st.progress.phase.gaveUp(), Expiring: st.own.expired || st.own.expiry != nil,
	}
}

// Locked reports whether somebody holds the lock of the stream.
func (s *Stream) Locked() bool {
	if !s.mu.TryLock() {
		return true
	}
	s.mu.Unlock()
	return false
}

// Stored is how many objects the store has.
func (s *Stream) Stored() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.store.Objects)
}
