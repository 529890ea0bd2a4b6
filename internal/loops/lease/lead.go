package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/kates-go/kates/internal/loops/fence"
)

// ErrLost is the error of a leader that has lost its lease.
var ErrLost = errors.New("leadership lost")

// Work is what only the leader does, and what a follower stays ready to do. An error of any of its
// methods ends it. All methods return when their context ends.
type Work interface {
	// Prepare returns when the work could begin. The replica stands for the lease only then.
	Prepare(ctx context.Context) error
	// Follow stays ready until the lease is won.
	Follow(ctx context.Context, won <-chan struct{}) error
	// CatchUp returns when everything that a former leader has done is known.
	CatchUp(ctx context.Context) error
	// Lead does the work. The lease is held until it returns. The context named lease ends when
	// the lease is lost, and does not end with the context of [Lead]: it is for work that goes on
	// for a while after that.
	Lead(ctx, lease context.Context) error
}

// Lead stands for the lease and calls the work's methods one after another. It returns when the
// work has ended, with the work's error. If the lease was lost, and ctx has not ended, the error
// is an [ErrLost], too.
//
// The work's contexts end when the lease is lost, with a cause of [ErrLost]. The lease is held
// until the work has ended, and then released.
func Lead(ctx context.Context, config Config, work Work) error {
	if err := work.Prepare(ctx); err != nil {
		return err
	}
	candidate, err := Stand(ctx, config)
	if err != nil {
		return err
	}
	defer candidate.Resign()
	if err := work.Follow(ctx, candidate.Elected()); err != nil {
		return err
	}
	lease, cancel := whileLeading(context.WithoutCancel(ctx), candidate)
	defer cancel()
	leading, stop := until(ctx, lease)
	defer stop()
	if err = work.CatchUp(leading); err == nil {
		err = work.Lead(leading, lease)
	}
	cause := context.Cause(lease)
	if !errors.Is(cause, ErrLost) || ctx.Err() != nil {
		return err
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return cause
	}
	return fmt.Errorf("%w (%w)", cause, err)
}

// until returns lease, which also ends with ctx, and a function that releases what it holds.
func until(ctx, lease context.Context) (context.Context, func()) {
	both, cancel := context.WithCancelCause(lease)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return both, func() {
		stop()
		cancel(nil)
	}
}

// whileLeading returns ctx, which ends when the lease is lost. Writes under it are sent only while
// the lease is held. The function ends it, and waits for its goroutine.
func whileLeading(ctx context.Context, candidate *Candidate) (context.Context, func()) {
	leading, cancel := context.WithCancelCause(fence.With(ctx, candidate.Held))
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-candidate.Lost():
			cancel(fmt.Errorf("%w: %w", ErrLost, candidate.Err()))
		case <-leading.Done():
		}
	}()
	return leading, func() {
		cancel(nil)
		<-done
	}
}
