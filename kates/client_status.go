package kates

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/loops/lease"
)

// State is the state of a query's watch.
type State string

// The states of a query.
const (
	StateWaiting   = State(stream.Waiting)   // the kind is not known yet, or not for certain
	StateListing   = State(stream.Listing)   // the first list is running
	StateSynced    = State(stream.Synced)    // the watch is open
	StateRetrying  = State(stream.Retrying)  // the last request failed; what was shown stays
	StateForbidden = State(stream.Forbidden) // the server refuses; what was shown stays
	StateMissing   = State(stream.Missing)   // the server does not serve the kind
)

// QueryStatus is the state of one query.
type QueryStatus struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	// Namespaces, if the query names several.
	Namespaces []string `json:"namespaces,omitempty"`
	Optional   bool     `json:"optional,omitempty"`
	// Changing: the query was added or replaced while the watch runs, and no snapshot shows that
	// yet. It waits until this query, and all that were changed with it, are complete. The rest is
	// about the new query.
	Changing bool  `json:"changing,omitempty"`
	State    State `json:"state"`
	// Absent: the query is optional, and what it does not watch certainly does not exist, or the
	// client may not read it. That part counts as empty. Objects that were shown, and that the
	// client may no longer read, stay and do not count as absent.
	Absent bool      `json:"absent,omitempty"`
	Since  time.Time `json:"since"`
	// Form of the objects that the watch holds. It is empty for whole untyped objects. It is
	// "typed from protobuf" or "typed from json" where they are decoded straight into the Go
	// type, and "fields from protobuf" or "fields from json" where only those of a struct are.
	// With a [Query].Projection it has "only" and the paths. It is "metadata", or "metadata of
	// whole objects" where the server sends whole objects and the client shortens them.
	Form string `json:"form,omitempty"`
	// Error is the last one. It is empty while all is well.
	Error string `json:"error,omitempty"`
	// Heard is when the server last said anything about the query: a list, an event, a bookmark
	// (about every minute), or the start of a watch that did not end at once. With several watches
	// it is the oldest of these times.
	Heard time.Time `json:"heard,omitzero"`
	// Lag is how far behind the server the query may be: 0 while its watches are open, else the
	// time since Heard, or since Since if nothing was heard and the query is not Absent. A dead
	// connection counts as open for the idle time-out at most.
	Lag time.Duration `json:"lag"`
	// Objects is the number of objects that the watch holds.
	Objects int `json:"objects"`
	// Refs is the number of named objects where those are watched one by one ([Query.Refs]).
	Refs int `json:"refs,omitempty"`
	// Invalid is the number of objects that the snapshot leaves out.
	Invalid int `json:"invalid"`
	// Version up to which the watch has delivered everything.
	Version string `json:"version,omitempty"`
	// Pending is the number of own writes that the watch has not shown yet.
	Pending int `json:"pending"`
	// Unsettled is the number of own writes that are shown only when the watch brings them: the
	// server could not answer what they mean for this query.
	Unsettled int `json:"unsettled,omitempty"`
	// Restarts is the number of restarts of the watch that took a new list.
	Restarts int `json:"restarts"`
	// Shard is set where the watch brings one replica's part of the objects ([Sharding]). It says
	// in words whether the server sends that part alone.
	Shard string `json:"shard,omitempty"`
	// Start says how the watch has begun, with [WithWarmStart]: "warm", or "list: " and why it was
	// not warm. Of several watches it is one that was not warm, if there is one.
	Start string `json:"start,omitempty"`
}

func statusOf(all []query.Status) (s Status) {
	for _, q := range all {
		s.Queries = append(s.Queries, QueryStatus{
			Name: q.Name, Kind: q.Kind, Namespace: q.Namespace, Optional: q.Optional, Changing: q.Changing,
			State: State(q.State), Absent: q.Absent, Since: q.Since, Form: q.Form, Error: q.Error, Objects: q.Objects, Refs: q.Refs, Invalid: q.Invalid,
			Namespaces: q.Namespaces, Heard: q.Heard, Lag: lagOf(q), Version: q.Version, Pending: q.Pending, Unsettled: q.Unsettled, Restarts: q.Restarts, Shard: q.Shard, Start: q.Start,
		})
	}
	return s
}

func lagOf(q query.Status) time.Duration {
	switch {
	case q.State == stream.Synced, q.Absent && q.Heard.IsZero():
		return 0
	case q.Heard.IsZero():
		return time.Since(q.Since).Truncate(time.Millisecond)
	}
	return time.Since(q.Heard).Truncate(time.Millisecond)
}

