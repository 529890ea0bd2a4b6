package accumulator

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/test/suite/sim"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
)

func TestSyncReturnsWhenTheStreamsAreAsNewAsTheServer(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), sim.Query("B", "bs"))
		var snap two
		synctest.Wait()
		update(t, a, &snap)
		require.NoError(t, streams.Sync(t.Context()), "also where nothing has happened for long")
		s.Delay = func(string) time.Duration { return 10 * second }
		s.Create("as", sim.Thing("y"))
		s.Remove("as", "x")
		start := time.Now()
		require.NoError(t, streams.Sync(t.Context()))
		assert.Equal(t, 20*second, time.Since(start))
		update(t, a, &snap)
		assert.Equal(t, []string{"y"}, sim.Names(snap.A))
		s.Create("as", sim.Thing("z"))
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		assert.ErrorIs(t, streams.Sync(ctx), context.DeadlineExceeded)
	})
}

func TestG4SyncEndsNoWriteBeforeItsEvents(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.Delay = func(string) time.Duration { return 10 * second }
		o := sim.NewClient(s, streams)
		o.Put("as", sim.Thing("x"), 0)
		require.True(t, o.Delete("as", "x", 0, true))
		require.NoError(t, streams.Sync(t.Context()))
		for range 60 {
			sim.After(second)
			synctest.Wait()
			update(t, a, &snap)
			require.Empty(t, snap.A, "deleted by us")
		}
	})
}

func TestSyncDoesNotWaitForAStreamThatHasEnded(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		s.Delay = func(string) time.Duration { return time.Hour }
		s.Create("as", sim.Thing("x"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- streams.Sync(ctx) }()
		synctest.Wait()
		a.Close()
		assert.NoError(t, <-done)
	})
}

func TestG5WhatSyncHasSeenIsNotTakenBackByTheEventsBefore(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.Delay = func(string) time.Duration { return time.Minute }
		s.Create("as", sim.Thing("passing"))
		s.Remove("as", "passing")
		require.NoError(t, streams.Sync(t.Context()), "the store is what the server has")
		for range 200 {
			sim.After(second)
			synctest.Wait()
			assert.False(t, update(t, a, &snap).Changed)
		}
	})
}

func TestSyncEndsWithTheEchoOfAnOwnWriteThoughItChangesNothing(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		o := sim.NewClient(s, streams)
		watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		o.Late(10 * second)
		o.Put("as", sim.Thing("x"), 0)
		s.Create("bs", sim.Thing("y")) // the list's version is then beyond the echo's
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		require.NoError(t, streams.Sync(ctx))
		assert.Equal(t, 10*second, time.Since(start))
	})
}

func TestSyncOfAnAccumulatorIsOfItsOwnStreamsAndTakesARefusalThatIsRepeatedForAnAnswer(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		watching(t, streams, collect.Options{}, sim.Query("B", "bs"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.Delay = func(resource string) time.Duration {
			if resource == "bs" {
				return time.Hour
			}
			return 10 * second
		}
		s.Create("as", sim.Thing("x"))
		s.Create("bs", sim.Thing("y"))
		start := time.Now()
		require.NoError(t, a.Sync(t.Context()))
		assert.Equal(t, 10*second, time.Since(start), "that of the other is later")
		update(t, a, &snap)
		assert.Equal(t, []string{"x"}, sim.Names(snap.A))

		var refused atomic.Int32
		s.Failing(func(_, resource string) error {
			refused.Add(1)
			return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
		})
		require.NoError(t, a.Sync(t.Context()))
		assert.EqualValues(t, 8, refused.Load(), "what is shown is worth some seconds")
		s.Failing(func(string, string) error { return apierrors.NewInternalError(errors.New("broken")) })
		assert.ErrorContains(t, a.Sync(t.Context()), "broken", "an outage is no answer")
	})
}

// The version that Sync has moved the stream to is from a list. The watch has yet to come to it.
func TestABookmarkFromBeforeASyncIsNoLie(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		s.Create("bs", sim.Thing("y"))
		s.Late(10 * second)
		s.Bookmarks()
		synctest.Wait()
		s.Create("bs", sim.Thing("z"))
		require.NoError(t, streams.Sync(t.Context()))
		at := a.Status()[0].Version
		for range 20 {
			sim.After(second)
			synctest.Wait()
			st := a.Status()[0]
			require.Equal(t, stream.Synced, st.State, st.Error)
			require.Equal(t, at, st.Version)
		}
	})
}
