package accumulator

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// lists are lists that a test holds up, by what their streams watch.
type lists map[string]chan struct{}

// reached is the value of Config.Points.
func (l lists) reached(m stream.Moment) {
	if m.Point == stream.AtListed {
		if open, held := l[m.Stream.String()]; held {
			<-open
		}
	}
}

// hold holds up the lists of a stream until the test calls open, any number of times.
func (l lists) hold(id string) (open func()) {
	held := make(chan struct{})
	l[id] = held
	return sync.OnceFunc(func() { close(held) })
}

// An Update looks whether all is complete when the last list of a query over several namespaces is
// in, and the names in its objects have not been read yet. Objects of the other namespace have
// named some that are known by now.
func TestG1NamesCountAsKnownOnlyOnceThoseInAllNamespacesAreRead(t *testing.T) {
	held := lists{}
	var stage staged
	config := stream.Config{StreamLists: true, Points: func(m stream.Moment) {
		held.reached(m)
		stage.reached(m)
	}}
	sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		late := held.hold("v1/as other  ")
		defer late()
		for _, ns := range []string{"ns", "other"} {
			s.Create("as", sim.In(ns, "a", "refs", "x"))
			s.Create("bs", sim.In(ns, "x"))
		}
		queries := namingQueries()
		queries[1].Namespaces = []string{"ns", "other"}
		a := watching(t, streams, collect.Options{}, queries...)
		synctest.Wait()
		require.Equal(t, 1, a.collector.Fields()[1].Query.Listeners()[0].Status().Objects)
		stage.on(stream.AtUpdate, late)
		var snap two
		if r := update(t, a, &snap); r.Complete {
			assert.Equal(t, "a a / x x", shownIn(snap), "the first snapshot has all")
		}
		require.Nil(t, stage.do, "the point was reached")
		assert.Equal(t, "a a / x x", now(t, a))
	})
}

// The namespaces are known last, or the kind is found when another reader has its stream already.
// Nothing comes after that.
func TestG1NamesAreReadWhateverMakesAQueryComplete(t *testing.T) {
	t.Run("its namespaces", func(t *testing.T) {
		held := lists{}
		sim.Bubble(t, stream.Config{StreamLists: true, Points: held.reached}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			last := held.hold("v1/namespaces  team=a ")
			defer last()
			s.Create("namespaces", sim.In("", "ns", "team", "a"))
			s.Create("as", sim.Thing("a", "refs", "x"))
			s.Create("bs", sim.Thing("x"))
			q := spacesThatName()
			a := watching(t, streams, collect.Options{}, q[:]...)
			require.False(t, signalled(a))
			last()
			require.True(t, signalled(a))
			assert.Equal(t, "a / x", now(t, a))
		})
	})
	t.Run("its kind", func(t *testing.T) {
		sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			s.Create("as", sim.Thing("a", "refs", "x"))
			s.Create("bs", sim.Thing("x"))
			watching(t, streams, collect.Options{}, sim.Query("A", "as"))
			var served, namespaced atomic.Bool
			namespaced.Store(true)
			queries := namingQueries()
			queries[1] = sim.Scoped(queries[1], &served, &namespaced)
			queries[1].Optional = true
			a := watching(t, streams, collect.Options{}, queries...)
			require.True(t, signalled(a))
			assert.Equal(t, " / ", now(t, a))
			served.Store(true)
			sim.After(5 * second)
			require.True(t, signalled(a))
			assert.Equal(t, "a / x", now(t, a))
		})
	})
}

// spacesThatName returns two queries. Objects of A, in the selected namespaces, name those of B.
func spacesThatName() (queries [2]query.Query) {
	q := namingQueries()
	q[1] = spaceQuery("A", "as", "team=a")
	return [2]query.Query{q[0], q[1]}
}

// An own write waits for what it names. Meanwhile its stream gives up its own writes, and shows
// nothing. When another namespace is selected, the query says anew what it shows of each key: what
// it has handed out stays, and that is not what the reader has.
func TestG4AnOwnWriteThatWaitsForWhatItNamesStaysThoughItsStreamHasGivenItUp(t *testing.T) {
	for _, before := range []string{"", "none"} {
		t.Run("it named "+before, func(t *testing.T) {
			held := lists{}
			config := stream.Config{StreamLists: true, PendingMax: 2, Points: held.reached}
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("namespaces", sim.In("", "ns", "team", "a"))
				s.Create("bs", sim.Thing("x"))
				if before != "" {
					s.Create("as", sim.Thing("a", "refs", before))
				}
				q := spacesThatName()
				a := watching(t, streams, collect.Options{}, q[:]...)
				now(t, a)

				s.Mu.Lock()
				s.Delay = func(resource string) time.Duration { return map[string]time.Duration{"as": time.Hour}[resource] }
				s.Mu.Unlock()
				named, relist := held.hold("v1/bs ns  metadata.name=x"), held.hold("v1/as   ")
				defer named()
				defer relist()
				o := sim.NewClient(s, streams)
				put := func(u *unstructured.Unstructured) {
					o.Put("as", u, 0)
					synctest.Wait()
				}
				put(sim.Thing("a", "refs", "x"))
				put(sim.Thing("b"))
				put(sim.Thing("c"))
				require.True(t, a.collector.Fields()[1].Query.Listeners()[0].Stage().Held().GivenUp)
				require.Equal(t, 1, a.collector.Fields()[1].Query.State().Waits.Held, "a waits")
				s.Create("namespaces", sim.In("", "other", "team", "a"))
				synctest.Wait()
				named()
				synctest.Wait()
				var snap two
				update(t, a, &snap)
				require.Contains(t, sim.Names(snap.A), "a")
				assert.Equal(t, "x", snap.A[0].GetLabels()["refs"])
				assert.Equal(t, []string{"x"}, sim.Names(snap.B))
				relist()
				assert.Equal(t, "a b c / x", now(t, a))
			})
		})
	}
}

// The names in objects are read before the first Update. So the stream has handed its first list
// out when it gives up its own writes.
func TestG4AFirstSnapshotWaitsForTheRelistThoughNamesHaveBeenRead(t *testing.T) {
	all := namingQueries()
	several := spacesThatName()
	for name, queries := range map[string][]query.Query{"one stream": all, "selected namespaces": several[:]} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true, PendingMax: 2}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("namespaces", sim.In("", "ns", "team", "a"))
				s.Create("bs", sim.Thing("x"))
				s.Create("as", sim.Thing("a", "refs", "x"))
				a := watching(t, streams, collect.Options{}, queries...)
				require.True(t, signalled(a))
				overwrite(sim.NewClient(s, streams), 0, 3)
				snap := two{A: []*unstructured.Unstructured{sim.Thing("mine")}}
				if r := update(t, a, &snap); r.Complete {
					assert.Equal(t, "00 01 02 a / x", shownIn(snap))
				}
				sim.After(time.Minute)
				require.True(t, signalled(a))
				assert.Equal(t, "00 01 02 a / x", now(t, a))
			})
		})
	}
}
