package stream

import (
	"strings"
	"time"
)

// Status says how one stream stands.
type Status struct {
	State State
	Since time.Time
	// Error is the last one, "" while all is well.
	Error string
	// Form of the objects that the stream holds, and how they come over the wire.
	Form string
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
}

// Status says how the listener's stream stands.
func (l *Listener) Status() Status {
	s := l.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{
		State: s.health.state, Since: s.health.since, Heard: s.health.heard,
		Objects: l.count(), PositionRV: s.store.view.Position(),
		Pending: s.store.view.Pending(), Restarts: s.health.restarts,
		Unsettled: s.own.forgetSettled(s.store.view.Position()),
	}
	if st.State == "" {
		st.State = Listing
	}
	if s.health.err != nil {
		st.Error = s.health.err.Error()
	}
	if st.Form = s.formNow(); l.narrow != nil {
		st.Form = strings.TrimSpace(string(l.narrow.as.form) + " of a wider watch")
	}
	return st
}
