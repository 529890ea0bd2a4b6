package kates

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
)

// reading is one reading of discovery, under way or done. Its fields are set
// before done is closed.
type reading struct {
	done   chan struct{}
	result *served
	cut    bool // short, by the context of the call that made it
	live   bool // it asked the server rather than client-go's cache
}

// current is the latest reading of discovery, made now if there is none yet;
// fresh tells that the server was asked during the call.
func (r *resolver) current(ctx context.Context) (all *served, fresh bool) {
	r.mu.Lock()
	if r.latest != nil {
		defer r.mu.Unlock()
		return r.latest, false
	}
	return r.read(ctx, false)
}

// refresh is a newer reading than stale, or stale where it is too early for one.
func (r *resolver) refresh(ctx context.Context, stale *served) *served {
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

// read joins the reading under way, or makes one, if there is none or the one
// that there was has been cut short. It is called with r.mu held, and returns
// with it released.
func (r *resolver) read(ctx context.Context, reset bool) (all *served, fresh bool) {
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
	mine := &reading{done: make(chan struct{}), cut: true, result: &served{err: errors.New("it was interrupted")}}
	r.reading = mine
	previous := r.latest
	r.mu.Unlock()
	defer r.finish(mine)

	mine.live = reset || r.disco == nil || !r.disco.Fresh()
	if reset {
		r.resetSources()
	}
	mine.result = r.readDiscovery(ctx)
	if mine.cut = ctx.Err() != nil && !mine.result.complete(); mine.cut && !errors.Is(mine.result.err, ctx.Err()) {
		// A partial reading or the context's cause do not show that it was the context.
		mine.result.err = ctx.Err()
	}
	if mine.result.err != nil && previous != nil {
		// What resolved before still does; only absence is in doubt now.
		mine.result.resources = previous.resources
	}
	return mine.result, mine.live
}

// finish publishes a reading. One that failed is not kept, so that the next
// look-up tries again, unless it has an earlier one to stand in for.
func (r *resolver) finish(mine *reading) {
	defer close(mine.done)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading != mine {
		return // invalidated meanwhile
	}
	r.reading = nil
	if !mine.cut && (mine.result.err == nil || len(mine.result.resources) > 0) {
		r.latest = mine.result
	}
}

func (r *resolver) resetSources() {
	if r.disco != nil {
		r.disco.Invalidate()
	}
	if r.mapper != nil {
		meta.MaybeResetRESTMapper(r.mapper)
	}
}

func (r *resolver) readDiscovery(ctx context.Context) *served {
	if r.disco == nil {
		return &served{}
	}
	// client-go would log on its own what is returned as an error.
	ctx = klog.NewContext(ctx, logr.Discard())
	return newServed(discovery.ToDiscoveryInterfaceWithContext(r.disco).ServerGroupsAndResourcesWithContext(ctx))
}
