package keyed

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/internal/loops/attempts"
	"github.com/kates-go/kates/internal/loops/lease"
)

// Leader is the work of a replica that stands for election: it follows until it is elected.
type Leader struct {
	Watch Watch
	// Triggered wakes the leader for its triggers; nil if they do not come here.
	Triggered <-chan struct{}
	Log       logr.Logger
	Backoff   attempts.Backoff
	// Work calls the function, with contexts as in [lease.Work].
	Work func(ctx, lease context.Context) error
}

var _ lease.Work = Leader{}

// Prepare follows until there is a complete snapshot.
func (l Leader) Prepare(ctx context.Context) error {
	return l.follow(ctx, nil, func() bool { return l.Watch.Ready() == nil })
}

// Follow keeps the snapshot up to date.
func (l Leader) Follow(ctx context.Context, won <-chan struct{}) error {
	return l.follow(ctx, won, func() bool {
		select {
		case <-won:
			return true
		default:
			return false
		}
	})
}

func (l Leader) follow(ctx context.Context, wake <-chan struct{}, until func() bool) error {
	for !until() {
		if err := l.Watch.Refresh(ctx); err != nil {
			return err
		}
		select {
		case <-l.Watch.Changed():
		case <-l.Triggered:
		case <-wake:
		case <-ctx.Done():
		}
	}
	return nil
}

// CatchUp waits until the watch is as new as the server is now.
func (l Leader) CatchUp(ctx context.Context) error {
	for failures := 1; ; failures++ {
		err := l.Watch.Sync(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || l.Watch.Err() != nil {
			return err
		}
		if failures == 1 {
			l.Log.Error(err, "cannot learn what the former leader has done, will keep trying")
		}
		Pause(ctx, l.Backoff.After(failures), l.Watch.Done())
	}
}

// Lead calls the function.
func (l Leader) Lead(ctx, lease context.Context) error { return l.Work(ctx, lease) }

// Pause returns after a while, at the end of ctx, or when end is closed.
func Pause(ctx context.Context, d time.Duration, end <-chan struct{}) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-end:
	case <-ctx.Done():
	}
}
