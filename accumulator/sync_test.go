package accumulator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/accumulator/stream"
)

func TestSyncReturnsWhenTheStreamsAreAsNewAsTheServer(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		a := watching(t, streams, Options{}, simQuery("A", "as"), simQuery("B", "bs"))
		var snap two
		synctest.Wait()
		update(t, a, &snap)
		require.NoError(t, streams.Sync(t.Context()), "also where nothing has happened for long")
		s.delay = func(string) time.Duration { return 10 * second }
		s.create("as", thing("y"))
		s.remove("as", "x")
		start := time.Now()
		require.NoError(t, streams.Sync(t.Context()))
		assert.Equal(t, 20*second, time.Since(start))
		update(t, a, &snap)
		assert.Equal(t, []string{"y"}, names(snap.A))
		s.create("as", thing("z"))
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		assert.ErrorIs(t, streams.Sync(ctx), context.DeadlineExceeded)
	})
}

func TestG4SyncEndsNoWriteBeforeItsEvents(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
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

func TestSyncDoesNotWaitForAStreamThatHasEnded(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
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

func TestG5WhatSyncHasSeenIsNotTakenBackByTheEventsBefore(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.delay = func(string) time.Duration { return time.Minute }
		s.create("as", thing("passing"))
		s.remove("as", "passing")
		require.NoError(t, streams.Sync(t.Context()), "the store is what the server has")
		for range 200 {
			after(second)
			synctest.Wait()
			assert.False(t, update(t, a, &snap).Changed)
		}
	})
}

func TestSyncEndsWithTheEchoOfAnOwnWriteThoughItChangesNothing(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		o := own{s, streams}
		watching(t, streams, Options{}, simQuery("A", "as"))
		synctest.Wait()
		o.late(10 * second)
		o.put("as", thing("x"), 0)
		s.create("bs", thing("y")) // the list's version is then beyond the echo's
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		require.NoError(t, streams.Sync(ctx))
		assert.Equal(t, 10*second, time.Since(start))
	})
}

func TestSyncOfAnAccumulatorIsOfItsOwnStreamsAndTakesARefusalThatIsRepeatedForAnAnswer(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		watching(t, streams, Options{}, simQuery("B", "bs"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.delay = func(resource string) time.Duration {
			if resource == "bs" {
				return time.Hour
			}
			return 10 * second
		}
		s.create("as", thing("x"))
		s.create("bs", thing("y"))
		start := time.Now()
		require.NoError(t, a.Sync(t.Context()))
		assert.Equal(t, 10*second, time.Since(start), "that of the other is later")
		update(t, a, &snap)
		assert.Equal(t, []string{"x"}, names(snap.A))

		refused := 0
		s.failing(func(_, resource string) error {
			refused++
			return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
		})
		require.NoError(t, a.Sync(t.Context()))
		assert.Equal(t, 2, refused)
		s.failing(func(string, string) error { return apierrors.NewInternalError(errors.New("broken")) })
		assert.ErrorContains(t, a.Sync(t.Context()), "broken", "an outage is no answer")
	})
}
