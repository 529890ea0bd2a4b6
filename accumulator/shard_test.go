package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// The simulated server gives its objects the UIDs uid-1, uid-2, and so on. Those with an odd
// number are in half(0).

// sharded is a query for one half of all objects.
func sharded(i int) query.Query {
	q := sim.Query("A", "as")
	q.Shard = half(i)
	return q
}

// echoes is a server that shards, and says so.
func echoes(asked string) string { return asked }

// opened counts the lists, streamed or not, once all goroutines are idle.
func opened(s *sim.Server) int {
	synctest.Wait()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Opened("as")
}

// onShards runs a test with the objects a, b, c and d, of which a and c are in half(0), and both
// ways to list.
func onShards(t *testing.T, shards func(string) string, f func(t *testing.T, s *sim.Server, streams *streamset.Set)) {
	t.Helper()
	for way, config := range sim.Ways {
		t.Run(way, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Shards = shards
				for _, name := range []string{"a", "b", "c", "d"} {
					s.Create("as", sim.Thing(name))
				}
				f(t, s, streams)
			})
		})
	}
}

func TestAServerThatShardsIsAskedForTheShareAlone(t *testing.T) {
	onShards(t, echoes, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sharded(0))
		require.True(t, signalled(a))
		var snap one
		assert.Equal(t, []string{"+a", "+c"}, told(update(t, a, &snap)))
		s.Touch("as", "b", 1)
		s.Touch("as", "c", 1)
		synctest.Wait()
		assert.Equal(t, []string{"~c"}, told(update(t, a, &snap)))
		assert.Equal(t, uint64(1), streams.Inspect()[0].Events, "the watch brings the share alone")
		s.Create("as", sim.Thing("e"))
		s.Create("as", sim.Thing("f"))
		s.Remove("as", "a")
		s.Remove("as", "b")
		synctest.Wait()
		assert.Equal(t, []string{"-a", "+e"}, told(update(t, a, &snap)))
		assert.Contains(t, []string{
			"the server sends this share alone", "the server has sent no object of another shard",
		}, a.Status()[0].Shard)
	})
}

func TestAListSaysThatTheServerShards(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Shards = echoes
		a := watching(t, streams, collect.Options{}, sharded(0))
		require.True(t, signalled(a))
		assert.Equal(t, "the server sends this share alone", a.Status()[0].Shard)
	})
}

func TestWhatAServerThatDoesNotShardSendsIsDroppedHereAndTheStatusSaysSo(t *testing.T) {
	onShards(t, nil, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sharded(0))
		require.True(t, signalled(a))
		var snap one
		assert.Equal(t, []string{"+a", "+c"}, told(update(t, a, &snap)))
		assert.Equal(t, 2, a.Status()[0].Objects)
		assert.Contains(t, a.Status()[0].Shard, "the server does not shard")
		s.Touch("as", "b", 1)
		assert.False(t, signalled(a))
		s.Remove("as", "d")
		s.Create("as", sim.Thing("e"))
		s.Create("as", sim.Thing("f"))
		synctest.Wait()
		assert.Equal(t, []string{"+e"}, told(update(t, a, &snap)))
		require.NoError(t, streams.Sync(t.Context()))
	})
}

func TestAServerThatLearnsToShardIsBelievedAtTheNextList(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a"))
		s.Create("as", sim.Thing("b"))
		a := watching(t, streams, collect.Options{}, sharded(0))
		require.True(t, signalled(a))
		assert.Contains(t, a.Status()[0].Shard, "the server does not shard")
		s.Mu.Lock()
		s.Shards, s.Oldest = echoes, s.Rev+1
		s.Rev++
		s.Mu.Unlock()
		s.Cut()
		sim.After(time.Minute)
		synctest.Wait()
		assert.Equal(t, "the server sends this share alone", a.Status()[0].Shard)
	})
}

func TestG1AListOfAnotherShareIsNotTakenIn(t *testing.T) {
	for what, says := range map[string]string{
		"another": half(1).String(), "less": shardrange.Shard{Field: shardrange.UID, Ranges: halves[0][:3]}.String(), "nonsense": "everything",
	} {
		t.Run(what, func(t *testing.T) {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Shards = func(string) string { return says }
				s.Create("as", sim.Thing("a"))
				a := watching(t, streams, collect.Options{}, sharded(0))
				assert.False(t, signalled(a))
				st := a.Status()[0]
				assert.Equal(t, stream.Retrying, st.State)
				assert.Contains(t, st.Error, "a list of another share")
				s.Mu.Lock()
				s.Shards = echoes
				s.Mu.Unlock()
				sim.After(time.Minute)
				assert.True(t, signalled(a))
			})
		})
	}
}

