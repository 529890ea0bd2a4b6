package accumulator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// create creates some objects, as another client.
func create(s *sim.Server, resource string, first, count int, kv ...string) {
	for i := range count {
		s.Create(resource, sim.Thing(fmt.Sprintf("%03d", first+i), kv...))
	}
}

// bounded runs a test with a bound on objects, for each way to list.
func bounded(t *testing.T, most int, f func(*testing.T, *sim.Server, *streamset.Set)) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			config.ObjectsMax = most
			sim.Bubble(t, config, f)
		})
	}
}

// noRoom asserts that a query says that there is no room for its objects.
func noRoom(t *testing.T, a *Accumulator, i, most int) {
	t.Helper()
	st := a.Status()[i]
	assert.Equal(t, stream.Retrying, st.State)
	assert.Contains(t, st.Error, fmt.Sprintf("too many objects: all watches of this client together may hold %d: select fewer", most))
}

func TestG1AListThatIsOverTheBoundIsNotReadAnyFurtherAndNeverShown(t *testing.T) {
	bounded(t, 6, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		create(s, "as", 0, 100)
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		snap := one{A: []*unstructured.Unstructured{sim.Thing("mine")}}
		assert.False(t, signalled(a))
		s.Mu.Lock()
		assert.LessOrEqual(t, s.Pages, 2, "the third page has one too many")
		s.Mu.Unlock()
		assert.Zero(t, s.Watching(), "nor is a streamed list read on")
		noRoom(t, a, 0, 6)
		assert.False(t, update(t, a, &snap).Complete)
		assert.Equal(t, []string{"mine"}, sim.Names(snap.A), "untouched")
		assert.ErrorContains(t, a.Ready(), "too many objects")
		assert.Zero(t, streams.Taken(), "given back")

		for i := range 94 {
			s.Remove("as", fmt.Sprintf("%03d", i))
		}
		sim.After(time.Minute)
		require.True(t, signalled(a))
		assert.True(t, update(t, a, &snap).Complete)
		assert.Len(t, snap.A, 6)
		assert.Equal(t, stream.Synced, a.Status()[0].State)
		assert.Equal(t, 6, streams.Taken())
	})
}

func TestG5G8AnEventOverTheBoundTakesNothingBackAndHarmsNoOtherStream(t *testing.T) {
	bounded(t, 5, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		create(s, "as", 0, 3)
		create(s, "bs", 0, 2)
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), sim.Query("B", "bs"))
		var snap two
		require.True(t, signalled(a))
		update(t, a, &snap)
		shown := snap.A
		require.Len(t, shown, 3)
		s.Create("as", sim.Thing("more"))
		s.Touch("as", "001", 1) // nothing is shown past what there is no room for
		for i := range 10 {     // minutes
			s.Touch("bs", "000", i)
			synctest.Wait()
			update(t, a, &snap)
			noRoom(t, a, 0, 5)
			assert.Equal(t, shown, snap.A, "what was shown stays")
			assert.NoError(t, a.Ready())
			assert.Equal(t, stream.Synced, a.Status()[1].State)
			n, _, _ := unstructured.NestedInt64(snap.B[0].Object, "spec", "n")
			assert.Equal(t, int64(i), n, "the other goes on")
			assert.Equal(t, 5, streams.Taken())
			sim.After(time.Minute)
		}
		s.Remove("bs", "001") // which makes room
		sim.After(time.Minute)
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"000", "001", "002", "more"}, sim.Names(snap.A))
		assert.Same(t, shown[0], snap.A[0])
		assert.NotSame(t, shown[1], snap.A[1])
		assert.Equal(t, stream.Synced, a.Status()[0].State)
	})
}

// The event that is refused comes before the deletions: a watch alone would never show them.
func TestG5DeletionsMakeRoomForAStreamThatIsAtItsBound(t *testing.T) {
	bounded(t, 3, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		create(s, "as", 0, 3)
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		require.True(t, signalled(a))
		update(t, a, &snap)
		s.Create("as", sim.Thing("more"))
		s.Remove("as", "001")
		sim.After(time.Minute)
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"000", "002", "more"}, sim.Names(snap.A))
		assert.Equal(t, stream.Synced, a.Status()[0].State)
		for i := range 20 { // one comes as one goes
			s.Remove("as", sim.Names(snap.A)[0])
			s.Create("as", sim.Thing(fmt.Sprint("new", i)))
			synctest.Wait()
			update(t, a, &snap)
			require.Len(t, snap.A, 3)
			require.Equal(t, stream.Synced, a.Status()[0].State)
		}
	})
}

