package query

import (
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/stream"
)

// Status is the state of one query.
type Status struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	// Namespaces are set if the query names several.
	Namespaces []string `json:"namespaces,omitempty"`
	Optional   bool     `json:"optional,omitempty"`
	// Changing: the query was added or replaced while the watch runs, and no snapshot shows that
	// yet. It waits until this query, and all that were changed with it, are complete. The rest of
	// this status is about the new query.
	Changing bool         `json:"changing,omitempty"`
	State    stream.State `json:"state"`
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
	// Shard is set for a query that brings a share of the objects. It says whether the server
	// sends this share alone.
	Shard string `json:"shard,omitempty"`
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
	// Start says how the watch has begun, where watches are kept for the next process: see
	// [stream.Status].
	Start string `json:"start,omitempty"`
}

// AddAll adds the status of all streams of a query. It reports whether what they do not watch is
// certainly absent, or may not be read.
func (st *Status) AddAll(all []*stream.Listener) (absent bool) {
	absent = true
	for i, l := range all {
		s := l.Status()
		st.add(s, i == 0)
		absent = absent && (s.State == stream.Synced || l.State().Absent())
	}
	return absent
}

// gravity orders states: of several streams, the gravest state counts.
var gravity = map[stream.State]int{
	stream.Synced: 1, stream.Retrying: 2, stream.Listing: 3, stream.Missing: 4, stream.Forbidden: 5, stream.Waiting: 6,
}

// add adds the status of a stream.
func (st *Status) add(s stream.Status, first bool) {
	if first || gravity[s.State] > gravity[st.State] {
		st.State, st.Since, st.Error = s.State, s.Since, s.Error
	}
	if first || s.Form != "" {
		st.Form = s.Form
	}
	if first || s.Shard != "" {
		st.Shard = s.Shard
	}
	if first || s.Heard.Before(st.Heard) {
		st.Heard = s.Heard
	}
	if first || coherence.Newer(st.Version, s.PositionRV) {
		st.Version = s.PositionRV // all streams have delivered up to this version
	}
	if first || st.Start == "warm" {
		st.Start = s.Start
	}
	st.Objects += s.Objects
	st.Pending += s.Pending
	st.Restarts += s.Restarts
	st.Unsettled += s.Unsettled
}
