package keyed

import (
	"context"
	"sync"
	"time"
)

// worker takes turns until the context named taking ends, or an error ends the loop. Calls have
// the context named work.
func (l *Loop[T]) worker(taking, work context.Context) error {
	for {
		moment := l.gains()
		turn, err := l.Source.Next(taking)
		if err != nil {
			return err
		}
		if taking.Err() != nil { // no new work
			turn.Done(nil)
			return taking.Err()
		}
		if err := l.take(work, turn, moment); err != nil {
			return err
		}
	}
}

// take calls the work for a turn, which was asked for at a moment, and ends the turn.
func (l *Loop[T]) take(ctx context.Context, turn T, moment uint64) error {
	key := turn.Name()
	l.unqueue(key)
	ctx, leave, whose := l.enter(ctx, key, moment)
	if whose == Stale {
		turn.Yield()
		return nil
	}
	// The key is left before its turn ends: then another worker may enter it.
	leave = sync.OnceFunc(leave)
	defer leave()
	if !l.Work.Begin(turn, whose == Ours) {
		l.Forget(key)
		leave()
		turn.Drop()
		return nil
	}
	ctx = turn.Context(ctx)
	t := l.tries(key)
	o, _ := t.Call(ctx, turn.Ready(), func(ctx context.Context) error {
		l.running.Add(1)
		defer l.running.Add(-1)
		return l.Work.Call(ctx, turn, t.failures+1)
	})
	l.keep(key, t)
	leave()
	if o.Requeue {
		l.requeue(key, o.Again)
	}
	return l.Work.End(turn, o)
}

func (l *Loop[T]) gains() uint64 {
	if l.Shards == nil {
		return 0
	}
	return l.Shards.Gains()
}

// enter begins the work for a key, if the key is this replica's.
func (l *Loop[T]) enter(ctx context.Context, key string, moment uint64) (inner context.Context, leave func(), whose Whose) {
	if l.Shards == nil {
		return ctx, func() {}, Ours
	}
	inner, leave, whose = l.Shards.Enter(ctx, key, moment)
	if whose != Ours {
		return ctx, func() {}, whose
	}
	return inner, leave, Ours
}

// tries are those of a key that has a turn.
func (l *Loop[T]) tries(key string) *Tries {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.failing[key]; t != nil {
		return t
	}
	return &Tries{Policy: &l.Policy, Log: l.Log.WithValues("key", key), Calls: l.Calls, key: key}
}

// keep remembers the tries of a key as long as it fails.
func (l *Loop[T]) keep(key string, t *Tries) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.failures == 0 {
		delete(l.failing, key)
		return
	}
	if l.failing == nil {
		l.failing = make(map[string]*Tries)
	}
	l.failing[key] = t
}

// Forget forgets the failures of a key, and the turn that it has asked for. Whoever has the key's
// turn calls it.
func (l *Loop[T]) Forget(key string) {
	l.unqueue(key)
	l.Calls.forget(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failing, key)
}

// requeue gives a key another turn after a time. An earlier turn takes its place.
func (l *Loop[T]) requeue(key string, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	if l.queued == nil {
		l.queued = make(map[string]*time.Timer)
	}
	l.queued[key] = time.AfterFunc(after, func() { l.Source.Trigger(key) })
}

func (l *Loop[T]) unqueue(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if timer := l.queued[key]; timer != nil {
		timer.Stop()
		delete(l.queued, key)
	}
}

// unqueueAll ends the timers.
func (l *Loop[T]) unqueueAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, timer := range l.queued {
		timer.Stop()
	}
}