// Status is the state of watches, query by query. It prints as a table and marshals to JSON.
type Status struct {
	Queries []QueryStatus `json:"queries"`
	// Leaders are the elections of open runs, and Shards their places among shards, in the order
	// of their beginning. Only [Client.Status] has them.
	Leaders []LeaderStatus `json:"leaders,omitempty"`
	Shards  []ShardStatus  `json:"shards,omitempty"`
}

// Err says what is wrong now. It is nil while every query's watch is open, and every Lease can be
// read and written. A failure may heal by itself, and what was shown stays meanwhile. An optional
// query whose kind is not there ([QueryStatus.Absent]) is no failure, and neither is to follow.
func (s Status) Err() error {
	var errs []error
	for _, q := range s.Queries {
		if q.State == StateSynced || q.Absent {
			continue
		}
		text := q.Error
		if text == "" {
			text = "not complete yet"
		}
		errs = append(errs, fmt.Errorf("query %q (%s): %s: %s", q.Name, plain.Line(q.Kind), q.State, plain.Line(text)))
	}
	return errors.Join(append(errs, s.leaseErrs()...)...)
}

// String prints the status as a table.
func (s Status) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "QUERY\tKIND\tSTATE\tSINCE\tLAG\tOBJECTS\tINVALID\tPENDING\tRESTARTS\tVERSION\tERROR")
	for _, q := range s.Queries {
		plain.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", q.Name, q.what(), q.state(),
			time.Since(q.Since).Truncate(time.Second), q.Lag.Truncate(time.Second), q.Objects, q.Invalid, q.Pending, q.Restarts, q.Version, q.Error)
	}
	_ = w.Flush()
	s.printLeases(w)
	_ = w.Flush() // a strings.Builder does not fail
	return b.String()
}

// state is the state, and whether the query waits to be shown.
func (q QueryStatus) state() string {
	if q.Changing {
		return string(q.State) + ", changing"
	}
	return string(q.State)
}

// what names what is watched: the kind, and the form if objects are not whole.
func (q QueryStatus) what() string {
	if q.Form == "" {
		return q.Kind
	}
	return q.Kind + " (" + q.Form + ")"
}

// Status returns the state of the queries of all open watches of the client, and that of the
// elections and shards of its open runs.
func (c *Client) Status() Status {
	var s Status
	for _, a := range collect.Of(c.core.Streams) {
		s.Queries = append(s.Queries, statusOf(a.Status()).Queries...)
	}
	for _, l := range c.core.Leases.Leaders.Statuses() {
		s.Leaders = append(s.Leaders, leaderStatus(l))
	}
	for _, l := range c.core.Leases.Shards.Statuses() {
		s.Shards = append(s.Shards, shardStatus(l))
	}
	return s
}

// Ready returns nil once every open watch of the client is complete, and every Lease of an open
// run ([LeaderElection], [Sharding]) has been reached: read, or written. A Lease that the client
// may not read or create, or whose namespace does not exist, is a mistake that a roll-out should
// stop at. A follower is ready.
//
// A complete watch stays so: see [Accumulator.Ready]. A Lease that was reached once stays so for
// the client's life, whatever happens to it, and when [Run] is called again.
//
// A watch that is opened later counts from its beginning, and so does that of a Run that is called
// again: Ready waits for its first snapshot. It is complete at once if another watch has the same
// queries, or had them until [Tuning].Linger ago. A program that calls Run again when its lease is
// lost sets Linger, so that an outage does not take it out of service.
func (c *Client) Ready() error {
	var errs []error
	for _, a := range collect.Of(c.core.Streams) {
		errs = append(errs, a.Ready())
	}
	errs = append(errs, c.core.Leases.Leaders.Ready(), c.core.Leases.Shards.Ready())
	return errors.Join(errs...)
}

// LeaderStatus is how a replica stands with the Lease of a [LeaderElection]. [Client.Status] has
// one for each election of an open [Run], [RunEach] or controller, [LeaderElection.OnChange] is
// given it, and a controller's status has its own.
type LeaderStatus struct {
	// Lease is the namespace and the name of the Lease.
	Lease string `json:"lease"`
	// Identity of this replica. It is empty before the replica stands, which it does when its
	// first snapshot is complete.
	Identity string `json:"identity,omitempty"`
	// Leading: this replica leads now. It is false when the lease is over by the clocks, too.
	Leading bool `json:"leading"`
	// Led: this replica leads, or has led, in this run.
	Led bool `json:"led"`
	// Holder is the identity of who holds the Lease, as it was read or written last: every
	// RetryPeriod or so. It may have expired. It is empty where nobody holds it, and where it could
	// not be read yet.
	Holder string `json:"holder,omitempty"`
	// Since is when the holder has acquired the Lease, by the holder's clock.
	Since time.Time `json:"since,omitzero"`
	// Error says why the Lease cannot be read or written now, or why a leader has lost it. It is
	// empty while all is well, which it is for a follower, too.
	Error string `json:"error,omitempty"`
}

