package streamset

import (
	"context"
	"sync"

	"github.com/kates-go/kates/internal/engine/reflector"
	"github.com/kates-go/kates/internal/engine/stream"
)

// Exchange is how the streams of a set come to another connection to the same cluster.
type Exchange struct {
	// Do makes the other connection that of all later requests. It is called once, when each
	// stream has been tried, with the set's lock held: it returns at once.
	Do func()
	// Elsewhere says that the other connection has another address: what answers there may be the
	// cluster as restored from a backup. Each stream asks for the newest version there.
	Elsewhere bool
	// Unlike says that files of warm starts belong to the former connection alone. What is held
	// then comes from both, and is kept in files after the next list.
	Unlike bool
}

// Move moves the streams to another connection. Requests that are made with ctx go over that one.
//
//  1. Each stream is tried: its watch is opened there, at its position. A stream that has none yet
//     asks for a list of one object. If one is refused there, and not here, that is the error, and
//     nothing has changed.
//  2. Exchange.Do is called. No stream has begun meanwhile that was not tried.
//  3. Each stream ends its old watch and reads the one that is open already. Both have what
//     happened in between; what comes twice is old news (Store.Stale). A stream without an open
//     watch opens one, or goes on with its list.
//
// Stores stay, so nothing that is shown goes empty or back. The objects of a stream that fails
// later stay as well: it is then like one whose watch has ended.
func (s *Set) Move(ctx context.Context, to Exchange) error {
	t := &trial{set: s, to: to, tried: make(map[*stream.Stream]*reflector.Opened)}
	for {
		untried, err := t.exchange()
		if err == nil && len(untried) > 0 {
			err = t.try(ctx, untried)
		}
		switch {
		case err != nil:
			t.stopWatches()
			return err
		case len(untried) == 0:
			for st, w := range t.tried {
				st.HandOver(w)
			}
			return nil
		}
	}
}

// Bound returns a context that ends with ctx or with the set, then with [stream.ErrClosed] as its
// cause.
func (s *Set) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	free := context.AfterFunc(s.ctx, func() { cancel(stream.ErrClosed) })
	if s.ctx.Err() != nil {
		cancel(stream.ErrClosed) // at once
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
	tried map[*stream.Stream]*reflector.Opened // what was opened, nil for nothing
}

// exchange returns the streams that were not tried yet. If there is none, the connection is
// exchanged.
func (t *trial) exchange() (untried []*stream.Stream, err error) {
	s := t.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, stream.ErrClosed
	}
	for _, m := range s.streams {
		if _, tried := t.tried[m.Stream]; !tried {
			untried = append(untried, m.Stream)
		}
	}
	if len(untried) == 0 {
		for _, st := range s.streams {
			if t.to.Unlike {
				st.Keeper().Disown()
			}
		}
		t.to.Do()
	}
	return untried, nil
}

// try tries some streams side by side. The first error ends it.
func (t *trial) try(ctx context.Context, streams []*stream.Stream) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watches := make([]*reflector.Opened, len(streams))
	turns := make(chan struct{}, trialsAtOnce)
	var all sync.WaitGroup
	for i, st := range streams {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			var err error
			if watches[i], err = st.OpenElsewhere(ctx, t.to.Elsewhere); err != nil {
				cancel(err) // the first one counts
			}
		})
	}
	all.Wait()
	for i, st := range streams {
		t.tried[st] = watches[i]
	}
	return context.Cause(ctx)
}

// stopWatches ends the watches that are not needed.
func (t *trial) stopWatches() {
	for _, w := range t.tried {
		w.Stop()
	}
}
