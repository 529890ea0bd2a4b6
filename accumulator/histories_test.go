package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/stream"
)

func selective() Query {
	q := simQuery("A", "as")
	q.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
	return q
}

// The watch could resume, and would never show anything again.
func TestG5ARestoredClusterIsNoticedThoughTheWatchCanBeResumed(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("old"))
				backup := s.rev
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				synctest.Wait()
				for _, later := range []string{"x", "y", "z"} {
					own{s, streams}.put("as", thing(later), 0)
				}
				require.True(t, signalled(a))
				var snap one
				update(t, a, &snap)
				require.Len(t, snap.A, 4)
				s.restore(backup)
				after(time.Minute)
				require.True(t, signalled(a))
				update(t, a, &snap)
				assert.Equal(t, []string{"old"}, names(snap.A), "shown as it is")
				s.mu.Lock()
				defer s.mu.Unlock()
				assert.Equal(t, 1, s.probes["as"], "by a list of one object")
			})
		})
	}
}

func TestG5AStreamThatStartsOnARestoredClusterSaysSoBeforeItShowsIt(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				backup := s.rev
				// no stream has it: the floor remembers it
				own{s, streams}.put("as", thing("lost"), 0)
				s.restore(backup)
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				assert.False(t, signalled(a), "older than our own write")
				assert.ErrorContains(t, a.Ready(), "older than what it has shown before")
				after(time.Minute)
				assert.True(t, signalled(a), "the server insists")
				var snap one
				update(t, a, &snap)
				assert.Empty(t, snap.A)
				assert.Empty(t, streams.FloorRV("as"), "a new history")
			})
		})
	}
}

func TestG6ABookmarkEndsWhatNoEventEnds(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, selective())
		synctest.Wait()
		own{s, streams}.put("as", thing("x", "in", "no"), 0)
		assert.Equal(t, 1, a.Status()[0].Pending)
		s.bookmarks()
		synctest.Wait()
		assert.Zero(t, a.Status()[0].Pending)
	})
}