// ShardStatus is how a replica stands with its group of shards ([Sharding]). [Client.Status] has
// one for each open [RunEach] or controller with shards, and a controller's status has its own.
type ShardStatus struct {
	// Group is the namespace and the name of the group.
	Group string `json:"group"`
	// Identity of this replica. It is empty before the first snapshot is complete.
	Identity string `json:"identity,omitempty"`
	// Member: this replica is a member now, and so has a part of the keys, or gets one.
	Member bool `json:"member"`
	// Members is the number of members that this replica sees, itself included.
	Members int `json:"members"`
	// Since is when this replica has become a member last.
	Since time.Time `json:"since,omitzero"`
	// Keys is the number of keys that are this replica's.
	Keys int `json:"keys"`
	// Ranges is the number of ranges of hashes that this replica has, and Part how much of all
	// hashes they are, from 0 to 1. Both are 0 where the members divide keys by their names.
	Ranges int     `json:"ranges,omitempty"`
	Part   float64 `json:"part,omitempty"`
	// Streams says in words whether the replica's watches bring its part alone, and whether the
	// server sends that, or everything.
	Streams string `json:"streams,omitempty"`
	// Error says why this replica is no member, or cannot renew its Lease. It is empty while all is
	// well.
	Error string `json:"error,omitempty"`
}

func leaderStatus(s lease.Status) LeaderStatus {
	return LeaderStatus{
		Lease: s.Lease, Identity: s.Identity, Leading: s.Holds, Led: s.Held, Holder: s.Holder,
		Since: s.Since, Error: textOf(s.Err),
	}
}

func shardStatus(s lease.Status) ShardStatus {
	return ShardStatus{
		Group: s.Lease, Identity: s.Identity, Member: s.Holds, Members: s.Members, Since: s.Since, Error: textOf(s.Err),
		Keys: s.Keys, Ranges: s.Ranges, Part: s.Part, Streams: s.Streams,
	}
}

// ownStatus is how the run stands with its Lease: a status of that alone.
func (s *runSettings) ownStatus(r *lease.Report) (own Status) {
	switch {
	case s.election != nil:
		own.Leaders = []LeaderStatus{leaderStatus(r.Status())}
	case s.sharding != nil:
		own.Shards = []ShardStatus{shardStatus(r.Status())}
	}
	return own
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// leaseErrs are what is wrong with elections and shards.
func (s Status) leaseErrs() (errs []error) {
	for _, l := range s.Leaders {
		if l.Error != "" {
			errs = append(errs, fmt.Errorf("lease %s: %s", plain.Line(l.Lease), plain.Line(l.Error)))
		}
	}
	for _, m := range s.Shards {
		if m.Error != "" {
			errs = append(errs, fmt.Errorf("shards %s: %s", plain.Line(m.Group), plain.Line(m.Error)))
		}
	}
	return errs
}

// printLeases adds a table of elections, and one of shards, if there are any.
func (s Status) printLeases(w *tabwriter.Writer) {
	if len(s.Leaders) > 0 {
		fmt.Fprintln(w, "LEASE\tIDENTITY\tLEADING\tHOLDER\tSINCE\tERROR")
	}
	for _, l := range s.Leaders {
		plain.Fprintf(w, "%s\t%s\t%t\t%s\t%s\t%s\n", l.Lease, l.Identity, l.Leading, l.Holder, age(l.Since), l.Error)
	}
	if len(s.Shards) > 0 {
		fmt.Fprintln(w, "SHARDS\tIDENTITY\tMEMBER\tMEMBERS\tKEYS\tPART\tSINCE\tSTREAMS\tERROR")
	}
	for _, m := range s.Shards {
		plain.Fprintf(w, "%s\t%s\t%t\t%d\t%d\t%s\t%s\t%s\t%s\n", m.Group, m.Identity, m.Member, m.Members, m.Keys, m.part(), age(m.Since), m.Streams, m.Error)
	}
}

// part is the part as a percentage.
func (m ShardStatus) part() string {
	if m.Part == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%%", 100*m.Part)
}

func age(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return time.Since(since).Truncate(time.Second).String()
}
