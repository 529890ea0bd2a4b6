package controller

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/kates-go/kates/kates"
)

// counts of a controller, over all of its runs.
type counts struct{ reconciles, errors atomic.Int64 }

// Status is the state of a controller. It marshals to JSON.
type Status struct {
	Name string `json:"name"`
	// Watches of the kinds; empty before the first run.
	Watches kates.Status `json:"watches"`
	// Leader is how this replica stands with the Lease of its [kates.LeaderElection], and Shard
	// with its group of [kates.Sharding]: in the present run, or in the last one. They are nil
	// without that option.
	Leader *kates.LeaderStatus `json:"leader,omitempty"`
	Shard  *kates.ShardStatus  `json:"shard,omitempty"`
	// Roots that exist, and those that have departed and have to be reconciled for that.
	Roots int `json:"roots"`
	// Running reconciles now.
	Running int `json:"running"`
	// Reconciles since New: calls of the reconciler that have returned, and roots that could not be
	// read. Errors are those that failed.
	Reconciles int64 `json:"reconciles"`
	Errors     int64 `json:"errors"`
	// Failing are the keys whose last reconcile has failed, in order.
	Failing []Failure `json:"failing,omitempty"`
}

// Failure says how the last reconcile of a key has failed.
type Failure struct {
	Key     string
	Attempt int // how many have failed in a row
	Err     error
}

// MarshalJSON writes the error as its text.
func (f Failure) MarshalJSON() ([]byte, error) {
	var text string
	if f.Err != nil {
		text = f.Err.Error()
	}
	return json.Marshal(struct {
		Key     string `json:"key"`
		Attempt int    `json:"attempt"`
		Error   string `json:"error,omitempty"`
	}{f.Key, f.Attempt, text})
}

// Status returns the state of the controller now.
func (c *control) Status() Status {
	s := Status{
		Name: c.name, Reconciles: c.counts.reconciles.Load(), Errors: c.counts.errors.Load(),
	}
	if own := c.plan.LeaseStatus(); len(own.Leaders) > 0 {
		s.Leader = &own.Leaders[0]
	} else if len(own.Shards) > 0 {
		s.Shard = &own.Shards[0]
	}
	r := c.latest()
	if r == nil {
		return s
	}
	s.Watches, s.Running = r.watch.Status(), r.loop.Running()
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Roots = len(r.keys)
	for _, k := range r.keys {
		if k.failure != nil {
			s.Failing = append(s.Failing, *k.failure)
		}
	}
	slices.SortFunc(s.Failing, func(a, b Failure) int { return strings.Compare(a.Key, b.Key) })
	return s
}

// Keys are those of the roots that exist, and of those that have departed and have to be
// reconciled for that, in order, as of their latest turns.
func (c *control) Keys() []string {
	r := c.latest()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.keys))
}

// Ready is nil once the first snapshot of all kinds is complete, and never turns back; see
// [kates.Accumulator.Ready]. With a leader election, or shards, the Lease must have been reached,
// too; see [kates.Client.Ready]. Reconciles do not count: there may have been none yet.
func (c *control) Ready() error {
	r := c.latest()
	if r == nil {
		return c.named(errors.New("it has not started to watch"))
	}
	if err := r.watch.Ready(); err != nil {
		return c.named(err)
	}
	if c.plan.Report != nil {
		if err := c.plan.Report.Ready(); err != nil {
			return c.named(err)
		}
	}
	return nil
}

// latest is the run that watches, or that watched last. Before the first watch it is nil.
func (c *control) latest() *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == nil || c.run.watch == nil {
		return nil
	}
	return c.run
}
