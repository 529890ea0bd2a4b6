package accumulator

import (
	"strings"
	"time"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
)

// QueryStatus is the state of one query.
type QueryStatus struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	// Namespaces are set if the query names several.
	Namespaces []string `json:"namespaces,omitempty"`
	Optional   bool     `json:"optional,omitempty"`
	State      State    `json:"state"`
	// Absent: the query is optional, and what it does not watch is certainly absent, or may not
	// be read. It counts as empty. Objects that were shown stay, even if they may no longer be
	// read.
	Absent bool      `json:"absent,omitempty"`
	Since  time.Time `json:"since"`
	// Form is the form of the objects that the watch holds. It is empty for whole untyped
	// objects; "typed from protobuf" or "typed from json" for objects that are decoded straight
	// into the Go type; "metadata", or "metadata of whole objects" if the server sends whole
	// objects, which are shortened here.
	Form string `json:"form,omitempty"`
	// Error is the last error, empty while all is well.
	Error string `json:"error,omitempty"`
	// Heard is when the server last answered: with a list, an event, a bookmark, or an opened
	// watch. The objects shown may be as old as that, and are not older.
	Heard time.Time `json:"heard,omitzero"`
	// Objects is the number of objects that the watch holds.
	Objects int `json:"objects"`
	// Refs is the number of named objects, for a query with Refs.
	Refs int `json:"refs,omitempty"`
	// Invalid is the number of objects that the snapshot leaves out.
	Invalid int `json:"invalid"`
	// Version is the version up to which the watch has delivered everything.
	Version string `json:"version,omitempty"`
	// Pending is the number of own writes that the watch has not shown yet.
	Pending int `json:"pending"`
	// Unsettled is the number of own writes that are shown only when the watch delivers them: the
	// server could not be asked about them.
	Unsettled int `json:"unsettled,omitempty"`
	// Restarts is how often the watch has taken a new list.
	Restarts int `json:"restarts"`
}

// Status returns the state of each query, in the order of the queries.
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
	case f.refs != nil && known && !f.refs.known.Load(): // the names are not known yet
		st.State = Listing
	case known && len(parts) == 0: // no namespaces, or no names
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

// gravity orders states: of several streams, the gravest state counts.
var gravity = map[State]int{Synced: 1, Retrying: 2, Listing: 3, Missing: 4, Forbidden: 5, Waiting: 6}

// add adds the status of a stream.
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
		st.Version = s.PositionRV // all streams have delivered up to this version
	}
	st.Objects += s.Objects
	st.Pending += s.Pending
	st.Restarts += s.Restarts
	st.Unsettled += s.Unsettled
}
