package accumulator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/collect"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/suite/sim"
)

// TestG4AnOwnDeletionWhoseAnswerNobodyCanReadShowsInAUnion: both watches are late. Each stream of
// the union is asked at another moment, so what they say does not tell where the object is.
func TestG4AnOwnDeletionWhoseAnswerNobodyCanReadShowsInAUnion(t *testing.T) {
	for name, c := range map[string]struct {
		kept, moved, made bool // made: others make an object of that name before the server is asked
		want              []string
	}{
		"gone":                          {},
		"kept, and selected":            {kept: true, want: []string{"a"}},
		"kept, and not selected before": {kept: true, moved: true},
		"made again":                    {made: true, want: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
				o := sim.Thing("a", "in", "yes")
				if c.kept {
					o.SetFinalizers([]string{"test/kept"})
				}
				s.Create("as", o)
				q := sim.Query("A", "as")
				q.AnyOf = []stream.Selection{
					{Labels: labels.SelectorFromSet(labels.Set{"in": "yes"})},
					{Fields: fields.OneTermEqualSelector("spec.node", "n1")},
				}
				a := watching(t, streams, collect.Options{}, q)
				synctest.Wait()
				var snap one
				update(t, a, &snap)
				require.Len(t, snap.A, 1)
				was := snap.A[0].GetUID()
				s.Late(time.Hour)
				key := stream.Key{Namespace: "ns", Name: "a"}
				if c.moved {
					s.Do("as", key, "move", 0)
				}
				w := streams.Begin(sim.Resource("as"), key)
				_, ok := s.Do("as", key, "delete", sim.ByStatus)
				require.True(t, ok)
				s.Create("others", sim.Thing("x"))
				if c.made {
					s.Create("as", sim.Thing("a", "in", "yes"))
				}
				asked := 0
				s.Failing(func(string, string) error { // each answer has another version
					asked++
					s.Create("others", sim.Thing(fmt.Sprint("x", asked)))
					return nil
				})
				require.NoError(t, w.Commit(context.Background(), stream.Outcome{Write: coherence.Write{Key: key}, Unknown: true}))
				for range 2 {
					update(t, a, &snap)
					require.Equal(t, c.want, sim.Names(snap.A))
					for _, o := range snap.A {
						assert.Equal(t, c.kept, o.GetDeletionTimestamp() != nil)
						assert.Equal(t, c.made, o.GetUID() != was)
					}
					<-time.After(2 * time.Hour)
					synctest.Wait()
				}
			})
		})
	}
}

// TestG4AWriteOfWhichTheServerCannotBeAskedIsReported: no stream shows it before its watch does.
func TestG4AWriteOfWhichTheServerCannotBeAskedIsReported(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		s.Create("as", sim.Thing("a"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		var snap one
		update(t, a, &snap)
		s.Late(time.Minute)
		key := stream.Key{Namespace: "ns", Name: "a"}
		w := streams.Begin(sim.Resource("as"), key)
		_, ok := s.Do("as", key, "delete", sim.ByStatus)
		require.True(t, ok)
		s.Failing(func(string, string) error { return errors.New("refused") })
		err := w.Commit(context.Background(), stream.Outcome{Write: coherence.Write{Key: key}, Unknown: true})
		require.EqualError(t, err, "ask for as ns/a: refused")
		update(t, a, &snap)
		assert.Equal(t, 1, a.Status()[0].Unsettled)
		assert.Len(t, snap.A, 1)
		<-time.After(2 * time.Minute)
		synctest.Wait()
		update(t, a, &snap)
		assert.Zero(t, a.Status()[0].Unsettled)
		assert.Empty(t, snap.A)
	})
}
