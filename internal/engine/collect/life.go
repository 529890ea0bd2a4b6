package collect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// life is from the start of a collector to its end, which comes once.
type life struct {
	finished chan struct{} // closed at the end
	tasks    sync.WaitGroup

	mu lockorder.Mutex[lockorder.Life]
	// From begin on:
	cancel  context.CancelFunc // ends the goroutines
	unwatch func() bool        // stops the wait for the context
	overdue *time.Timer
	err     error // why it has ended
}

// begin returns a context that lasts until the end.
func (l *life) begin(ctx context.Context) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, l.cancel = context.WithCancel(ctx)
	return ctx
}

// watch calls end when ctx ends, and late once a time has passed, unless the end comes first.
func (l *life) watch(ctx context.Context, end func(cause error), after time.Duration, late func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.overdue = time.AfterFunc(after, late)
		l.unwatch = context.AfterFunc(ctx, func() { end(CauseOf(ctx)) })
	}
}

// Go runs a goroutine that Close waits for. After the end it runs nothing, and returns false.
func (l *life) Go(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return false
	}
	l.tasks.Go(f)
	return true
}

// Err is nil until the end. Then it is the cause: [stream.ErrClosed], or that of the context.
func (l *life) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Done is closed after the end.
func (l *life) Done() <-chan struct{} { return l.finished }

// end notes the end, and stops what runs. It returns false if there was one already.
func (l *life) end(cause error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return false
	}
	l.err = cause
	if l.unwatch != nil {
		l.unwatch()
	}
	if l.overdue != nil {
		l.overdue.Stop()
	}
	if l.cancel != nil {
		l.cancel()
	}
	return true
}

// CauseOf returns ctx's error with its cause. It still matches the context's error, whatever the
// cause.
func CauseOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(cause, err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
