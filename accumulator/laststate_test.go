package accumulator

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// lastStates runs a test on a server whose DELETED events have the last version of the object, and
// not that of the deletion. The snapshot has x.
func lastStates(t *testing.T, q query.Query, f func(t *testing.T, o sim.Client, a *Accumulator, snap *one)) {
	t.Helper()
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.LastState = func(sim.Event) bool { return true }
		s.Create("as", sim.Thing("x", "l", "yes"))
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		require.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		f(t, sim.NewClient(s, streams), a, &snap)
		sim.After(10 * time.Minute)
		synctest.Wait()
		update(t, a, &snap)
		assert.Zero(t, a.Status()[0].Pending, "G6")
		s.Mu.Lock()
		defer s.Mu.Unlock()
		assert.Len(t, snap.A, len(s.Now["as"]), "G6")
	})
}

func TestG2ADeletionThatHasTheStoredVersionIsADeletion(t *testing.T) {
	selective := sim.Query("A", "as")
	selective.Labels = labels.SelectorFromSet(labels.Set{"l": "yes"})
	for name, q := range map[string]query.Query{"all": sim.Query("A", "as"), "a selector": selective, "alternatives": either("l", "r")} {
		t.Run(name, func(t *testing.T) {
			lastStates(t, q, func(t *testing.T, o sim.Client, a *Accumulator, snap *one) {
				o.Create("as", sim.Thing("y", "l", "yes")) // the position is past x
				require.True(t, signalled(a))
				update(t, a, snap)
				o.Remove("as", "x")
				require.True(t, signalled(a))
				assert.Equal(t, []string{"-x"}, told(update(t, a, snap)))
				o.Create("as", sim.Thing("x", "l", "yes"))
				require.True(t, signalled(a))
				assert.Equal(t, []string{"+x"}, told(update(t, a, snap)))
			})
		})
	}
}

// The event is about the object before ours.
func TestG4ADeletionThatHasTheStoredVersionHidesNoNewerOwnWrite(t *testing.T) {
	lastStates(t, sim.Query("A", "as"), func(t *testing.T, o sim.Client, a *Accumulator, snap *one) {
		o.Late(10 * second)
		o.Remove("as", "x")
		o.Put("as", sim.Thing("x", "l", "ours"), 0)
		for range 30 {
			update(t, a, snap)
			require.Equal(t, []string{"x"}, sim.Names(snap.A))
			require.Equal(t, "ours", snap.A[0].GetLabels()["l"])
			sim.After(second)
			synctest.Wait()
		}
	})
}

func TestG4G6AnOwnDeletionEndsByAnEventThatHasTheStoredVersion(t *testing.T) {
	for way := range sim.Deletions {
		for _, late := range []time.Duration{0, 10 * second} {
			t.Run(fmt.Sprint("answered in way ", way, ", its event after ", late), func(t *testing.T) {
				lastStates(t, sim.Query("A", "as"), func(t *testing.T, o sim.Client, a *Accumulator, snap *one) {
					key := object.Key{Namespace: "ns", Name: "x"}
					o.Send(t, "as", "x", "update", 0)
					o.Late(late)
					w := o.Streams.Begin(sim.Resource("as"), key)
					answer, ok := o.Do("as", key, "delete", way)
					require.True(t, ok)
					if late == 0 {
						synctest.Wait() // the event overtakes the answer
					}
					require.NoError(t, w.Commit(t.Context(), intake.Outcome{Write: answer.Write(key)}))
					for range 30 {
						update(t, a, snap)
						require.Empty(t, snap.A)
						sim.After(second)
						synctest.Wait()
					}
					o.Bookmarks() // it ends what has the deletion's version
					sim.After(late + second)
					synctest.Wait()
					assert.Zero(t, a.Status()[0].Pending, "its event ends what has none")
				})
			})
		}
	}
}

// TestG5ADeletionWithoutItsVersionIsNotTakenBackByAQueryThatReplacesAnother: the watch of the new
// query is late, and the position of the old one does not tell that it is newer.
func TestG5ADeletionWithoutItsVersionIsNotTakenBackByAQueryThatReplacesAnother(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.LastState = func(sim.Event) bool { return true }
		s.Create("as", sim.Thing("x"))
		s.DelayOf = func(w *sim.Watch) time.Duration {
			if w.Filter.Namespace == "" {
				return time.Hour
			}
			return 0
		}
		late := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(late))
		q := sim.Query("A", "as")
		q.Namespaces = []string{"ns"}
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		require.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		s.Remove("as", "x")
		synctest.Wait()
		require.Equal(t, []string{"-x"}, told(update(t, a, &snap)))

		require.NoError(t, a.Replace(t.Context(), sim.Query("A", "as")))
		for range 10 {
			sim.After(time.Second)
			assert.Empty(t, told(update(t, a, &snap)), "it does not come back")
		}
		sim.After(2 * time.Hour)
		update(t, a, &snap)
		assert.Empty(t, snap.A)
	})
}
