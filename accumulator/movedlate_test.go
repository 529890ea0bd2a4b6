package accumulator

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/lister"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// twoVersions serves each resource in two versions. The first may go, and the watches of the
// second may be late. The server's lock guards the watches.
type twoVersions struct {
	*sim.Server
	gone    atomic.Bool
	late    atomic.Int64 // nanoseconds
	watches map[*sim.Watch]string
}

func newTwoVersions() *twoVersions {
	v := &twoVersions{Server: sim.New(), watches: make(map[*sim.Watch]string)}
	v.DelayOf = func(w *sim.Watch) time.Duration {
		v.Mu.Lock()
		defer v.Mu.Unlock()
		if v.watches[w] != "v2" {
			return 0
		}
		return time.Duration(v.late.Load())
	}
	return v
}

func (v *twoVersions) source(r object.Resource, ns string, f object.Form) cache.ListerWatcherWithContext {
	lw := versioned{v.Source(r, ns, f), v, r.Version}
	if r.Version == "v1" {
		return unserved{lw, &v.gone}
	}
	return lw
}

// of has a query be of a version. With "" it is of the one that is served.
func (v *twoVersions) of(version string, q query.Query) query.Query {
	resource := q.Kind
	q.Resolve = func(context.Context) (object.Resource, error) {
		r := sim.Resource(resource)
		switch {
		case version != "":
			r.Version = version
		case v.gone.Load():
			r.Version = "v2"
		}
		return r, nil
	}
	return q
}

// end ends the first version, and its watches.
func (v *twoVersions) end() {
	v.gone.Store(true)
	v.Mu.Lock()
	defer v.Mu.Unlock()
	for w, version := range v.watches {
		if version == "v1" {
			w.StopLocked()
		}
	}
}

// versioned notes the watches of a version.
type versioned struct {
	cache.ListerWatcherWithContext
	of      *twoVersions
	version string
}

func (v versioned) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := v.ListerWatcherWithContext.WatchWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	v.of.Mu.Lock()
	defer v.of.Mu.Unlock()
	v.of.watches[w.(*sim.Watch)] = v.version
	return w, nil
}

// TestG5AnotherVersionsWatchThatIsLateTakesNothingBack: the kind moves to a version that another
// reader watches already, and that watch is behind what was shown.
func TestG5AnotherVersionsWatchThatIsLateTakesNothingBack(t *testing.T) {
	no := labels.SelectorFromSet(labels.Set{"in": "no"})
	for what, change := range map[string]func(*query.Query){
		"one watch":          func(*query.Query) {},
		"several namespaces": func(q *query.Query) { q.Namespaces = []string{"ns", "other"} },
		"a union":            func(q *query.Query) { q.AnyOf = []object.Selection{{Labels: inYes}, {Labels: no}} },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newTwoVersions()
				streams := streamset.New(stream.Config{Source: sim.Plain(v.source)})
				defer streams.Close()
				v.Create("as", sim.Thing("x", "in", "yes"))
				v.Create("as", sim.Thing("y", "in", "no"))
				q := sim.Query("A", "as")
				change(&q)
				other := watching(t, streams, collect.Options{}, v.of("v2", q))
				require.True(t, signalled(other))
				a := watching(t, streams, collect.Options{}, v.of("", q))
				require.True(t, signalled(a))
				var snap one
				require.Equal(t, []string{"+x", "+y"}, told(update(t, a, &snap)))
				v.late.Store(int64(time.Hour))
				v.Remove("as", "x")
				v.Touch("as", "y", 1)
				require.True(t, signalled(a))
				require.Equal(t, []string{"-x", "~y"}, told(update(t, a, &snap)))
				v.end()
				for range 30 * 60 * 2 {
					sim.After(time.Second / 2)
					require.Empty(t, told(update(t, a, &snap)), "nothing is taken back")
				}
				v.late.Store(0)
				sim.After(time.Hour)
				assert.Empty(t, told(update(t, a, &snap)))
				v.Create("as", sim.Thing("z", "in", "yes"))
				require.True(t, signalled(a))
				assert.Equal(t, []string{"+z"}, told(update(t, a, &snap)))
			})
		})
	}
}

