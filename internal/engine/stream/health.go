package stream

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/internal/engine/source"
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

// Refusal is how certain it is that there is no first list.
type Refusal int

const (
	// NotRefused: it may still come.
	NotRefused Refusal = iota
	// Refused: the server keeps refusing it.
	Refused
	// RefusedForLong: the server has refused it for half a minute or so, or the resource is gone.
	RefusedForLong
)