func TestG4OwnWritesAreShownThoughThereIsNoRoom(t *testing.T) {
	bounded(t, 3, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		create(s, "as", 0, 3)
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		require.True(t, signalled(a))
		update(t, a, &snap)
		o := sim.NewClient(s, streams)
		for i := range 3 {
			o.Put("as", sim.Thing(fmt.Sprint("mine", i)), 0)
			update(t, a, &snap)
			require.Len(t, snap.A, 4+i)
			sim.After(time.Minute)
			synctest.Wait()
			noRoom(t, a, 0, 3)
			update(t, a, &snap)
			require.Len(t, snap.A, 4+i, "still")
		}
		for i := range 3 {
			require.True(t, o.Delete("as", fmt.Sprintf("%03d", i), 0, true))
			update(t, a, &snap)
			require.Len(t, snap.A, 5-i)
		}
		sim.After(time.Minute)
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"mine0", "mine1", "mine2"}, sim.Names(snap.A))
		assert.Equal(t, stream.Synced, a.Status()[0].State)
		assert.Equal(t, 3, streams.Taken())
		assert.Zero(t, listener(a, 0).Stage().Held().Pending)
	})
}

// More own writes than are held go into the store until the list that they wait for.
func TestG4OwnWritesThatWereGivenUpAreShownThoughThereIsNoRoom(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			config.ObjectsMax, config.PendingMax = 3, 2
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				create(s, "as", 0, 2)
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				var snap one
				require.True(t, signalled(a))
				update(t, a, &snap)
				s.Late(time.Hour)
				o := sim.NewClient(s, streams)
				for i := range 3 {
					o.Put("as", sim.Thing(fmt.Sprint("mine", i)), 0)
				}
				sim.After(time.Minute)
				synctest.Wait()
				update(t, a, &snap)
				assert.Len(t, snap.A, 5)
				assert.Equal(t, 5, streams.Taken(), "they count then")
				s.Late(0)
				for i := range 3 {
					require.True(t, o.Delete("as", fmt.Sprint("mine", i), 0, true))
				}
				sim.After(time.Minute)
				synctest.Wait()
				assert.Equal(t, 2, streams.Taken())
			})
		})
	}
}

func TestG8AStreamThatHasMoreThanHalfOfTheBoundListsAgain(t *testing.T) {
	bounded(t, 10, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		create(s, "as", 0, 8)
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		for i := range 8 {
			s.Touch("as", fmt.Sprintf("%03d", i), 1)
		}
		s.Create("as", sim.Thing("more"))
		s.Mu.Lock()
		s.Oldest = s.Rev // the watch cannot be resumed
		s.Mu.Unlock()
		s.Restore(s.Rev)
		sim.After(time.Minute)
		synctest.Wait()
		update(t, a, &snap)
		assert.Len(t, snap.A, 9)
		assert.Equal(t, stream.Synced, a.Status()[0].State)
		assert.Equal(t, 9, streams.Taken())
	})
}

// halved is a server whose lists of "as" end half-way while it is broken.
type halved struct {
	*sim.Source
	broken *atomic.Bool
}

func (h halved) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.Continue != "" && h.broken.Load() && h.Resource == "as" {
		return nil, errors.New("the second page does not come")
	}
	return h.Source.ListWithContext(ctx, o)
}

func (h halved) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := h.Source.WatchWithContext(ctx, o)
	if err != nil || !h.broken.Load() || h.Resource != "as" {
		return w, err
	}
	brought := 0
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		if brought++; brought > 3 {
			w.Stop()
		}
		return e, brought <= 3
	}), nil
}

