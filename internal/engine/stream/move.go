package stream

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/source"
)

// Exchange is how the streams of a set come to another connection to the same cluster.
type Exchange struct {
	// Do makes the other connection that of all later requests. It is called once, when each
	// stream has been tried, with the set's lock held: it returns at once.
	Do func()
	// Elsewhere says that the other connection has another address: what answers there may be the
	// cluster as restored from a backup. Each stream asks for the newest version there.
	Elsewhere bool
	// Unlike says that files of warm starts belong to the former connection alone. What is held then
	// comes from both, and is kept in files after the next list.
	Unlike bool
}

// Move moves the streams to another connection. Requests that are made with ctx go over that one.
//
//  1. Each stream is tried: its watch is opened there, at its position. A stream that has none yet
//     asks for a list of one object. If one is refused there, and not here, that is the error, and
//     nothing has changed.
//  2. Exchange.Do is called. No stream has begun meanwhile that was not tried.
//  3. Each stream ends its old watch and reads the one that is open already. Both have what
//     happened in between; what comes twice is old news (store.stale). A stream without an open
//     watch opens one, or goes on with its list.
//
// Stores stay, so nothing that is shown goes empty or back. The objects of a stream that fails
// later stay as well: it is then like one whose watch has ended.
func (s *Set) Move(ctx context.Context, to Exchange) error {
	t := &trial{set: s, to: to, tried: make(map[*stream]*opened)}
	for {
		untried, err := t.exchange()
		if err == nil && len(untried) > 0 {
			err = t.try(ctx, untried)
		}
		switch {
		case err != nil:
			t.end()
			return err
		case len(untried) == 0:
			for st, w := range t.tried {
				st.reflector.move(w)
			}
			return nil
		}
	}
}

// Bound returns a context that ends with ctx or with the set, then with [ErrClosed] as its cause.
func (s *Set) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	free := context.AfterFunc(s.ctx, func() { cancel(ErrClosed) })
	if s.ctx.Err() != nil {
		cancel(ErrClosed) // at once
	}
	return ctx, func() {
		free()
		cancel(nil)
	}
}

// trialsAtOnce is how many streams are tried at a time.
const trialsAtOnce = 16

// trial is the streams' trial of another connection, before it is used. One goroutine has it.
type trial struct {
	set   *Set
	to    Exchange
	tried map[*stream]*opened // what was opened, nil for nothing
}

// exchange returns the streams that were not tried yet. If there is none, the connection is
// exchanged.
func (t *trial) exchange() (untried []*stream, err error) {
	s := t.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	for _, st := range s.streams {
		if _, tried := t.tried[st]; !tried {
			untried = append(untried, st)
		}
	}
	if len(untried) == 0 {
		for _, st := range s.streams {
			if t.to.Unlike {
				st.disown()
			}
		}
		t.to.Do()
	}
	return untried, nil
}

// try tries some streams side by side. The first error ends it.
func (t *trial) try(ctx context.Context, streams []*stream) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watches := make([]*opened, len(streams))
	turns := make(chan struct{}, trialsAtOnce)
	var all sync.WaitGroup
	for i, st := range streams {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			var err error
			if watches[i], err = st.reflector.try(ctx, t.to.Elsewhere); err != nil && !st.fares(err) {
				cancel(st.requests.Named(err)) // the first one counts
			}
		})
	}
	all.Wait()
	for i, st := range streams {
		t.tried[st] = watches[i]
	}
	return context.Cause(ctx)
}

// end ends the watches that are not needed.
func (t *trial) end() {
	for _, w := range t.tried {
		w.Stop()
	}
}

// fares reports whether the stream fares no better now: an error over another connection says
// nothing against that one then. A refusal of the credentials always does.
func (s *stream) fares(err error) bool {
	s.mu.Lock()
	now := s.health.err
	s.mu.Unlock()
	switch {
	case now == nil, apierrors.IsUnauthorized(err):
		return false
	case errors.Is(err, source.ErrNoAnswer):
		return errors.Is(now, source.ErrNoAnswer)
	}
	reason := apierrors.ReasonForError(err)
	return reason != metav1.StatusReasonUnknown && reason == apierrors.ReasonForError(now)
}

// opened is a watch that was opened over another connection. A nil one is none.
type opened struct {
	*dialled
	lists int // how many lists the stream had taken in before
}

// Stop ends the watch.
func (o *opened) Stop() {
	if o != nil {
		o.dialled.Stop()
	}
}

// handover is what a reflector is handed when the connection is exchanged. Its lock guards it.
type handover struct {
	next  *opened // to be read in place of the watch that there is
	lists int     // how many lists were taken in
	ended bool    // the reflector has ended: nobody will read
}

// try opens the target's watch over the connection of ctx. The watch outlives ctx. It is nil if
// the target has no position yet, or if its position is of no use there; that is no error. Any
// goroutine may call it.
func (f *reflector) try(ctx context.Context, probe bool) (*opened, error) {
	f.mu.Lock()
	lists := f.hand.lists
	f.mu.Unlock()
	resume := f.target.position()
	if !coherence.Comparable(resume) {
		_, err := f.newest(ctx)
		return nil, err
	}
	if probe {
		atLeastRV := f.target.floor()
		if rv, err := f.newest(ctx); err != nil || coherence.Newer(atLeastRV, rv) {
			return nil, err // if it is older: the reflector asks again, and finds out why
		}
	}
	var w *dialled
	err := source.Patiently(ctx, func() (err error) {
		w, err = f.dialApart(ctx, f.requests.WatchFrom(resume))
		return err
	})
	switch {
	case source.Expired(err):
		return nil, nil // a list is next, over any connection
	case err != nil:
		return nil, err
	}
	return &opened{w, lists}, nil
}

// dialApart opens a watch that outlives ctx.
func (f *reflector) dialApart(ctx context.Context, o metav1.ListOptions) (*dialled, error) {
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

// move tells the reflector that the connection was exchanged, and hands it a watch that is open
// over the new one, if there is one. Any goroutine may call it.
func (f *reflector) move(w *opened) {
	f.mu.Lock()
	if w != nil && (f.hand.ended || f.hand.lists != w.lists) {
		defer w.Stop() // a list has come since, perhaps of a new history
		w = nil
	}
	unused := f.hand.next
	f.hand.next = w
	f.moves.Add(1) // under the lock: handed gives the watch this number
	f.mu.Unlock()
	unused.Stop()
	select {
	case f.moved <- struct{}{}:
	default: // one waits already
	}
}

// handed returns the watch that move has handed over, nil if there is none.
func (f *reflector) handed() (w *dialled) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hand.next != nil {
		w = f.hand.next.dialled
		w.move = f.moves.Load()
	}
	f.hand.next = nil
	return w
}

// outdated ends a watch that move has handed over: a list has come since.
func (f *reflector) outdated() {
	f.mu.Lock()
	f.hand.lists++
	unused := f.hand.next
	f.hand.next = nil
	f.mu.Unlock()
	unused.Stop()
}

// end ends a watch that nobody will read.
func (f *reflector) end() {
	f.mu.Lock()
	f.hand.ended = true
	unused := f.hand.next
	f.hand.next = nil
	f.mu.Unlock()
	unused.Stop()
}

// exchange returns a watch to be read in place of one that was opened before a move.
func (f *reflector) exchange(ctx context.Context) (*dialled, error) {
	if w := f.handed(); w != nil {
		f.target.opened(w.FromRV)
		return w, nil
	}
	return f.open(ctx, ending{bad: true})
}
