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

	"github.com/kates-go/kates/accumulator/collect"
	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/suite/sim"
)

// twoVersions serves the resource "as" in two versions. The first may go, and the watches of the
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

func (v *twoVersions) source(r stream.Resource, ns string, f stream.Form) cache.ListerWatcherWithContext {
	lw := versioned{v.Source(r, ns, f), v, r.Version}
	if r.Version == "v1" {
		return unserved{lw, &v.gone}
	}
	return lw
}

// query returns a query of a version. With "" it is of the one that is served.
func (v *twoVersions) query(version string) query.Query {
	q := sim.Query("A", "as")
	q.Resolve = func(context.Context) (stream.Resource, error) {
		r := sim.Resource("as")
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
		"a union":            func(q *query.Query) { q.AnyOf = []stream.Selection{{Labels: inYes}, {Labels: no}} },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newTwoVersions()
				streams := stream.New(stream.Config{Source: sim.Plain(v.source)})
				defer streams.Close()
				v.Create("as", sim.Thing("x", "in", "yes"))
				v.Create("as", sim.Thing("y", "in", "no"))
				of := func(version string) query.Query {
					q := v.query(version)
					change(&q)
					return q
				}
				other := watching(t, streams, collect.Options{}, of("v2"))
				require.True(t, signalled(other))
				a := watching(t, streams, collect.Options{}, of(""))
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

// TestG5AReaderOfAnotherVersionWhoseWatchIsLateSeesNothingComeBack is about one that looks objects
// up, without snapshots.
func TestG5AReaderOfAnotherVersionWhoseWatchIsLateSeesNothingComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTwoVersions()
		streams := stream.New(stream.Config{Source: sim.Plain(v.source)})
		defer streams.Close()
		v.Create("as", sim.Thing("x"))
		other, err := Open(t.Context(), streams, v.query("v2"))
		require.NoError(t, err)
		require.NoError(t, other.Wait(t.Context()))
		r, err := Open(t.Context(), streams, v.query(""))
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
