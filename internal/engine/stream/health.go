package stream

import (
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/reflector"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/store"
	"github.com/kates-go/kates/internal/object"
)

// State says how a query's watch stands.
type State string

// The states of a query.
const (
	// Waiting: the kind is not known yet, or not for certain.
	Waiting State = "waiting for kind"
	// Listing: the first list is under way.
	Listing State = "listing"
	// Synced: the first list is in, and the last request has succeeded.
	Synced State = "synced"
	// Retrying: the last request failed; what was shown stays.
	Retrying State = "retrying"
	// Forbidden: the server refuses for lack of rights; what was shown stays.
	Forbidden State = "forbidden"
	// Missing: the server does not serve the resource.
	Missing State = "missing"
)

// forbiddenForGood is how often in a row a list must be refused before an optional query counts as
// empty: one refusal may come from an authorizer that is starting.
const forbiddenForGood = 2

// forbiddenForLong is how many lists in a row must be refused before an optional query that was
// shown before counts as empty: with the pauses between them, about half a minute.
const forbiddenForLong = 8

// health is how a stream's requests fare. The stream's lock guards it.
type health struct {
	state    State
	since    time.Time
	err      error
	refused  int // lists in a row
	restarts int // lists after the first
	heard    time.Time
	before   time.Time // heard, before the latest watch was opened, or with the latest list
	gone     bool      // there is certainly no such resource, or no such namespace
	misread  bool      // err is about an event of the watch that goes on
}

// set moves to a state. It reports whether that is another one. That there is no room is one of
// its own, and so is its end.
func (h *health) set(state State, err error) (changed bool) {
	changed = h.state != state || errors.Is(err, source.ErrTooMany) != errors.Is(h.err, source.ErrTooMany)
	if changed {
		h.state, h.since = state, time.Now()
	}
	h.err, h.misread = err, false
	return changed
}

// read notes that an event or a bookmark made sense. It reports whether the one before did not.
func (h *health) read() (recovered bool) {
	h.heard = time.Now()
	return h.misread && h.set(Synced, nil)
}

// turn notes whether the resource is gone.
func (h *health) turn(gone bool, all listeners) {
	if h.gone == gone {
		return
	}
	h.gone = gone
	for l := range all {
		l.untaken.Turn()
		l.noted()
	}
}

// refusal is how certain it is that there is no first list.
func (h *health) refusal() Refusal {
	switch {
	case h.gone, h.refused >= forbiddenForLong:
		return RefusedForLong
	case h.refused >= forbiddenForGood:
		return Refused
	}
	return NotRefused
}

// classify returns the state after an error of a list or watch.
func classify(err error) State {
	switch {
	case apierrors.IsForbidden(err):
		return Forbidden
	case apierrors.IsNotFound(err):
		return Missing
	}
	return Retrying
}

