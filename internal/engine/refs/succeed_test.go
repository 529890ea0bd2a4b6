package refs_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/refs"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// TestG1NamesOfAQueryThatIsReplacedBeforeTheFirstSnapshotAreReadAgain: A was read, and what it
// names is there. The query in its place has its list, and nobody has read the names in there.
func TestG1NamesOfAQueryThatIsReplacedBeforeTheFirstSnapshotAreReadAgain(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.In("ns", "a", "refs", "x"))
		s.Create("as", sim.In("other", "a", "refs", "y"))
		s.Create("bs", sim.In("ns", "x"))
		s.Create("bs", sim.In("other", "y"))
		h := query.Host{Streams: streams, Ready: func() bool { return false }, Past: &query.Past{},
			Wake: func() {}, Attend: func() {}, Follow: func() {}, Noted: func() {}}
		a, b := sim.Query("A", "as"), sim.Query("B", "bs")
		a.Namespace = "ns"
		b.Refs = []query.Ref{{Query: "A", Names: func(o object.Object) ([]object.Key, error) {
			return []object.Key{{Name: o.GetLabels()["refs"]}}, nil
		}}}
		all, links, err := refs.Prepare(context.Background(), h, []query.Query{a, b})
		require.NoError(t, err)
		now, named := all[0], all[1]
		for _, q := range all {
			require.NoError(t, q.Connect())
		}
		take := func() {
			synctest.Wait()
			require.True(t, now.Take(false).OK())
			links.Know()
			synctest.Wait()
		}
		take()
		require.Equal(t, query.Complete, named.Phase())

		a.Namespace = "other"
		found, err := refs.Find(context.Background(), a)
		require.NoError(t, err)
		next, err := refs.Open(h, found, now)
		require.NoError(t, err)
		synctest.Wait()
		former := now
		now, _ = refs.Succeed(former, next, query.Batch{})
		former.Close()
		require.Equal(t, query.Complete, now.Phase())
		assert.Less(t, named.Phase(), query.Complete, "what the other query names is not known")
		links.Know()
		assert.Less(t, named.Phase(), query.Complete, "it was not read")

		take()
		assert.Equal(t, query.Complete, named.Phase())
		shown := make(map[object.Key]bool)
		for _, c := range named.Take(false).Changes {
			shown[c.Key] = c.Object != nil
		}
		assert.Equal(t, map[object.Key]bool{{Namespace: "ns", Name: "x"}: false, {Namespace: "other", Name: "y"}: true}, shown)
		now.Close()
		named.Close()
	})
}
