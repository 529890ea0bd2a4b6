package lease

import (
	"bytes"
	"context"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// campaign is the loop of a candidate. It acquires the lease, and then renews it, as LeaderElector
// of client-go's tools/leaderelection does. It belongs to the candidate's goroutine.
type campaign struct {
	config   Config
	lock     *lock
	observed record    // what the candidate read or wrote last
	raw      []byte    // what it read last
	since    time.Time // when it first saw what it observes
}

// run returns when ctx ends, or when a lease that it acquired could not be renewed in time.
func (c *campaign) run(ctx context.Context) {
	if c.acquire(ctx) {
		c.renew(ctx)
	}
}

// acquire tries until it has the lease, or until ctx ends.
func (c *campaign) acquire(ctx context.Context) (acquired bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if acquired = c.try(ctx); acquired {
			cancel()
		}
	}, c.config.RetryPeriod, jitterFactor, true)
	return acquired
}

// renew renews the lease until it has failed to do so for the renew deadline, or until ctx ends.
func (c *campaign) renew(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		try := func(ctx context.Context) (bool, error) {
			if err := ctx.Err(); err != nil {
				return false, err // the first try comes also when ctx has ended
			}
			return c.try(ctx), nil
		}
		err := wait.PollUntilContextTimeout(ctx, c.config.RetryPeriod, c.config.RenewDeadline, true, try)
		if err != nil {
			cancel()
		}
	}, c.config.RetryPeriod)
}

// try acquires or renews the lease once. It reports whether the candidate holds it now.
func (c *campaign) try(ctx context.Context) bool {
	now := time.Now()
	mine := record{
		holder: c.config.Identity, seconds: int32(c.config.LeaseDuration / time.Second), acquired: now, renewed: now,
	}
	// A leader assumes that the Lease is as it was written last, and saves a request.
	if c.holds() && c.valid(now) {
		mine.acquired, mine.transitions = c.observed.acquired, c.observed.transitions
		if err := c.lock.update(ctx, mine); err == nil {
			c.observe(mine)
			return true
		}
		mine.acquired, mine.transitions = now, 0
	}
	found, raw, err := c.lock.get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		if err = c.lock.create(ctx, mine); err == nil {
			c.observe(mine)
		}
		return err == nil
	case err != nil:
		return false
	}
	if !bytes.Equal(c.raw, raw) {
		c.observe(found)
		c.raw = raw
	}
	if found.holder != "" && c.valid(now) && !c.holds() {
		c.lock.waits()
		return false
	}
	mine.transitions = next(found.transitions)
	if c.holds() && c.goesOn() {
		mine.acquired, mine.transitions = found.acquired, found.transitions
	}
	if err = c.lock.update(ctx, mine); err == nil {
		c.observe(mine)
	}
	return err == nil
}

// next is the number of the next term. The server takes no number below zero, so the largest one
// stays: then the times alone tell the terms apart.
func next(term int32) int32 { return max(0, term, min(term, math.MaxInt32-1)+1) }

func (c *campaign) observe(r record) { c.observed, c.since = r, time.Now() }

// holds reports whether the candidate is the holder that was observed last.
func (c *campaign) holds() bool { return c.lock.mine(c.observed) }

// goesOn reports whether the term of the Lease is this candidate's. Under an identity of this
// process it is not, where the candidate does not lead: another candidate had it, whose work has
// ended. So each term has a number of its own (leaseTransitions), as if the identities differed.
func (c *campaign) goesOn() bool { return !c.config.OwnIdentity || c.lock.candidate.leads() }

// valid reports whether what was observed has not expired. The duration is that of the Lease, the
// time that of this process: no clock is compared with another's.
func (c *campaign) valid(now time.Time) bool {
	return c.since.Add(time.Duration(c.observed.seconds) * time.Second).After(now)
}
