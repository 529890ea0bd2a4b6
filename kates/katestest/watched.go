package katestest

import (
	"context"
	"fmt"
	"sync"
)

// watched is a lock, and a channel that is closed and replaced whenever what the lock guards has
// changed.
type watched struct {
	mu      sync.Mutex
	changed chan struct{}
}

// wake wakes everything that waits. Called with mu held.
func (w *watched) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// wait returns when the condition is true, which it asks at once and after each change. If ctx
// ends first, the error is its cause, and says what was waited for.
func (w *watched) wait(ctx context.Context, what string, condition func() bool) error {
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		}
	}
}
