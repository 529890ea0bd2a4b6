package reflector

import (
	"context"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/source"
)

// handover is what a reflector gets when the connection to the server is exchanged. The
// reflector's lock guards next, lists and closed.
type handover struct {
	next   *Opened // to be read in place of the watch that there is
	lists  int     // how many lists were committed
	closed bool    // the reflector has ended: nobody will read

	moves atomic.Int64  // how often the connection was exchanged
	moved chan struct{} // gets a signal each time
}

// Opened is a watch that was opened over another connection. A nil one is none.
type Opened struct {
	*dialled
	lists int // how many lists were committed before
}

// Stop ends the watch.
func (o *Opened) Stop() {
	if o != nil {
		o.dialled.Stop()
	}
}

// OpenElsewhere opens the sink's watch over the connection of ctx. The watch outlives ctx. It is
// nil if the sink has no position yet, or if its position is of no use there; that is no error.
// probe: the server's newest version is asked for before. Any goroutine may call it.
func (f *Reflector) OpenElsewhere(ctx context.Context, probe bool) (*Opened, error) {
	f.mu.Lock()
	lists := f.hand.lists
	f.mu.Unlock()
	at := f.sink.Progress()
	if !coherence.Comparable(at.PositionRV) {
		_, err := f.newest(ctx)
		return nil, err
	}
	if probe {
		if rv, err := f.newest(ctx); err != nil || coherence.Newer(at.FloorRV, rv) {
			return nil, err // if it is older: the reflector asks again, and finds out why
		}
	}
	var w *dialled
	err := source.Patiently(ctx, func() (err error) {
		w, err = f.dialApart(ctx, f.Requests.WatchFrom(at.PositionRV))
		return err
	})
	switch {
	case source.Expired(err):
		return nil, nil // a list is next, over any connection
	case err != nil:
		return nil, err
	}
	return &Opened{w, lists}, nil
}

// dialApart opens a watch that outlives ctx.
func (f *Reflector) dialApart(ctx context.Context, o metav1.ListOptions) (*dialled, error) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	apart := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	w, err := f.dial(life, o)
	if err == nil && !apart() {
		w.Stop()
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	return w, nil
}

// HandOver says that the connection was exchanged, and hands over a watch that is open
// on the new one; nil: there is none. Any goroutine may call it.
func (f *Reflector) HandOver(w *Opened) {
	f.mu.Lock()
	if w != nil && (f.hand.closed || f.hand.lists != w.lists) {
		defer w.Stop() // a list has come since, perhaps of a new history
		w = nil
	}
	unused := f.hand.next
	f.hand.next = w
	f.hand.moves.Add(1) // under the lock: handedOver gives the watch this number
	f.mu.Unlock()
	unused.Stop()
	select {
	case f.hand.moved <- struct{}{}:
	default: // one waits already
	}
}

// handedOver returns the watch that HandOver has handed over, nil if there is none.
func (f *Reflector) handedOver() (w *dialled) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hand.next != nil {
		w = f.hand.next.dialled
		w.move = f.hand.moves.Load()
	}
	f.hand.next = nil
	return w
}

// movedSince reports whether the connection was exchanged since a watch was opened. If it was not,
// the watch goes on, and one that was handed over for it ends: nobody would read it in time.
func (f *Reflector) movedSince(w *dialled) bool {
	f.mu.Lock()
	if w.move != f.hand.moves.Load() {
		f.mu.Unlock()
		return true
	}
	unused := f.hand.next
	f.hand.next = nil
	f.mu.Unlock()
	unused.Stop()
	return false
}

// dropOutdated ends a watch that HandOver has handed over: a list has come since.
func (f *Reflector) dropOutdated() {
	f.mu.Lock()
	f.hand.lists++
	unused := f.hand.next
	f.hand.next = nil
	f.mu.Unlock()
	unused.Stop()
}

// closeHandover ends a watch that nobody will read.
func (f *Reflector) closeHandover() {
	f.mu.Lock()
	f.hand.closed = true
	unused := f.hand.next
	f.hand.next = nil
	f.mu.Unlock()
	unused.Stop()
}

// exchange returns a watch to be read in place of one that was opened before a move.
func (f *Reflector) exchange(ctx context.Context) (*dialled, error) {
	if w := f.handedOver(); w != nil {
		f.sink.Opened(w.FromRV)
		return w, nil
	}
	return f.open(ctx, moved)
}
