package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// onMany runs a test with a watch of the objects x, y and z, which are more than a page. The
// server has a newer version, in which nothing of them has changed.
func onMany(t *testing.T, f func(t *testing.T, s *sim.Server, streams *streamset.Set, show func() []string)) {
	t.Helper()
	sim.Bubble(t, stream.Config{PageSize: 2}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		for _, name := range []string{"x", "y", "z"} {
			s.Create("as", sim.Thing(name))
		}
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		show := func() []string {
			synctest.Wait()
			update(t, a, &snap)
			return sim.Names(snap.A)
		}
		require.Equal(t, []string{"x", "y", "z"}, show())
		s.Create("bs", sim.Thing("other"))
		f(t, s, streams, show)
	})
}

// ownWatch delays the events of the watches that streams keep open.
func ownWatch(d time.Duration) func(*sim.Watch) time.Duration {
	return func(w *sim.Watch) time.Duration {
		if w.Short() {
			return 0
		}
		return d
	}
}

func TestSyncOfManyObjectsListsOneAndReadsAShortWatch(t *testing.T) {
	onMany(t, func(t *testing.T, s *sim.Server, streams *streamset.Set, show func() []string) {
		lists, start := opened(s), time.Now()
		require.NoError(t, streams.Sync(t.Context()))
		assert.Equal(t, second, time.Since(start), "the short watch ends with a bookmark")
		require.NoError(t, streams.Sync(t.Context()))
		assert.Equal(t, second, time.Since(start), "the stream is as new as the server")
		s.Touch("as", "x", 1)
		require.NoError(t, streams.Sync(t.Context()))
		assert.Equal(t, second, time.Since(start), "its watch says so")
		assert.Equal(t, lists, opened(s))
		assert.Empty(t, func() (short []*sim.Watch) {
			s.Mu.Lock()
			defer s.Mu.Unlock()
			for w := range s.Cuts {
				if w.Short() {
					short = append(short, w)
				}
			}
			return short
		}(), "short watches are closed")
	})
}

func TestG2SyncOfManyObjectsWaitsForWhatTheShortWatchHasTold(t *testing.T) {
	onMany(t, func(t *testing.T, s *sim.Server, streams *streamset.Set, show func() []string) {
		lists, start := opened(s), time.Now()
		s.DelayOf = ownWatch(10 * second)
		s.Create("as", sim.Thing("w"))
		s.Remove("as", "x")
		s.Create("bs", sim.Thing("another"))
		require.NoError(t, streams.Sync(t.Context()))
		assert.Equal(t, 20*second, time.Since(start))
		assert.Equal(t, []string{"w", "y", "z"}, show())
		assert.Equal(t, lists, opened(s))
	})
}

func TestG4SyncOfManyObjectsEndsNoWriteBeforeItsEvents(t *testing.T) {
	onMany(t, func(t *testing.T, s *sim.Server, streams *streamset.Set, show func() []string) {
		s.DelayOf = ownWatch(10 * second)
		o := sim.NewClient(s, streams)
		o.Put("as", sim.Thing("w"), 0)
		require.True(t, o.Delete("as", "w", 0, true))
		require.NoError(t, streams.Sync(t.Context()))
		for range 60 {
			sim.After(second)
			require.Equal(t, []string{"x", "y", "z"}, show(), "deleted by us")
		}
	})
}

func TestSyncListsManyObjectsWhereAShortWatchDoesNotTellAll(t *testing.T) {
	for name, harm := range map[string]func(s *sim.Server){
		"no bookmarks":  func(s *sim.Server) { s.Bookmarked = func(int) int { return 0 } },
		"old bookmarks": func(s *sim.Server) { s.Bookmarked = func(newest int) int { return newest - 1 } },
		"no watches": func(s *sim.Server) {
			s.Fail = func(verb, _ string) error {
				if verb == "watch" {
					return apierrors.NewTooManyRequestsError("later")
				}
				return nil
			}
		},
		"a forgotten version": func(s *sim.Server) { s.Oldest = s.Rev },
		"a deletion without a version": func(s *sim.Server) {
			s.LastState = func(sim.Event) bool { return true }
		},
	} {
		t.Run(name, func(t *testing.T) {
			onMany(t, func(t *testing.T, s *sim.Server, streams *streamset.Set, show func() []string) {
				lists := opened(s)
				s.DelayOf = ownWatch(20 * second)
				s.Touch("as", "y", 1)
				s.Remove("as", "y")
				s.Create("bs", sim.Thing("another"))
				s.Mu.Lock()
				harm(s)
				s.Mu.Unlock()
				require.NoError(t, streams.Sync(t.Context()))
				assert.Equal(t, []string{"x", "z"}, show())
				assert.Equal(t, lists+1, opened(s))
			})
		})
	}
}

func TestAShortWatchWithAnOldBookmarkIsFollowedByAnother(t *testing.T) {
	onMany(t, func(t *testing.T, s *sim.Server, streams *streamset.Set, show func() []string) {
		lists, newest := opened(s), 0
		s.Bookmarked = func(rev int) int {
			defer func() { newest = rev }()
			return max(newest, rev-1)
		}
		require.NoError(t, streams.Sync(t.Context()))
		assert.Equal(t, lists, opened(s))
	})
}
