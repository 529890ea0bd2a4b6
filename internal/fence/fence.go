// Package fence carries in a context what must still hold when a write is sent under it: that the lease is held which the work was
// begun with.
//
// A process that was stopped (SIGSTOP, a long garbage collection, a suspended machine) goes on in the middle of what it did, before any timer of
// its own has run, and does not know that another has its work. So the lease is looked at by those who send: by
// the write methods, and again by [Transport], when the request is about to be sent, when its body is read, which is when the connection
// is there and waits for it, and when it is sent once more on another connection.
//
// What is on its way by then no client can stop: that is for preconditions on the server (see [Horizon]).
package fence

import (
	"context"
	"sync"
	"time"

	"github.com/kates-go/kates/coherence"
)

type contextKey struct{}

// fence is the innermost of a context.
type fence struct {
	held    func() error
	horizon *Horizon
	outer   *fence
}

// With returns a context under which writes are sent only while held returns nil. It is asked by any goroutine, often, and must not block.
// Where ctx has a fence already, both count.
func With(ctx context.Context, held func() error) context.Context {
	return context.WithValue(ctx, contextKey{}, &fence{held: held, outer: of(ctx)})
}

// Check is the error that forbids to send a write under ctx now.
func Check(ctx context.Context) error {
	for f := of(ctx); f != nil; f = f.outer {
		if f.held == nil {
			continue
		}
		if err := f.held(); err != nil {
			return err
		}
	}
	return nil
}

// Fenced reports whether writes under ctx are bound to a lease.
func Fenced(ctx context.Context) bool { return of(ctx) != nil }

func of(ctx context.Context) *fence {
	f, _ := ctx.Value(contextKey{}).(*fence)
	return f
}

// Horizon is up to where a program had come when a piece of its work began. What is newer than that, and was not written by the work itself,
// the work has not been made of. It may be used by several goroutines.
type Horizon struct {
	begun map[string]string // stored resource → the newest version of it

	mu  sync.Mutex
	own map[any]string // object → the version that the work has written
}

// WithHorizon returns a context for work that begins now, when these were the newest versions of each stored resource.
func WithHorizon(ctx context.Context, begun map[string]string) context.Context {
	return context.WithValue(ctx, contextKey{}, &fence{horizon: &Horizon{begun: begun}, outer: of(ctx)})
}

// HorizonOf is that of the work under ctx, nil if nobody has said when it began.
func HorizonOf(ctx context.Context) *Horizon {
	for f := of(ctx); f != nil; f = f.outer {
		if f.horizon != nil {
			return f.horizon
		}
	}
	return nil
}

// Wrote notes a version that the work has written of an object. On nil it does nothing.
func (h *Horizon) Wrote(object any, version string) {
	if h == nil || version == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.own == nil {
		h.own = make(map[any]string)
	}
	h.own[object] = version
}

// Includes reports whether the work may have been made of this version of an object of a resource. So it is for every version of a resource of which
// it is not known where the work began.
func (h *Horizon) Includes(resource string, object any, version string) bool {
	if h == nil {
		return true
	}
	begun, known := h.begun[resource]
	if !known || !coherence.Newer(version, begun) {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.own[object] == version
}

// Since is the time that has passed, by whichever clock says more. Go's is monotonic, which on Linux stands still while the machine is suspended; the wall
// clock does not, but may be set. One that was set forward says too much, which is safe.
func Since(t time.Time) time.Duration { return Between(t, time.Now()) }

// Between is Since, for another now.
func Between(t, now time.Time) time.Duration {
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}
