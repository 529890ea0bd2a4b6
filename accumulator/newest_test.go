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

func TestNewestIsTheOwnWriteOrWhatTheWatchBroughtAndNothingElse(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		o, x := own{s, streams}, Key{Namespace: "ns", Name: "x"}
		s.create("as", thing("x", "in", "yes"))
		assert.Nil(t, streams.Newest(simResource("as"), x, Whole), "nothing watches it")
		in := simQuery("A", "as")
		in.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		watching(t, streams, Options{}, in)
		synctest.Wait()
		var snap one
		update(t, a, &snap)
		assert.Equal(t, snap.A[0], streams.Newest(simResource("as"), x, Whole))
		assert.Nil(t, streams.Newest(simResource("as"), Key{Namespace: "ns", Name: "y"}, Whole))
		other := simResource("as")
		other.Version = "v2"
		assert.Nil(t, streams.Newest(other, x, Whole), "in another form")

		o.late(60 * second)
		o.put("as", thing("x", "in", "no"), 0)
		update(t, a, &snap)
		shown := streams.Newest(simResource("as"), x, Whole)
		require.NotNil(t, shown)
		assert.Equal(t, "no", shown.GetLabels()["in"], "the query that it left has nothing to say")
		assert.Same(t, snap.A[0], shown, "the only one")
		o.put("as", thing("x", "in", "yes"), 0)
		assert.Equal(t, "yes", streams.Newest(simResource("as"), x, Whole).GetLabels()["in"])
		o.delete("as", "x", 0, true)
		assert.Nil(t, streams.Newest(simResource("as"), x, Whole))
	})
}

func TestNewestIsNothingWhileOwnWritesAreGivenUp(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true, PendingMax: 2}, func(t *testing.T, s *sim, streams *stream.Set) {
		o := own{s, streams}
		s.create("as", thing("a"))
		watching(t, streams, Options{}, simQuery("A", "as"))
		synctest.Wait()
		o.late(60 * second)
		require.NotNil(t, streams.Newest(simResource("as"), Key{Namespace: "ns", Name: "a"}, Whole))
		for _, name := range []string{"a", "b", "c"} {
			o.put("as", thing(name), 0)
		}
		assert.Nil(t, streams.Newest(simResource("as"), Key{Namespace: "ns", Name: "a"}, Whole), "what is stored is older than the write")
		after(2 * time.Minute) // a new list
		assert.NotNil(t, streams.Newest(simResource("as"), Key{Namespace: "ns", Name: "a"}, Whole))
	})
}
