package kinds

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
)

// reading is one reading of discovery, under way or done. Its fields are set before done is
// closed.
type reading struct {
	done   chan struct{}
	result *served
	cut    bool // the context of the call that made it ended
	live   bool // it asked the server and not client-go's cache
}

// current returns the latest reading of discovery, and makes the first one. fresh says that the
// server was asked during the call.
func (r *Resolver) current(ctx context.Context) (all *served, fresh bool) {
	r.mu.Lock()
	if r.latest != nil {
		defer r.mu.Unlock()
		return r.latest, false
	}
	return r.read(ctx, false)
}

// refresh returns a newer reading than stale, or stale if it is too early for one.
func (r *Resolver) refresh(ctx context.Context, stale *served) *served {
	r.mu.Lock()
	if r.reading == nil {
		if r.latest != nil && r.latest != stale {
			defer r.mu.Unlock()
			return r.latest
		}
		now := r.clock.Now()
		if now.Sub(r.lastReset) < resetInterval {
			r.mu.Unlock()
			return stale
		}
		r.lastReset = now
	}
	all, _ := r.read(ctx, true)
	return all
}

// read joins the reading under way. It makes one if there is none, or if that one was cut short.
// It is called with r.mu held, and releases it.
func (r *Resolver) read(ctx context.Context, reset bool) (all *served, fresh bool) {
	for r.reading != nil {
		under := r.reading
		r.mu.Unlock()
		select {
		case <-under.done:
		case <-ctx.Done():
			return &served{err: ctx.Err()}, true
		}
		if !under.cut {
			return under.result, under.live
		}
		r.mu.Lock()
	}
	mine := &reading{done: make(chan struct{}), cut: true}
	mine.result = &served{err: errors.New("it was interrupted")}
	r.reading = mine
	previous := r.latest
	r.mu.Unlock()
	defer r.finish(mine)

	mine.live = reset || r.disco == nil || !r.disco.Fresh()
	if reset {
		r.resetSources()
	}
	mine.result = r.readDiscovery(ctx)
	mine.cut = ctx.Err() != nil && !mine.result.complete()
	if mine.cut && !errors.Is(mine.result.err, ctx.Err()) {
		// Neither a partial reading nor the context's cause show that the context ended it.
		mine.result.err = ctx.Err()
	}
	if mine.result.err != nil && previous != nil {
		// Known kinds stay known; only absence is in doubt now.
		mine.result.resources = previous.resources
	}
	return mine.result, mine.live
}

// finish publishes a reading. A failed one is not kept, so that the next look-up tries again,
// unless it carries the resources of an earlier one.
func (r *Resolver) finish(mine *reading) {
	defer close(mine.done)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading != mine {
		return // Invalidate was called meanwhile
	}
	r.reading = nil
	if !mine.cut && (mine.result.err == nil || len(mine.result.resources) > 0) {
		r.latest = mine.result
	}
}

func (r *Resolver) resetSources() {
	if r.disco != nil {
		r.disco.Invalidate()
	}
	if r.mapper != nil {
		meta.MaybeResetRESTMapper(r.mapper)
	}
}

func (r *Resolver) readDiscovery(ctx context.Context) *served {
	if r.disco == nil {
		return &served{}
	}
	// client-go would also log the error that it returns.
	ctx = klog.NewContext(ctx, logr.Discard())
	disco := discovery.ToDiscoveryInterfaceWithContext(r.disco)
	return newServed(disco.ServerGroupsAndResourcesWithContext(ctx))
}
