package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func TestNewestIsTheOwnWriteOrWhatTheWatchBroughtAndNothingElse(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		o, x := sim.NewClient(s, streams), object.Key{Namespace: "ns", Name: "x"}
		s.Create("as", sim.Thing("x", "in", "yes"))
		assert.Nil(t, streams.Newest(sim.Resource("as"), x, object.IsWhole), "nothing watches it")
		in := sim.Query("A", "as")
		in.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		watching(t, streams, collect.Options{}, in)
		synctest.Wait()
		var snap one
		update(t, a, &snap)
		assert.Equal(t, snap.A[0], streams.Newest(sim.Resource("as"), x, object.IsWhole))
		assert.Nil(t, streams.Newest(sim.Resource("as"), object.Key{Namespace: "ns", Name: "y"}, object.IsWhole))
		other := sim.Resource("as")
		other.Version = "v2"
		assert.Nil(t, streams.Newest(other, x, object.IsWhole), "in another form")

		o.Late(60 * second)
		o.Put("as", sim.Thing("x", "in", "no"), 0)
		update(t, a, &snap)
		shown := streams.Newest(sim.Resource("as"), x, object.IsWhole)
		require.NotNil(t, shown)
		assert.Equal(t, "no", shown.GetLabels()["in"], "the query that it left has nothing to say")
		assert.Same(t, snap.A[0], shown, "the only one")
		o.Put("as", sim.Thing("x", "in", "yes"), 0)
		assert.Equal(t, "yes", streams.Newest(sim.Resource("as"), x, object.IsWhole).GetLabels()["in"])
		o.Delete("as", "x", 0, true)
		assert.Nil(t, streams.Newest(sim.Resource("as"), x, object.IsWhole))
	})
}

func TestNewestIsNothingWhileOwnWritesAreGivenUp(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true, PendingMax: 2}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		o := sim.NewClient(s, streams)
		s.Create("as", sim.Thing("a"))
		watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		o.Late(60 * second)
		require.NotNil(t, streams.Newest(sim.Resource("as"), object.Key{Namespace: "ns", Name: "a"}, object.IsWhole))
		s.Mu.Lock()
		s.ListDelay = func(string) time.Duration { return second }
		s.Mu.Unlock()
		for _, name := range []string{"a", "b", "c"} {
			o.Put("as", sim.Thing(name), 0)
		}
		synctest.Wait()
		assert.Nil(t, streams.Newest(sim.Resource("as"), object.Key{Namespace: "ns", Name: "a"}, object.IsWhole), "what is stored is older than the write")
		sim.After(2 * time.Minute) // a new list
		assert.NotNil(t, streams.Newest(sim.Resource("as"), object.Key{Namespace: "ns", Name: "a"}, object.IsWhole))
	})
}
