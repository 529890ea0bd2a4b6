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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
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

func TestSyncDoesNotWaitForAStreamThatHasEnded(t *testing.T) {
	bubble(t, Config{StreamLists: true}, func(t *testing.T, s *sim, streams *Streams) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		synctest.Wait()
		s.delay = func(string) time.Duration { return time.Hour }
		s.create("as", thing("x"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- streams.Sync(ctx) }()
		synctest.Wait()
		a.Close()
		assert.NoError(t, <-done)
	})
}

func TestG4ASlowListIsNotTakenForARestoredServer(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *sim, streams *Streams) {
		s.create("as", thing("x"))
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.listAnswer = func(string) time.Duration { return time.Minute }
		s.mu.Lock()
		s.oldest = s.rev + 1
		s.mu.Unlock()
		s.cut()
		after(10 * second) // the relist is under way, as of now
		s.listAnswer = nil
		s.create("bs", thing("y")) // moves the server's version
		require.NoError(t, streams.Sync(t.Context()))
		o := own{s, streams}
		o.put("as", thing("mine"), 0)
		for range 20 {
			after(10 * second)
			synctest.Wait()
			update(t, a, &snap)
			require.Equal(t, []string{"mine", "x"}, names(snap.A))
		}
	})
}

func TestG4AnUnsettledDeletionIsInTheStatus(t *testing.T) {
	q := simQuery("A", "as")
	q.Fields, _ = fields.ParseSelector("spec.node=")
	bubble(t, Config{StreamLists: true}, func(t *testing.T, s *sim, streams *Streams) {
		s.create("as", thing("x"))
		a := watching(t, streams, Options{}, q)
		synctest.Wait()
		s.delay = func(string) time.Duration { return time.Minute }
		s.fail = func(verb, _ string) error {
			if verb == "list" {
				return apierrors.NewInternalError(errors.New("gone"))
			}
			return nil
		}
		require.True(t, own{s, streams}.delete("as", "x", 0, false))
		assert.Equal(t, 1, a.Status()[0].Unsettled)
		s.fail = nil
		after(time.Hour)
		synctest.Wait()
		s.bookmarks()
		after(time.Hour)
		synctest.Wait()
		assert.Zero(t, a.Status()[0].Unsettled)
	})
}