func TestG3PlacesAreGivenBackWhenAListFailsOrAStreamEnds(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			var server *sim.Server
			var broken atomic.Bool
			config.ObjectsMax = 9
			config.Source = sim.Plain(func(r object.Resource, namespace string, form object.Form) cache.ListerWatcherWithContext {
				return halved{server.Source(r, namespace, form).(*sim.Source), &broken}
			})
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				server = s
				create(s, "as", 0, 5)
				create(s, "bs", 0, 4)
				broken.Store(true)
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				b := watching(t, streams, collect.Options{}, sim.Query("A", "bs"))
				sim.After(time.Minute)
				synctest.Wait()
				require.Error(t, a.Ready())
				assert.NotContains(t, a.Status()[0].Error, "too many")
				require.NoError(t, b.Ready())
				assert.Equal(t, 4, streams.Taken(), "those of the other")

				broken.Store(false)
				sim.After(time.Minute)
				synctest.Wait()
				require.NoError(t, a.Ready())
				assert.Equal(t, 9, streams.Taken())
				b.Close()
				synctest.Wait()
				assert.Equal(t, 5, streams.Taken(), "its stream has ended")
				a.Close()
				synctest.Wait()
				assert.Zero(t, streams.Taken())
			})
		})
	}
}

func TestG8OfStreamsThatDoNotFitTogetherOneGetsRoomAndKeepsIt(t *testing.T) {
	bounded(t, 30, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		create(s, "as", 0, 20)
		create(s, "bs", 0, 20)
		create(s, "cs", 0, 25)
		var all []*Accumulator
		for _, resource := range []string{"as", "bs", "cs"} {
			all = append(all, watching(t, streams, collect.Options{}, sim.Query("A", resource)))
		}
		sim.After(5 * time.Minute)
		ready := func() (n, which int) {
			for i, a := range all {
				if a.Ready() == nil {
					n, which = n+1, i
				}
			}
			return n, which
		}
		n, which := ready()
		require.Equal(t, 1, n)
		for range 20 {
			sim.After(time.Minute)
			n, again := ready()
			require.True(t, n == 1 && again == which, "it keeps what it has")
			require.Equal(t, stream.Synced, all[which].Status()[0].State)
		}
		for i := range 20 {
			s.Remove("cs", fmt.Sprintf("%03d", i))
			s.Remove("as", fmt.Sprintf("%03d", i))
		}
		sim.After(2 * time.Minute)
		synctest.Wait()
		n, _ = ready()
		assert.Equal(t, 3, n)
		assert.Equal(t, 25, streams.Taken())
	})
}

func TestG11AListThatStaysOverTheBoundIsTriedWithGrowingPauses(t *testing.T) {
	bounded(t, 3, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		create(s, "as", 0, 3)
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(a))
		s.Create("as", sim.Thing("more"))
		sim.After(10 * time.Minute)
		s.Mu.Lock()
		defer s.Mu.Unlock()
		assert.Less(t, s.Streamed["as"]+s.Lists["as"]/2, 35)
		assert.Greater(t, s.Streamed["as"]+s.Lists["as"]/2, 10)
	})
}

func TestG3ASyncReadsNoMoreThanAStreamMayHold(t *testing.T) {
	bounded(t, 3, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		create(s, "as", 0, 100)
		watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		assert.ErrorContains(t, streams.Sync(t.Context()), "too many objects")
	})
}

// Objects that others name, and metadata, count alike. One stream of several readers counts once.
func TestG3EveryStreamCounts(t *testing.T) {
	bounded(t, 100, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		create(s, "as", 0, 4, "refs", "000")
		create(s, "bs", 0, 5)
		b := sim.Query("B", "bs")
		b.Refs = []query.Ref{{Query: "A", Names: inLabelOf}}
		short := sim.Query("A", "bs")
		short.Form = object.Metadata
		watching(t, streams, collect.Options{}, sim.Query("A", "as"), b)
		watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		watching(t, streams, collect.Options{}, short)
		synctest.Wait()
		sim.After(second)
		assert.Equal(t, 4+1+5, streams.Taken())
	})
}

func TestG8AQueryThatIsReplacedByANarrowerOneIsComplete(t *testing.T) {
	bounded(t, 30, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		create(s, "as", 0, 20, "in", "yes")
		create(s, "as", 20, 30, "in", "no")
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		sim.After(10 * second)
		noRoom(t, a, 0, 30)
		narrow := sim.Query("A", "as")
		narrow.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		require.NoError(t, a.Replace(t.Context(), narrow))
		sim.After(time.Minute)
		var snap one
		update(t, a, &snap)
		assert.Len(t, snap.A, 20)
		assert.Equal(t, stream.Synced, a.Status()[0].State)
	})
}
