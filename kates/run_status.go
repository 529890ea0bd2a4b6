package kates

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/kates-go/kates/internal/lease"
)

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
			errs = append(errs, fmt.Errorf("lease %s: %s", l.Lease, l.Error))
		}
	}
	for _, m := range s.Shards {
		if m.Error != "" {
			errs = append(errs, fmt.Errorf("shards %s: %s", m.Group, m.Error))
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
		fmt.Fprintf(w, "%s\t%s\t%t\t%s\t%s\t%s\n", l.Lease, l.Identity, l.Leading, l.Holder, age(l.Since), l.Error)
	}
	if len(s.Shards) > 0 {
		fmt.Fprintln(w, "SHARDS\tIDENTITY\tMEMBER\tMEMBERS\tSINCE\tERROR")
	}
	for _, m := range s.Shards {
		fmt.Fprintf(w, "%s\t%s\t%t\t%d\t%s\t%s\n", m.Group, m.Identity, m.Member, m.Members, age(m.Since), m.Error)
	}
}

func age(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return time.Since(since).Truncate(time.Second).String()
}
