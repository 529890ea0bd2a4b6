package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func selective() query.Query {
	q := sim.Query("A", "as")
	q.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
	return q
}

// The watch could resume, and would never show anything again.
func TestG5ARestoredClusterIsNoticedThoughTheWatchCanBeResumed(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("old"))
				backup := s.Rev
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				synctest.Wait()
				for _, later := range []string{"x", "y", "z"} {
					sim.NewClient(s, streams).Put("as", sim.Thing(later), 0)
				}
				require.True(t, signalled(a))
				var snap one
				update(t, a, &snap)
				require.Len(t, snap.A, 4)
				s.Restore(backup)
				sim.After(time.Minute)
				require.True(t, signalled(a))
				update(t, a, &snap)
				assert.Equal(t, []string{"old"}, sim.Names(snap.A), "shown as it is")
				s.Mu.Lock()
				defer s.Mu.Unlock()
				assert.Equal(t, 1, s.Probes["as"], "by a list of one object")
			})
		})
	}
}

func TestG5AStreamThatStartsOnARestoredClusterSaysSoBeforeItShowsIt(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				backup := s.Rev
				// no stream has it: the floor remembers it
				sim.NewClient(s, streams).Put("as", sim.Thing("lost"), 0)
				s.Restore(backup)
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				assert.False(t, signalled(a), "older than our own write")
				assert.ErrorContains(t, a.Ready(), "older than what it has shown before")
				sim.After(time.Minute)
				assert.True(t, signalled(a), "the server insists")
				var snap one
				update(t, a, &snap)
				assert.Empty(t, snap.A)
				assert.Empty(t, streams.FloorRV("as"), "a new history")
			})
		})
	}
}

// TestG2AQueryOfARestoredClusterIsReplacedAtOnce: the query was removed and added again, and the
// cluster was restored meanwhile. What was shown before is of a history that has ended. So the
// query that replaces this one need not be as new as that.
func TestG2AQueryOfARestoredClusterIsReplacedAtOnce(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		s.Create("as", sim.In("other", "z"))
		backup := s.Rev
		s.Create("as", sim.Thing("lost"))
		a := watching(t, streams, collect.Options{}, over("A", "as", "ns"))
		require.True(t, signalled(a))
		var snap one
		require.Equal(t, []string{"+lost", "+x"}, told(update(t, a, &snap)))
		require.NoError(t, a.Remove(t.Context(), "A"))
		s.Restore(backup)
		require.NoError(t, a.Add(t.Context(), over("A", "as", "ns")))
		require.True(t, signalled(a))
		require.Equal(t, []string{"-lost", "-x"}, told(update(t, a, &snap)))
		sim.After(10 * second) // the server is asked, again and again, whether it has what was shown
		require.Equal(t, []string{"+x"}, told(update(t, a, &snap)))

		require.NoError(t, a.Replace(t.Context(), sim.Query("A", "as")))
		require.True(t, signalled(a))
		assert.Equal(t, []string{"+z"}, told(update(t, a, &snap)))
	})
}

func TestG6ABookmarkEndsWhatNoEventEnds(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, selective())
		synctest.Wait()
		sim.NewClient(s, streams).Put("as", sim.Thing("x", "in", "no"), 0)
		assert.Equal(t, 1, a.Status()[0].Pending)
		s.Bookmarks()
		synctest.Wait()
		assert.Zero(t, a.Status()[0].Pending)
	})
}