// final reports whether another try at once has the same answer: a right is missing, or the
// resource lacks the verb.
func final(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// well notes that a request succeeded. It reports whether the stream has recovered. Called with mu
// held.
func (s *Stream) well() bool {
	state := Synced
	if !s.progress.phase.listed() {
		state = Listing
	}
	s.health.refused = 0
	s.health.turn(false, s.listeners)
	s.health.heard = time.Now()
	return s.health.set(state, nil) && state == Synced
}

func (s *Stream) logRecovered(recovered bool) {
	if recovered {
		s.config.Logger.V(1).Info("watching", "resource", s.Key.Resource, "namespace", s.Key.Namespace)
	}
}

// WentBack notes that the listener's stream has begun in a history that lacks what another stream
// of the same resource has shown, at a version.
func (l *Listener) WentBack(rv string) { l.stream.logWentBack(rv) }

func (s *Stream) logWentBack(rv string) {
	s.config.Logger.Error(nil, "the server's history went back: restored from a backup? starting anew",
		"resource", s.Key.Resource, "version", rv)
}

// toRead is what failed when an event of the watch made no sense, and the watch goes on.
const toRead reflector.Request = "read an event of"

// Failed takes in that a list or watch has failed. Each transition is logged once, not each retry.
func (s *Stream) Failed(what reflector.Request, err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	s.mu.Lock()
	state := classify(err)
	if final(err) && what == reflector.ToList {
		s.health.refused++
	}
	changed, log := s.health.set(state, err), s.logFor(grave(state, err, s.progress.phase.listed(), s.listeners))
	s.health.misread = what == toRead
	wake := s.listeners.trouble(nil)
	s.mu.Unlock()
	if changed {
		log(err, "cannot "+string(what)+", will keep trying")
	}
	run(wake)
}

// grave reports whether a state is logged as an error. It is one where a program waits for its
// first snapshot, or somebody has to grant a right, install a kind or allow more objects. An
// outage after the first list passes by itself, and so does a 429 (the storage of a new kind
// answers so for a while). A kind that every listener calls optional may be refused or missing, or
// have no lists.
func grave(state State, err error, synced bool, all listeners) bool {
	if errors.Is(err, source.ErrTooMany) {
		return len(all) > 0
	}
	definite := state == Missing || final(err)
	if !definite && (synced || apierrors.IsTooManyRequests(err)) {
		return false
	}
	return !definite && len(all) > 0 || !all.optional()
}

// logFor returns the function that logs an error: as an error if it is grave, else as information.
func (s *Stream) logFor(grave bool) func(err error, what string) {
	log := s.config.Logger.WithValues("resource", s.Key.Resource, "namespace", s.Key.Namespace)
	if grave {
		return func(err error, what string) { log.Error(err, what) }
	}
	return func(err error, what string) { log.Info(what, "err", err) }
}

// Gone takes in that there is certainly nothing left to watch: the resource is served in no
// version, or the namespace is gone. All objects are deleted. A stream that had none is known to
// be empty.
func (s *Stream) Gone(why error) {
	s.mu.Lock()
	var wake []func()
	if s.progress.phase.listed() {
		wake = s.swap(store.NewList(make(map[object.Key]object.Object)), "", false)
		s.kept.Forget()
		clear(s.own.unsettled)
		for _, e := range s.store.DropWrites() {
			wake = s.mark(wake, e.Key, e.Object.(object.Object), Delivered)
		}
		s.follow() // own writes that were given up are of objects that are gone
	}
	s.health.turn(true, s.listeners)
	changed, log := s.health.set(Missing, why), s.logFor(!s.progress.phase.listed() && grave(Missing, why, false, s.listeners))
	wake = s.listeners.trouble(wake)
	s.waiters.wake()
	s.mu.Unlock()
	if changed {
		log(why, "gone")
	}
	run(wake)
}

// Status says how one stream stands.
type Status struct {
	State State
	Since time.Time
	// Error is the last one, "" while all is well.
	Error string
	// Form of the objects that the stream holds, and how they come over the wire.
	Form string
	// Shard is empty for a stream of all objects. For one of a share it says in words whether the
	// server sends this share alone.
	Shard string
	// Heard is when the server last said anything.
	Heard time.Time
	// Objects is how many objects the stream holds.
	Objects int
	// PositionRV is the version up to which the watch has delivered everything.
	PositionRV string
	// Pending own writes that the watch has not shown yet, and Unsettled ones that the server
	// could not be asked about.
	Pending, Unsettled int
	// Restarts is how many lists came after the first.
	Restarts int
	// Start says how the stream has begun, if streams are kept for the next process: "warm", or
	// "list: " and why it was not warm.
	Start string
}

// Status says how the listener's stream stands.
func (l *Listener) Status() Status {
	s := l.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status()
	st.Objects = l.count()
	if l.part != nil {
		st.Form = strings.TrimSpace(l.as.Form.Word() + " of a wider watch")
		if l.as.Shard != "" {
			st.Shard = intake.ShardNarrowed
		}
	}
	return st
}

// status says how the stream stands. Called with mu held.
func (s *Stream) status() Status {
	st := Status{
		State: s.health.state, Since: s.health.since, Heard: s.health.heard, Form: s.FormNow(),
		Shard:      s.ShardStatus(),
		PositionRV: s.store.View.Position(),
		Start:      s.kept.Start(),
		Pending:    s.store.View.Pending(), Restarts: s.health.restarts,
		Unsettled: s.own.forgetSettled(s.store.View.Position()),
	}
	if st.State == "" {
		st.State = Listing
	}
	if s.health.err != nil {
		st.Error = s.health.err.Error()
	}
	return st
}
