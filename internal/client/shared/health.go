package shared

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kates-go/kates/internal/base/health"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
)

var errNoWatch = errors.New("no watch is open yet")

// ReadyChecks say what the client still waits for: each watch, and each Lease.
func (c *Client) ReadyChecks() (all []health.Check) {
	ready := c.ready.Load()
	watches := collect.Of(c.Streams)
	inspected := make(map[string]error, len(watches))
	names := make([]string, 0, len(watches))
	briefs := make(map[string]string)
	for _, w := range watches {
		in := w.Inspect()
		name := fmt.Sprintf("watch %s", in.Name)
		if _, there := inspected[name]; !there {
			names = append(names, name)
		}
		if in.Incomplete != nil && inspected[name] == nil {
			briefs[name] = missingOf(in)
		}
		inspected[name] = errors.Join(inspected[name], in.Incomplete)
	}
	slices.Sort(names)
	for _, name := range names {
		all = append(all, health.Check{Name: name, Err: inspected[name], Brief: briefs[name]})
	}
	for _, report := range slices.Concat(c.Leases.Leaders.Open(), c.Leases.Shards.Open()) {
		all = append(all, health.Check{Name: "lease " + report.Lease(), Err: report.Ready(), Brief: "it was not reached yet"})
	}
	if len(watches) == 0 {
		all = append(all, health.Check{Name: "watches", Err: errNoWatch, Brief: errNoWatch.Error()})
	}
	if !ready && health.Errors(all) == nil {
		c.ready.Store(true)
	}
	if ready {
		for i := range all {
			all[i].Err = nil // never back
		}
	}
	return all
}

// missingOf says which queries of a watch are not complete, without the server's words.
func missingOf(in collect.Inspection) string {
	var all []string
	for _, q := range in.Queries {
		if q.State != stream.Synced && !q.Absent {
			all = append(all, fmt.Sprintf("query %q (%s) is %s", q.Name, q.Kind, q.State))
		}
	}
	if all == nil {
		return "it is not complete yet"
	}
	return strings.Join(all, ", ")
}

// HealthChecks say what hangs.
func (c *Client) HealthChecks() (all []health.Check) {
	for _, s := range c.Streams.Steps() {
		all = append(all, c.hanging("stream "+s.Stream, "a step", s.Doing, s.For))
	}
	now := time.Now()
	for _, w := range collect.Of(c.Streams) {
		in := w.Inspect()
		d, doing := in.Turn.Look(now)
		all = append(all, c.hanging("watch "+in.Name, "the reader's turn", doing, d))
	}
	slices.SortStableFunc(all, func(a, b health.Check) int { return strings.Compare(a.Name, b.Name) })
	for _, open := range slices.Concat(c.Streams.Working(), c.Told.Working.Running()) {
		if check := c.hanging(open.What, "it", "", now.Sub(open.Since)); check.Err != nil {
			all = append(all, check)
		}
	}
	for _, s := range c.Loops.Overdue(now) {
		all = append(all, health.OfCalls(s))
	}
	return all
}

// hanging checks a step that has taken some time, in a function of the user if it has a name.
func (c *Client) hanging(name, what, doing string, d time.Duration) health.Check {
	check := health.Check{Name: name}
	if d <= c.Hang {
		return check
	}
	if doing != "" {
		what += ", in " + doing + ","
	}
	check.Brief = fmt.Sprintf("%s has not ended for %s", what, d.Truncate(time.Second))
	check.Err = errors.New(check.Brief)
	return check
}
