package collect

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
)

// nothing is what a reader of no query has.
type nothing struct{}

func (nothing) Close()          {}
func (nothing) Shares(any) bool { return false }

func TestG11NoTimerIsLeftAtTheEnd(t *testing.T) {
	for _, end := range []string{"cancel", "close"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				streams := streamset.New(stream.Config{})
				defer streams.Close()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c, err := New(ctx, streams, nil, Options{Overdue: time.Hour}, Reader[nothing]{User: nothing{}, Shown: func() nothing { return nothing{} }})
				require.NoError(t, err)
				require.NoError(t, c.Start(ctx))
				if end == "cancel" {
					cancel()
				} else {
					c.Close()
				}
				synctest.Wait()
				assert.False(t, c.overdue.Stop())
			})
		})
	}
}

// TestG2AReaderThatTakesASnapshotBeforeTheFirstSignalIsGivenThatSignal: the interval begins with
// it, so a change that follows at once waits for the end of the interval.
func TestG2AReaderThatTakesASnapshotBeforeTheFirstSignalIsGivenThatSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := streamset.New(stream.Config{})
		defer streams.Close()
		c, err := New(t.Context(), streams, nil, Options{Pace: Pace{Interval: time.Hour}},
			Reader[nothing]{User: nothing{}, Shown: func() nothing { return nothing{} }})
		require.NoError(t, err)
		require.True(t, c.Complete())
		c.Deliver(1) // the reader has not waited
		require.NoError(t, c.Start(t.Context()))
		defer c.Close()
		synctest.Wait()
		assert.Len(t, c.Changed(), 1)
		assert.Equal(t, time.Now(), c.Signalled())
	})
}
