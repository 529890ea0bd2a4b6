package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/kates-go/kates/internal/fence"
)

// ErrLost is the error of who led and does so no more.
var ErrLost = errors.New("leadership lost")

// Work is what the leader alone does, and a follower stays ready to do. An error of any of its methods ends it; all
// return when their context ends.
type Work interface {
	// Prepare returns when the work could be done. Only then the lease is stood for.
	Prepare(ctx context.Context) error
	// Follow stays ready until the lease is won.
	Follow(ctx context.Context, won <-chan struct{}) error
	// CatchUp returns when all that a former leader has done is known.
	CatchUp(ctx context.Context) error
	// Lead does the work. The lease is held until it returns; the context called lease ends when it is lost, and not when the one of
	// [Lead] does: for what goes on for a while then.
	Lead(ctx, lease context.Context) error
}

// Lead has the work done by the leader. It returns when the work has ended: with its error; with that and [ErrLost] if the
// lease was lost, but ctx has not ended. While the work leads, its context ends with the lease, and [ErrLost] is its cause.
// The lease is held until the work has ended, and then released.
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

// until is lease, ended with ctx too.
func until(ctx, lease context.Context) (context.Context, func()) {
	both, cancel := context.WithCancelCause(lease)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return both, func() {
		stop()
		cancel(nil)
	}
}

// whileLeading is ctx as long as the candidate leads, which writes under it are bound to. The function ends it, and what waits for its end.
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
