package kates

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kates-go/kates/internal/base/health"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
)

// defaultHang is how long a step may take before the client is unhealthy.
const defaultHang = 2 * time.Minute

// checked is what health checks know of a client.
type checked struct {
	hang  time.Duration // how long a step may take
	ready atomic.Bool   // it was, once
}

// Readyz is a readiness probe, an [http.HandlerFunc]: it answers 200 once [Client.ReadyCheck] is
// nil, and 500 before that. As that of the API server it answers "ok", or with ?verbose, or if it
// fails, a line for each watch and each Lease:
//
//	[+]watch main.Snapshot ok
//	[-]watch main.Others failed: query "Quotas" (resourcequotas) is forbidden
//	readyz check failed
//
// The text names watches, queries and kinds. It has nothing of objects, and no errors of the
// server: those are in [Client.Status]. It answers GET and HEAD.
func (c *Client) Readyz(w http.ResponseWriter, r *http.Request) {
	health.Serve(w, r, "readyz", c.core.readyChecks)
}

// Healthz is a liveness probe, an [http.HandlerFunc]: it answers 500 while [Client.HealthCheck] is
// an error, else 200. Its text is as that of [Client.Readyz].
func (c *Client) Healthz(w http.ResponseWriter, r *http.Request) {
	health.Serve(w, r, "healthz", c.core.healthChecks)
}

// ReadyCheck says what the client still waits for. It is nil once [Client.Ready] is nil with one
// watch open at least, and from then on for ever: an outage, a watch that is opened later, and
// Close change nothing. So a roll-out stops at a program that cannot read what it needs, and a
// program that is in service stays there. It has the form of a healthz.Checker of
// controller-runtime and of k8s.io/apiserver.
//
// Watches count that are open when it is asked: open those that the program needs before it serves
// Readyz, or soon after. A program without watches has nothing to wait for, and needs no
// ReadyCheck.
func (c *Client) ReadyCheck(*http.Request) error { return health.Errors(c.core.readyChecks()) }

// HealthCheck says what hangs: what takes no time unless something is broken, and has taken longer
// than [WithHangTimeout]. A restart may help then. These are
//
//   - a step of a stream: it takes in an event, or an object of a list, and runs Transform and
//     Signal
//   - a reader's turn: Update, or the search for the next key, with predicates, Key, Refs and the
//     function of [WithOnInvalid]
//   - a method of an [Observer]
//   - a call of the function of a Run, a RunEach or a controller, if [WithUnhealthyAfter] says so
//
// An outage of the server, a backoff, and a program that does not call Update are none of these. A
// client that is closed is healthy. A step is looked at when somebody asks, and counts from the
// first time: it is found if HealthCheck is asked every few seconds, as a kubelet does.
func (c *Client) HealthCheck(*http.Request) error { return health.Errors(c.core.healthChecks()) }

// WithHangTimeout sets how long a step may take before the client is unhealthy, see
// [Client.HealthCheck]. Default: 2 minutes.
func WithHangTimeout(d time.Duration) Option {
	return option(func(s *settings) {
		s.hang = d
		s.wrong = least0(s.wrong, "WithHangTimeout", d, "is the default, 2m")
	})
}

// WithUnhealthyAfter makes the client unhealthy ([Client.HealthCheck]) while a call of the
// function of this [Run], [RunEach] or controller takes longer than that. By default a call may
// take as long as it likes.
func WithUnhealthyAfter(d time.Duration) RunOption {
	return runOption(func(s *runSettings) {
		if s.unhealthyAfter = d; d <= 0 {
			s.reject(fmt.Errorf("WithUnhealthyAfter is %s: it must be positive; without the option a call may take as long as it likes", d))
		}
	})
}

var errNoWatch = errors.New("no watch is open yet")

func (c *shared) readyChecks() (all []health.Check) {
	ready := c.checked.ready.Load()
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
	for _, report := range slices.Concat(c.leases.leaders.Open(), c.leases.shards.Open()) {
		all = append(all, health.Check{Name: "lease " + report.Lease(), Err: report.Ready(), Brief: "it was not reached yet"})
	}
	if len(watches) == 0 {
		all = append(all, health.Check{Name: "watches", Err: errNoWatch, Brief: errNoWatch.Error()})
	}
	if !ready && health.Errors(all) == nil {
		c.checked.ready.Store(true)
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

func (c *shared) healthChecks() (all []health.Check) {
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
	for _, open := range slices.Concat(c.Streams.Working(), c.observers.working.Running()) {
		if check := c.hanging(open.What, "it", "", now.Sub(open.Since)); check.Err != nil {
			all = append(all, check)
		}
	}
	for _, s := range c.loops.Overdue(now) {
		all = append(all, health.OfCalls(s))
	}
	return all
}

// hanging checks a step that has taken some time, in a function of the user if it has a name.
func (c *shared) hanging(name, what, doing string, d time.Duration) health.Check {
	check := health.Check{Name: name}
	if d <= c.checked.hang {
		return check
	}
	if doing != "" {
		what += ", in " + doing + ","
	}
	check.Brief = fmt.Sprintf("%s has not ended for %s", what, d.Truncate(time.Second))
	check.Err = errors.New(check.Brief)
	return check
}

// InspectHealth and InspectReady are for package fleet alone: their result cannot be named
// elsewhere. They are the checks of a client.
func InspectHealth(c *Client) []health.Check { return c.core.healthChecks() }

// InspectReady has the checks of [Client.ReadyCheck].
func InspectReady(c *Client) []health.Check { return c.core.readyChecks() }
