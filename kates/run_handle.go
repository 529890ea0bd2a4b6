package kates

import (
	"context"
	"errors"

	"github.com/kates-go/kates/internal/lockorder"
)

// ErrNotRunning is the error of methods of a [Handle], or of a controller, outside of a run: before
// its watches have started, and after its end.
var ErrNotRunning = errors.New("it does not run")

// A Handle changes the queries of a [Run], a [RunEach] or a controller while it runs, and has its
// function called. It is an option of the run:
//
//	h := kates.NewHandle()
//	go func() { ended <- kates.Run(ctx, client, rebuild, h) }()
//	...
//	err := h.Replace(ctx,
//	    kates.Query{Name: "Ingresses", Namespaces: namespaces},
//	    kates.Query{Name: "Services", Namespaces: namespaces})
//
// A handle is of one run at a time. Each run begins with the queries of its options: what a handle
// has changed ends with the run. All methods are safe for concurrent use, also in the function of
// the run.
type Handle struct {
	mu      lockorder.Mutex[lockorder.RunHandle]
	claimed bool
	of      handled // nil outside of a run
}

// handled is what a handle controls.
type handled interface {
	Add(ctx context.Context, queries ...Query) error
	Remove(ctx context.Context, names ...string) error
	Replace(ctx context.Context, queries ...Query) error
	Trigger(keys ...string)
	TriggerAll()
	Ready() error
	Status() Status
}

// NewHandle makes a handle. The zero value is one, too.
func NewHandle() *Handle { return &Handle{} }

func (h *Handle) applyToRun(s *runSettings) {
	if h == nil {
		s.reject(errors.New("a handle is nil"))
		return
	}
	s.handles = append(s.handles, h)
}

// Add adds queries, for fields of the struct that have none: see [Snapshots.Add]. For a RunEach or
// a controller see [Partitions.Add].
func (h *Handle) Add(ctx context.Context, queries ...Query) error {
	return h.do(func(of handled) error { return of.Add(ctx, queries...) })
}

// Remove removes the queries of these names: see [Accumulator.Remove]. The root of a controller,
// and the last query with a Key of a RunEach, cannot be removed.
func (h *Handle) Remove(ctx context.Context, names ...string) error {
	return h.do(func(of handled) error { return of.Remove(ctx, names...) })
}

// Replace replaces the queries of these names, all in one snapshot: see [Accumulator.Replace] and
// [Snapshots.Replace]. For a RunEach or a controller see [Partitions.Replace].
func (h *Handle) Replace(ctx context.Context, queries ...Query) error {
	return h.do(func(of handled) error { return of.Replace(ctx, queries...) })
}

// Trigger has the function of a RunEach or a controller called for some keys, though nothing may
// have changed: see [Partitions.Trigger]. A Run has no keys: there it does nothing. Outside of a
// run it does nothing either: a run begins with a call, or one for each key.
func (h *Handle) Trigger(keys ...string) {
	_ = h.do(func(of handled) error {
		of.Trigger(keys...)
		return nil
	})
}

// TriggerAll has the function called for all keys, or, of a Run, called again.
func (h *Handle) TriggerAll() {
	_ = h.do(func(of handled) error {
		of.TriggerAll()
		return nil
	})
}

// Ready is nil once the first snapshot of the run is complete: see [Accumulator.Ready]. Outside of
// a run it is [ErrNotRunning].
func (h *Handle) Ready() error { return h.do(func(of handled) error { return of.Ready() }) }

// Status is the state of the run's watches: see [Accumulator.Status]. Outside of a run it is empty.
func (h *Handle) Status() (s Status) {
	_ = h.do(func(of handled) error {
		s = of.Status()
		return nil
	})
	return s
}

// do does something with what runs.
func (h *Handle) do(what func(handled) error) error {
	h.mu.Lock()
	of := h.of
	h.mu.Unlock()
	if of == nil {
		return ErrNotRunning
	}
	return what(of)
}

// take makes handles those of a run that begins. They are free after release.
func take(handles []*Handle) (release func(), err error) {
	var taken []*Handle
	release = func() {
		for _, h := range taken {
			h.set(false, nil)
		}
	}
	for _, h := range handles {
		h.mu.Lock()
		claimed := h.claimed
		h.claimed = true
		h.mu.Unlock()
		if claimed {
			release()
			return nil, errors.New("its handle is that of another run, which has not ended")
		}
		taken = append(taken, h)
	}
	return release, nil
}

// bind has handles control what runs.
func bind(handles []*Handle, of handled) {
	for _, h := range handles {
		h.set(true, of)
	}
}

func (h *Handle) set(claimed bool, of handled) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claimed, h.of = claimed, of
}
