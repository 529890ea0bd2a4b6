package stream

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/reflector"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// A stream is the sink of its reflector: what the server says comes in here, and by listing.go.

var _ reflector.Sink = (*Stream)(nil)

func (s *Stream) reflectorConfig() reflector.Config {
	c := reflector.Config{
		Requests: s.requests, Streamed: s.config.StreamLists, PageSize: s.config.PageSize,
		IdleTimeout: s.config.IdleTimeout, KindPoll: s.config.KindPoll, Suspect: s.config.Suspect,
		Lost:       s.lost,
		BeforeList: func(ctx context.Context) { _, _ = s.kept.AskOrigin(ctx) }, // without it, the list is not kept
		Reach:      func(before reflector.Request) { s.Reach(points[before], object.Key{}) },
	}
	if s.kept != nil {
		c.First = s.kept
	}
	return c
}

var points = map[reflector.Request]Point{reflector.ToList: AtList, reflector.ToWatch: AtWatch}

// Progress is how far the stream has come.
func (s *Stream) Progress() reflector.Progress {
	s.mu.Lock()
	m := reflector.Progress{PositionRV: s.store.View.Position()}
	m.Owed = s.store.View.Pending() > 0 || s.own.forgetSettled(m.PositionRV) > 0
	s.mu.Unlock()
	m.FloorRV = coherence.Newest(m.PositionRV, s.shared.FloorRV(s.Resource.Storage))
	return m
}

// Apply takes in an event of the watch. An error ends the watch: there is no room for the object,
// or the event makes no sense.
func (s *Stream) Apply(e source.Event) error {
	s.Step.Begin()
	defer s.Step.End()
	if e.Type == watch.Bookmark {
		return s.bookmark(e.RV)
	}
	return s.event(e.Object, e.Type == watch.Deleted)
}

// Opened takes in that a watch is open. After a move the watch may begin where the one before has
// been already: the stream's bookmarks do not go back.
func (s *Stream) Opened(fromRV string) {
	s.mu.Lock()
	if coherence.Comparable(fromRV) {
		s.progress.watchRV = fromRV
	}
	s.health.before = s.health.heard
	recovered := s.well()
	s.mu.Unlock()
	s.logRecovered(recovered)
}

// Unheard takes in that the last watch brought nothing, and failed or ended at once.
func (s *Stream) Unheard() {
	s.mu.Lock()
	s.health.heard = s.health.before
	s.mu.Unlock()
}

// event takes in a live event of the watch. An error means that the watch cannot go on: that there
// is no room for the object, or that no server should send it.
func (s *Stream) event(item runtime.Object, deleted bool) error {
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
		if held := s.Prepare(o); held != nil {
			o = held
			s.tally.taken(o)
		} else {
			in = false
		}
	}
	s.tally.events.Add(1)
	eventRV, lastRV := o.GetResourceVersion(), ""
	var few [8]func()
	wake := few[:0]
	s.mu.Lock()
	recovered := s.health.read()
	s.progress.watchRV = coherence.Newest(s.progress.watchRV, eventRV)
	before, last := s.store.Read(key), deleted && s.store.LastState(key, o)
	if last {
		eventRV, lastRV = "", eventRV // rule 10: the event does not tell the version of the deletion
		s.progress.noteUnversioned(s.shared.deletions.Add(1), s.store.View.Position())
	}
	if last || !s.store.Stale(key, o) {
		var seen coherence.Object
		had := s.store.Objects[key]
		if !in {
			s.store.Remove(key, o)
		} else if seen = o; !s.store.Add(key, before, o) {
			s.mu.Unlock()
			s.logRecovered(recovered)
			return s.shared.Room.Full()
		}
		if in || had != nil { // else it is none of the query's
			s.kept.Changed(key, len(s.store.Objects))
		}
		undated := s.store.View.Undated()
		ended := s.store.View.Observe(coherence.Event{Key: key, UID: o.GetUID(), Object: seen, Version: eventRV, LastRV: lastRV})
		s.noteUndated(undated)
		wake = s.showStored(s.notifyListeners(wake, key, before, Delivered), ended, key)
		s.waiters.wake() // an echo changes nothing, but a Sync may wait for it
	}
	s.Note(key, s.store.Read(key))
	s.mu.Unlock()
	s.logRecovered(recovered)
	run(wake)
	return nil
}

// bookmark takes in a position without an object. One that the watch has passed makes no sense.
// One that only a Sync has passed says nothing.
func (s *Stream) bookmark(rv string) error {
	if err := s.unversioned("a bookmark", rv); err != nil {
		return source.Garbled{Cause: err}
	}
	s.tally.bookmarks.Add(1)
	s.mu.Lock()
	s.health.heard = time.Now()
	if watchRV := s.progress.watchRV; coherence.Newer(watchRV, rv) {
		s.mu.Unlock()
		s.Failed(toRead, s.requests.Named(fmt.Errorf("a bookmark at version %s, and the watch was at %s before", rv, watchRV)))
		return nil
	}
	recovered := s.health.read()
	s.progress.watchRV = rv
	var wake []func()
	if !coherence.Newer(s.store.View.Position(), rv) {
		wake = s.showStored(nil, s.store.View.Advance(rv), object.Key{})
		s.waiters.wake()
	}
	s.mu.Unlock()
	s.logRecovered(recovered)
	run(wake)
	return nil
}

// lost reports whether err makes it certain that there is nothing left to watch. It may ask the
// server.
func (s *Stream) lost(ctx context.Context, err error) bool {
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
func (s *Stream) unversioned(what, rv string) error {
	if coherence.Comparable(rv) || !coherence.Comparable(s.Position()) {
		return nil
	}
	if rv == "" {
		return fmt.Errorf("%s without a version", what)
	}
	return fmt.Errorf("%s at version %q, which is no version", what, object.Brief(rv))
}

// Prepare makes of an object from the server what the stream holds: in the stream's form, and
// transformed; nil if Where leaves the object out. Nobody else has the object. Called without
// locks.
func (s *Stream) Prepare(o object.Object) object.Object {
	if s.Where == nil && s.Transform == nil && s.Valid == nil && s.Key.Form == object.Whole {
		return s.Bounded(o)
	}
	held, same := s.has(o)
	if same {
		return held // once per version: only lists are compared
	}
	return s.TransformNew(o, held)
}

// has returns what the stream holds of an object, nil if nothing, and whether it is of this very
// version.
func (s *Stream) has(o object.Object) (held object.Object, same bool) {
	key := object.KeyOf(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Version(key, o)
}
