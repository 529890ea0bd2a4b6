package accumulator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/collect"
	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/suite/sim"
)

func TestG7AQueryThatIsRemovedAndAddedAgainUnreadHasDeltasForWhatDiffersAlone(t *testing.T) {
	for name, namespaces := range map[string][]string{"one stream": nil, "two": {"ns", "other"}} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
				for _, o := range []string{"stays", "goes", "changes"} {
					s.Create("as", sim.Thing(o))
				}
				q := sim.Query("A", "as")
				q.Namespaces = namespaces
				a := watching(t, streams, collect.Options{}, q)
				require.True(t, signalled(a))
				var snap one
				update(t, a, &snap)
				stays := snap.A[2]
				require.NoError(t, a.Remove(t.Context(), "A"))
				s.Remove("as", "goes")
				s.Touch("as", "changes", 1)
				s.Create("as", sim.Thing("comes"))
				require.NoError(t, a.Add(t.Context(), q))
				require.True(t, signalled(a))
				r := update(t, a, &snap)
				assert.ElementsMatch(t, []string{"~changes", "+comes", "-goes"}, told(r))
				assert.Equal(t, []string{"changes", "comes", "stays"}, sim.Names(snap.A))
				assert.Same(t, stays, snap.A[2])

				require.NoError(t, a.Remove(t.Context(), "A"))
				require.NoError(t, a.Add(t.Context(), q))
				require.True(t, signalled(a))
				assert.False(t, update(t, a, &snap).Changed, "nothing differs")

				q.Transform = func(o stream.Object) error { o.SetLabels(map[string]string{"t": "1"}); return nil }
				require.NoError(t, a.Remove(t.Context(), "A"))
				require.NoError(t, a.Add(t.Context(), q))
				require.True(t, signalled(a))
				assert.Equal(t, []string{"~changes", "~comes", "~stays"}, told(update(t, a, &snap)))
				assert.Equal(t, "1", snap.A[0].GetLabels()["t"])
			})
		})
	}
}

func TestAQueryThatIsReplacedByOneWithAnotherTransformShowsWhatThatMakes(t *testing.T) {
	for name, namespaces := range map[string][]string{"one stream": nil, "two": {"ns", "other"}} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
				s.Create("as", sim.Thing("x"))
				s.Create("as", sim.In("other", "y"))
				q := sim.Query("A", "as")
				q.Namespaces = namespaces
				a := watching(t, streams, collect.Options{}, q)
				require.True(t, signalled(a))
				var snap one
				update(t, a, &snap)
				q.Transform = func(o stream.Object) error { o.SetLabels(map[string]string{"t": "1"}); return nil }
				require.NoError(t, a.Replace(t.Context(), q))
				require.True(t, signalled(a))
				assert.Equal(t, []string{"~x", "~y"}, told(update(t, a, &snap)))
				for _, o := range snap.A {
					assert.Equal(t, "1", o.GetLabels()["t"])
				}
				assert.False(t, update(t, a, &snap).Changed)
			})
		})
	}
}

func TestG1TheFirstSnapshotDoesNotWaitForWhatWasWantedSinceItsSignal(t *testing.T) {
	for name, edit := range map[string]func(a *Accumulator, q query.Query) error{
		"one more namespace": func(a *Accumulator, q query.Query) error {
			q.Namespaces = []string{"n1", "n2"}
			return a.Replace(context.Background(), q)
		},
		"other labels": func(a *Accumulator, q query.Query) error {
			q.Labels, _ = labels.Parse("in=yes")
			return a.Replace(context.Background(), q)
		},
		"one more query": func(a *Accumulator, _ query.Query) error { return a.Add(context.Background(), sim.Query("B", "bs")) },
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
				s.Create("as", sim.In("n1", "x", "in", "yes"))
				s.Create("as", sim.In("n2", "y", "in", "yes"))
				s.Create("bs", sim.In("n2", "z"))
				q := sim.Query("A", "as")
				q.Namespaces = []string{"n1"}
				a := watching(t, streams, collect.Options{}, q)
				require.True(t, signalled(a))
				s.ListDelay = func(string) time.Duration { return time.Minute }
				require.NoError(t, edit(a, q))
				require.NoError(t, a.Ready())
				snap := two{}
				r := update(t, a, &snap)
				assert.True(t, r.Complete && r.Changed)
				assert.Equal(t, []string{"+x"}, told(r))
				assert.Equal(t, []string{"x"}, sim.Names(snap.A))
				sim.After(2 * time.Minute)
				r = update(t, a, &snap)
				assert.Equal(t, map[string][]string{"one more namespace": {"+y"}, "other labels": nil, "one more query": {"+z"}}[name], told(r))
			})
		})
	}
}

func TestWhatIsLeftOfAQueryThatIsReplacedIsGroupedAnewThoughItWasReplacedDuringAnUpdate(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		s.Create("as", sim.In("n1", "x"))
		s.Create("as", sim.In("n2", "y"))
		q := sim.Query("A", "as")
		q.Namespaces = []string{"n1", "n2"}
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		for range 200 {
			q.Namespaces = []string{"n1", "n2"}
			require.NoError(t, a.Replace(t.Context(), q))
			synctest.Wait()
			update(t, a, &snap)
			require.Equal(t, []string{"x", "y"}, sim.Names(snap.A))
			done := make(chan struct{})
			go func() {
				defer close(done)
				q.Namespaces = []string{"n1"}
				assert.NoError(t, a.Replace(context.Background(), q))
			}()
			update(t, a, &snap)
			<-done
			update(t, a, &snap)
			require.Equal(t, []string{"x"}, sim.Names(snap.A))
		}
	})
}

// TestQueriesMayBeReplacedWhileAnUpdateRuns is for the race detector.
func TestQueriesMayBeReplacedWhileAnUpdateRuns(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		s.Create("as", sim.In("n1", "x"))
		q := sim.Query("A", "as")
		q.Namespaces = []string{"n1"}
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 50 {
				q.Namespaces = []string{"n1", "n2"}[:1+i%2]
				assert.NoError(t, a.Replace(context.Background(), q))
			}
		}()
		for running := true; running; {
			var snap one
			update(t, a, &snap)
			assert.Equal(t, []string{"x"}, sim.Names(snap.A))
			assert.NoError(t, a.Ready())
			a.Status()
			select {
			case <-done:
				running = false
			default:
			}
		}
	})
}