// TestG2AWatchOfAnotherVersionThatSaysNothingTakesOver: the former watch had a bookmark that the
// other one has not, so the server is asked whether that is all.
func TestG2AWatchOfAnotherVersionThatSaysNothingTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTwoVersions()
		streams := streamset.New(stream.Config{Source: sim.Plain(v.source)})
		defer streams.Close()
		v.Create("as", sim.Thing("x"))
		other := watching(t, streams, collect.Options{}, v.of("v2", sim.Query("A", "as")))
		require.True(t, signalled(other))
		a := watching(t, streams, collect.Options{}, v.of("", sim.Query("A", "as")))
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		v.late.Store(int64(24 * time.Hour))
		v.Put("bs", object.Key{Namespace: "ns", Name: "z"}, sim.Thing("z")) // a newer version
		v.Bookmarks()
		synctest.Wait()
		v.end()
		q := a.collector.Fields()[0].Query
		require.Len(t, q.Listeners(), 1)
		was := q.Listeners()[0]
		for range 60 {
			sim.After(time.Minute)
			assert.Empty(t, told(update(t, a, &snap)))
		}
		require.Len(t, q.Listeners(), 1)
		assert.NotSame(t, was, q.Listeners()[0])
	})
}

// TestG5AReaderOfAnotherVersionWhoseWatchIsLateSeesNothingComeBack is about one that looks objects
// up, without snapshots.
func TestG5AReaderOfAnotherVersionWhoseWatchIsLateSeesNothingComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTwoVersions()
		streams := streamset.New(stream.Config{Source: sim.Plain(v.source)})
		defer streams.Close()
		v.Create("as", sim.Thing("x"))
		other, err := lister.Open(t.Context(), streams, v.of("v2", sim.Query("A", "as")), collect.Options{})
		require.NoError(t, err)
		require.NoError(t, other.Wait(t.Context()))
		r, err := lister.Open(t.Context(), streams, v.of("", sim.Query("A", "as")), collect.Options{})
		require.NoError(t, err)
		require.NoError(t, r.Wait(t.Context()))
		v.late.Store(int64(time.Hour))
		v.Remove("as", "x")
		synctest.Wait()
		require.Empty(t, r.List("", nil))
		v.end()
		for range 30 * 60 * 2 {
			sim.After(time.Second / 2)
			require.Empty(t, r.List("", nil), "nothing comes back")
		}
		v.late.Store(0)
		sim.After(time.Hour)
		v.Create("as", sim.Thing("z"))
		synctest.Wait()
		assert.Len(t, r.List("", nil), 1)
	})
}

// TestG5AnotherVersionsWatchOfANamedObjectThatIsLateTakesNothingBack is about objects that others
// name: each has a watch of its own.
func TestG5AnotherVersionsWatchOfANamedObjectThatIsLateTakesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTwoVersions()
		streams := streamset.New(stream.Config{Source: sim.Plain(v.source)})
		defer streams.Close()
		v.Create("as", sim.Thing("a", "refs", "x.y"))
		v.Create("bs", sim.Thing("x"))
		v.Create("bs", sim.Thing("y"))
		of := func(version string) *Accumulator {
			var all []query.Query
			for _, q := range namingQueries() {
				all = append(all, v.of(version, q))
			}
			a := watching(t, streams, collect.Options{}, all...)
			require.True(t, signalled(a))
			return a
		}
		of("v2")
		a := of("")
		var snap two
		update(t, a, &snap)
		require.Equal(t, "a / x y", shownIn(snap))
		v.late.Store(int64(time.Hour))
		v.Remove("bs", "x")
		v.Touch("bs", "y", 1)
		synctest.Wait()
		update(t, a, &snap)
		require.Equal(t, "a / y", shownIn(snap))
		touched := snap.B[0].GetResourceVersion()
		v.end()
		for range 30 * 60 * 2 {
			sim.After(time.Second / 2)
			require.Empty(t, told(update(t, a, &snap)), "nothing is taken back")
			require.Equal(t, "a / y", shownIn(snap))
		}
		v.late.Store(0)
		sim.After(time.Hour)
		update(t, a, &snap)
		require.Equal(t, "a / y", shownIn(snap))
		assert.Equal(t, touched, snap.B[0].GetResourceVersion())
		v.Create("bs", sim.Thing("x"))
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, "a / x y", shownIn(snap))
	})
}