func TestG4OwnWritesAreShownByTheShardThatHasThem(t *testing.T) {
	for how, shards := range map[string]func(string) string{"sharding": echoes, "not sharding": nil} {
		t.Run(how, func(t *testing.T) {
			onShards(t, shards, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				first := watching(t, streams, collect.Options{}, sharded(0))
				second := watching(t, streams, collect.Options{}, sharded(1))
				require.True(t, signalled(first) && signalled(second))
				var one, two one
				update(t, first, &one)
				update(t, second, &two)
				assert.Equal(t, 2, streams.Len(), "another shard is another stream")
				lists := opened(s)
				s.Late(time.Hour)
				o := sim.NewClient(s, streams)
				o.Put("as", sim.Thing("e"), 0) // uid-5
				o.Put("as", sim.Thing("f"), 0) // uid-6
				require.True(t, o.Delete("as", "a", 0, true))
				o.Put("as", sim.Thing("a"), 0) // uid-7
				require.True(t, o.Delete("as", "c", 0, true))
				o.Put("as", sim.Thing("c"), 0) // uid-8
				assert.Equal(t, []string{"-a", "+a", "-c", "+e"}, told(update(t, first, &one)))
				assert.Equal(t, []string{"+c", "+f"}, told(update(t, second, &two)))
				assert.Equal(t, lists, opened(s), "nobody had to be asked")
				sim.After(2 * time.Hour)
				s.Bookmarks()
				synctest.Wait()
				assert.False(t, update(t, first, &one).Changed || update(t, second, &two).Changed)
				assert.Zero(t, first.Status()[0].Pending+second.Status()[0].Pending)
			})
		})
	}
}

func TestG4AnOwnWriteOfAnotherVersionThatIsInNoShardIsNotAskedFor(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a"))
		s.Create("as", sim.Thing("b"))
		a := watching(t, streams, collect.Options{}, sharded(0))
		require.True(t, signalled(a))
		v2 := sim.Resource("as")
		v2.Version = "v2"
		asked := opened(s)
		write := func(name string) {
			key := object.Key{Namespace: "ns", Name: name}
			w := streams.Begin(v2, key)
			s.Touch("as", name, 1)
			s.Mu.Lock()
			got := s.Now["as"][key]
			s.Mu.Unlock()
			require.NoError(t, w.Commit(t.Context(), intake.Outcome{Write: coherence.Write{
				Key: key, UID: got.GetUID(), Version: got.GetResourceVersion(), Object: got,
			}}))
		}
		write("b")
		assert.Equal(t, asked, opened(s), "its UID says that it is another shard's")
		write("a")
		assert.Equal(t, asked+1, opened(s), "how the stream's version shows it, the server has to tell")
	})
}

func TestAShardByNamespaceKnowsWhichNamesItCannotHave(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.In("ns1", "a"))
		s.Create("as", sim.In("ns2", "a"))
		q := sim.Query("A", "as")
		q.Shard = inNamespace("ns1")
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		require.Len(t, snap.A, 1)
		assert.Equal(t, "ns1", snap.A[0].GetNamespace())
		r := sim.Resource("as")
		_, known := streams.Lookup(r, object.Key{Namespace: "ns2", Name: "a"}, intake.All)
		assert.False(t, known, "the stream does not have it, and cannot say that there is none")
		o, known := streams.Lookup(r, object.Key{Namespace: "ns1", Name: "a"}, intake.All)
		assert.True(t, known && o != nil)
		_, known = streams.List(r, "ns2", labels.Everything(), intake.All)
		assert.False(t, known)
		s.Late(time.Hour)
		client := sim.NewClient(s, streams)
		client.Put("as", sim.In("ns2", "b"), 0)
		assert.Zero(t, a.Status()[0].Pending, "an own write there is none of its business")
		client.Put("as", sim.In("ns1", "b"), 0)
		assert.Equal(t, 1, a.Status()[0].Pending)
		update(t, a, &snap)
		assert.Len(t, snap.A, 2)
	})
}

func TestAShareIsServedByAWatchOfAll(t *testing.T) {
	sharing(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sharded(1))
		require.True(t, signalled(a))
		var snap one
		assert.Equal(t, []string{"+b"}, told(update(t, a, &snap)))
		assert.Equal(t, 1, streams.Len())
		assert.Equal(t, "a part of a wider watch", a.Status()[0].Shard)
	})
}

func TestAWatchOfAShareServesNoQueryForMore(t *testing.T) {
	sim.Bubble(t, stream.Config{Share: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a"))
		s.Create("as", sim.Thing("b", "in", "yes"))
		require.True(t, signalled(watching(t, streams, collect.Options{}, sharded(0))))
		a := watching(t, streams, collect.Options{}, labelled())
		require.True(t, signalled(a))
		var snap one
		assert.Equal(t, []string{"+b"}, told(update(t, a, &snap)))
		assert.Equal(t, 2, streams.Len())
	})
}

func TestAnObjectThatDoesNotDecodeIsInvalidInItsShard(t *testing.T) {
	typedOrShared(t, false, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("ours", "bad", "yes"))
		s.Create("as", sim.Thing("others", "bad", "yes"))
		q := sharded(0)
		q.Form = object.Typed
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		r := update(t, a, &things{})
		require.Len(t, r.Invalid, 1)
		assert.Equal(t, "ours", r.Invalid[0].Object.GetName())
	})
}

func TestAShareOfAllHashesIsTheWholeWatch(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, _ *sim.Server, streams *streamset.Set) {
		q := sim.Query("A", "as")
		require.True(t, signalled(watching(t, streams, collect.Options{}, q)))
		q.Shard = shardrange.Shard{Field: shardrange.UID, Ranges: shardrange.All()}
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		assert.Equal(t, 1, streams.Len())
		assert.Empty(t, a.Status()[0].Shard)
	})
}
