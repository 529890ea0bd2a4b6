package controller

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/kates-go/kates/kates"
)

// counts of a controller, over all of its runs.
type counts struct{ running, reconciles, errors atomic.Int64 }

// Status says how a controller stands.
type Status struct {
	Name string
	// Watches of the kinds; empty before the first run.
	Watches kates.Status
	// Roots that there are, and those that have departed and are not done with.
	Roots int
	// Running reconciles now.
	Running int
	// Reconciles and Errors since New: calls of the reconciler that have returned, or were made for a root that could not be read, and those of them that failed.
	Reconciles, Errors int64
	// Failing are the keys whose last reconcile has failed, in order.
	Failing []Failure
}

// Failure is how the last reconcile of a key has failed.
type Failure struct {
	Key     string
	Attempt int // how many have failed in a row
	Err     error
}

// Status says how the controller stands now.
func (c *control) Status() Status {
	s := Status{
		Name: c.name, Running: int(c.counts.running.Load()),
		Reconciles: c.counts.reconciles.Load(), Errors: c.counts.errors.Load(),
	}
	r := c.latest()
	if r == nil {
		return s
	}
	s.Watches = r.watch.Status().(kates.Status)
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

// Keys of the roots that there are, and of those that have departed and are not done with, in order, as of their latest turns.
func (c *control) Keys() []string {
	r := c.latest()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.keys))
}

// Ready is nil once the first snapshot of all kinds is complete, and never turns back; see [kates.Accumulator.Ready]. Reconciles may not have
// been made yet, and do not count.
func (c *control) Ready() error {
	r := c.latest()
	if r == nil {
		return c.named(errors.New("it has not started to watch"))
	}
	if err := r.watch.Ready(); err != nil {
		return c.named(err)
	}
	return nil
}

// latest is the run that watches, or has done so last.
func (c *control) latest() *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run == nil || c.run.watch == nil {
		return nil
	}
	return c.run
}
