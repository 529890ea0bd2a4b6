package accumulator

import (
	"strings"
	"time"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
)

// QueryStatus says how one query stands.
type QueryStatus struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	// Namespaces, where the query names several.
	Namespaces []string `json:"namespaces,omitempty"`
	Optional   bool     `json:"optional,omitempty"`
	State      State    `json:"state"`
	// Absent: the query is optional, and what of it is not watched is certainly not there, or may not be read:
	// it counts as empty. What was shown and may no longer be read does not.
	Absent bool      `json:"absent,omitempty"`
	Since  time.Time `json:"since"`
	// Form of the objects that the watch holds: whole untyped ones if empty; "typed from protobuf" or "typed from json" where they
	// are decoded straight into the Go type; "metadata", or "metadata of whole objects" where those come over the wire and are
	// shortened here.
	Form string `json:"form,omitempty"`
	// Error is the last one, empty while all is well.
	Error string `json:"error,omitempty"`
	// Heard is when the server last said anything: a list, an event, a bookmark, the opening of a
	// watch. What is shown may be as old as that, and is not older.
	Heard time.Time `json:"heard,omitzero"`
	// Objects that the watch holds.
	Objects int `json:"objects"`
	// Refs is how many objects are named, where those are watched one by one.
	Refs int `json:"refs,omitempty"`
	// Invalid objects are left out of the snapshot.
	Invalid int `json:"invalid"`
	// Version up to which the watch has delivered everything.
	Version string `json:"version,omitempty"`
	// Pending own writes that the watch has not shown yet.
	Pending int `json:"pending"`
	// Unsettled own writes are shown only when the watch brings them: the server could
	// not be asked what they mean for this query.
	Unsettled int `json:"unsettled,omitempty"`
	// Restarts of the watch that took a new list.
	Restarts int `json:"restarts"`
}

// Status says how each query stands, in the order of the queries.
func (a *Accumulator) Status() []QueryStatus {
	fields := a.fieldsNow()
	all := make([]QueryStatus, len(fields))
	for i, f := range fields {
		all[i] = a.statusOf(f)
	}
	return all
}

func (a *Accumulator) statusOf(f *field) QueryStatus {
	parts, spaces, known := a.wanted(f)
	a.mu.Lock()
	st := QueryStatus{
		Name: f.query.Name, Kind: f.query.Kind, Namespace: f.query.Namespace, Namespaces: f.query.Namespaces,
		Optional: f.query.Optional, State: Waiting, Since: f.since,
	}
	switch {
	case f.absent:
		st.State, st.Absent = Missing, true
	case f.refs != nil && known && !f.refs.known.Load(): // what is named is not known yet
		st.State = Listing
	case known && len(parts) == 0: // of no namespaces, or nothing is named
		st.State = Synced
	}
	if f.refs != nil {
		st.Refs = len(parts)
	}
	if f.err != nil {
		st.Error = f.err.Error()
	}
	a.mu.Unlock()
	a.reader.mu.Lock()
	if f.table != nil {
		st.Invalid = len(f.table.Invalid())
	}
	if f.index != nil {
		st.Invalid = f.index.invalid
	}
	a.reader.mu.Unlock()
	first, absent := true, true
	for _, p := range parts {
		s := p.sub.Status()
		st.add(s, first)
		first = false
		absent = absent && (s.State == Synced || p.sub.State().Absent())
	}
	if spaces != nil {
		if s := spaces.Status(); s.State != Synced {
			s.Error = strings.TrimSpace("namespaces: " + s.Error)
			s.Objects, s.Restarts, s.Pending, s.Unsettled = 0, 0, 0, 0
			st.add(s, first)
			absent = absent && spaces.State().Absent()
		}
	}
	st.Absent = st.Absent || st.Optional && known && absent && st.State != Synced
	return st
}

// gravity orders states: of several streams the gravest counts.
var gravity = map[State]int{Synced: 1, Retrying: 2, Listing: 3, Missing: 4, Forbidden: 5, Waiting: 6}

// add takes in the status of a stream.
func (st *QueryStatus) add(s stream.Status, first bool) {
	if first || gravity[s.State] > gravity[st.State] {
		st.State, st.Since, st.Error = s.State, s.Since, s.Error
	}
	if first || s.Form != "" {
		st.Form = s.Form
	}
	if first || s.Heard.Before(st.Heard) {
		st.Heard = s.Heard
	}
	if first || coherence.Newer(st.Version, s.PositionRV) {
		st.Version = s.PositionRV // up to there all of them have delivered
	}
	st.Objects += s.Objects
	st.Pending += s.Pending
	st.Restarts += s.Restarts
	st.Unsettled += s.Unsettled
}
