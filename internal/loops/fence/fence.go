// Package fence carries a condition for writes in a context: a write is sent only if the lease
// under which its work began is still held.
//
// A process may stop for a while (SIGSTOP, a long garbage collection, a suspended machine). It
// then goes on in the middle of its work, before any of its timers has run, and does not know
// that another process has taken over. So the senders check the lease. The write methods do, and
// so does [Transport]: when it is about to send the request, when the request's body is read (the
// connection exists then, and waits for the body), and when the request is sent again on another
// connection.
//
// No client can stop a request that is on its way by then. Preconditions on the server do (see
// [Horizon]).
package fence

import (
	"context"
	"time"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
)

type contextKey struct{}

// fence is one link of the chain in a context, the innermost first.
type fence struct {
	held    func() error
	horizon *Horizon
	outer   *fence
}

// With returns a context under which writes are sent only while held returns nil. Any goroutine
// may call held, and often: it must not block. If ctx has a fence already, both apply.
func With(ctx context.Context, held func() error) context.Context {
	return context.WithValue(ctx, contextKey{}, &fence{held: held, outer: of(ctx)})
}

// Check returns nil if a write may be sent under ctx now, or else the error that forbids it.
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

// Horizon has the newest versions that a program knew when a piece of its work began. The work is
// not based on anything newer, except its own writes. It is safe for concurrent use.
type Horizon struct {
	server any               // whose versions they are
	begun  map[string]string // stored resource → the newest version of it

	mu  lockorder.Mutex[lockorder.Horizon]
	own map[any]string // object → the newest version that the work has written
}

// WithHorizon returns a context for work that begins now, with the newest version of each stored
// resource of a server. The versions of one server say nothing about those of another.
func WithHorizon(ctx context.Context, server any, begun map[string]string) context.Context {
	h := &Horizon{server: server, begun: begun}
	return context.WithValue(ctx, contextKey{}, &fence{horizon: h, outer: of(ctx)})
}

// HorizonOf returns the horizon of the work under ctx for a server, nil if it has none.
func HorizonOf(ctx context.Context, server any) *Horizon {
	for f := of(ctx); f != nil; f = f.outer {
		if f.horizon != nil && f.horizon.server == server {
			return f.horizon
		}
	}
	return nil
}

// Wrote notes a version of an object that the work has written. On nil it does nothing.
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

// Includes reports whether the work may be based on this version of an object of a resource. It is
// true for every version of a resource that the horizon does not know.
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

// Since returns the time that has passed, by whichever clock says more. On Linux, Go's monotonic
// clock stands still while the machine is suspended. The wall clock does not, but somebody may
// set it. If somebody sets it forward, the result is too large, which is safe.
func Since(t time.Time) time.Duration { return Between(t, time.Now()) }

// Between is Since with another time for now.
func Between(t, now time.Time) time.Duration {
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}
