package kates

import (
	"context"
	"time"

	"github.com/kates-go/kates/internal/keyed"
)

// parts are partitions as the watch of a loop: what package keyed wants beyond what is public.
type parts struct{ *partitioned }

var (
	_ keyed.Watch = parts{}
	_ keyed.Keys  = parts{}
)

// Changed implements [keyed.Watch].
func (p parts) Changed() <-chan struct{} { return p.all.Changed() }

// Refresh implements [keyed.Watch].
func (p parts) Refresh(ctx context.Context) error {
	if err := p.all.Refresh(ctx); err != nil {
		return p.because(err)
	}
	return nil
}

// Sync implements [keyed.Watch].
func (p parts) Sync(ctx context.Context) error { return p.all.Sync(ctx) }

// Done implements [keyed.Watch].
func (p parts) Done() <-chan struct{} { return p.all.Done() }

// Err implements [keyed.Watch].
func (p parts) Err() error { return p.all.Err() }

// eachTurn is a turn of partitions in a loop.
type eachTurn[S any] struct{ *Turn[S] }

// Name implements [keyed.Turn].
func (t eachTurn[S]) Name() string { return t.Key }

// Again implements [keyed.Turn].
func (t eachTurn[S]) Again(after time.Duration) {
	if t.end(true) {
		t.turn.Again(after)
	}
}

// Keep implements [keyed.Turn].
func (t eachTurn[S]) Keep() {
	if t.end(false) {
		t.turn.Keep()
	}
}

// Drop implements [keyed.Turn].
func (t eachTurn[S]) Drop() {
	if t.end(!t.Gone) {
		t.turn.Done(nil)
	}
}

// Yield implements [keyed.Turn].
func (t eachTurn[S]) Yield() {
	if t.end(true) {
		t.turn.Keep() // also a key that is gone
		t.of.Activate(t.Key)
	}
}
