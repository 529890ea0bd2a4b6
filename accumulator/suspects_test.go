package accumulator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestG4SyncEndsNoWriteBeforeItsEvents(t *testing.T) {
	bubble(t, Config{StreamLists: true}, func(t *testing.T, s *sim, streams *Streams) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.delay = func(string) time.Duration { return 10 * second }
		o := own{s, streams}
		o.put("as", thing("x"), 0)
		require.True(t, o.delete("as", "x", 0, true))
		require.NoError(t, streams.Sync(t.Context()))
		for range 60 {
			after(second)
			synctest.Wait()
			update(t, a, &snap)
			require.Empty(t, snap.A, "deleted by us")
		}
	})
}

func TestAKindThatJoinsAStreamOfOthersIsSignalled(t *testing.T) {
	for _, failure := range []error{ErrNotServed, errors.New("discovery is down")} {
		t.Run(failure.Error(), func(t *testing.T) {
			bubble(t, Config{StreamLists: true}, func(t *testing.T, s *sim, streams *Streams) {
				s.create("bs", thing("z"))
				watching(t, streams, Options{}, simQuery("B", "bs"))
				var found atomic.Bool
				q := simQuery("B", "bs")
				q.Optional = true
				q.Resolve = func(context.Context) (Resource, error) {
					if !found.Load() {
						return Resource{}, fmt.Errorf("bs: %w", failure)
					}
					return simResource("bs"), nil
				}
				a := watching(t, streams, Options{}, simQuery("A", "as"), q)
				var snap two
				if signalled(a) {
					update(t, a, &snap)
				}
				found.Store(true)
				after(10 * second)
				require.True(t, signalled(a))
				update(t, a, &snap)
				assert.Len(t, snap.B, 1)
			})
		})
	}
}
