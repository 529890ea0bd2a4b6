package fleet

import (
	"context"
	"errors"
	"time"
)

// errSilent says of a stale cluster why nothing is sent to it.
var errSilent = errors.New("the cluster does not answer, and a write has waited for it in vain")

// refusesWrites returns why nothing is sent to the cluster now: it is stale, and since then a
// write has waited for it in vain. So the writes of one root alone wait, and not those of all, one
// by one.
func (c *homeCluster) refusesWrites() error {
	h := c.part.cluster.Health()
	if since := c.gaveUpOn.Load(); since != nil && h.Phase == Stale && h.Since.Equal(*since) {
		return errSilent
	}
	return nil
}

// endWhenStale calls end when the cluster has been stale for the fleet's Timeout, counted from this
// call or from when it became stale. It returns when ctx ends.
func (c *homeCluster) endWhenStale(ctx context.Context, end context.CancelCauseFunc) {
	changed, stop := c.home.fleet.Listen()
	defer stop()
	limit := time.NewTimer(0)
	limit.Stop()
	defer limit.Stop()
	for stale := false; ; {
		select {
		case <-changed:
			before := stale
			if stale = c.part.cluster.Health().Phase == Stale; !stale {
				limit.Stop()
			} else if !before {
				limit.Reset(c.home.fleet.options.Timeout)
			}
		case <-limit.C:
			since := c.part.cluster.Health().Since
			c.gaveUpOn.Store(&since)
			end(errSilent)
			return
		case <-ctx.Done():
			return
		}
	}
}
