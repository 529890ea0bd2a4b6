package accumulator

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// TestG6G8AnObjectIsNeverThereThatIsNamedWhereThereCanBeNone: otherwise the request has another
// path, which a user of the program could choose.
func TestG6G8AnObjectIsNeverThereThatIsNamedWhereThereCanBeNone(t *testing.T) {
	for what, key := range map[string]object.Key{
		"no namespace": {Name: "x"}, "all namespaces": {Namespace: "..", Name: "x"}, "another kind's": {Namespace: "ns/others", Name: "x"},
		"no name": {Namespace: "ns", Name: "x/y"},
	} {
		t.Run(what, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				var served, namespaced atomic.Bool
				served.Store(true)
				asked := key
				queries := namingQueries()
				queries[1] = sim.Scoped(queries[1], &served, &namespaced)
				queries[0].Refs[0].Names = func(object.Object) ([]object.Key, error) { return []object.Key{asked}, nil }
				s.Create("as", sim.In("", "a"))
				s.Create("bs", sim.In("ns1", "x"))
				s.Create("bs", sim.In("ns2", "x"))
				a := watching(t, streams, collect.Options{}, queries...)
				require.True(t, signalled(a), "it holds nothing up")
				assert.Equal(t, "a / ", now(t, a))
				assert.Zero(t, s.Opened("bs"))
				asked = object.Key{Namespace: "ns1", Name: "x"}
				s.Create("as", sim.In("", "a"))
				assert.Equal(t, "a / x", now(t, a))
				s.Put("as", object.Key{Name: "a"}, nil)
				assert.Equal(t, " / ", now(t, a))
				assert.Zero(t, a.collector.Fields()[0].Query.State().Waits)
			})
		})
	}
}

func TestG1G6NamesAreReadAgainWhereTheirKindTurnsOutToHaveNoNamespaces(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true, KindPoll: time.Minute}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		var served, namespaced atomic.Bool
		queries := namingQueries()
		queries[0] = sim.Scoped(queries[0], &served, &namespaced)
		queries[0].Optional = true
		s.Create("as", sim.Thing("a", "refs", "x"))
		s.Create("as", sim.In("other", "b", "refs", "x"))
		s.Create("bs", sim.In("", "x"))
		a := watching(t, streams, collect.Options{}, queries...)
		require.True(t, signalled(a))
		assert.Equal(t, "a b / ", now(t, a), "nobody knows what is named")
		served.Store(true)
		sim.After(10 * time.Minute)
		assert.True(t, signalled(a))
		assert.Equal(t, "a b / x", now(t, a))
		assert.Equal(t, 1, a.collector.Fields()[0].Query.State().Waits.Named, "both name the same")
		s.Create("as", sim.In("other", "b"))
		assert.Equal(t, "a b / x", now(t, a))
		s.Remove("as", "a")
		assert.Equal(t, "b / ", now(t, a))
		assert.Zero(t, a.collector.Fields()[0].Query.State().Waits)
	})
}

// TestG1G6NamesAreReadAgainWhereTheirKindIsReplacedByOneWithNamespaces: the custom resource
// definition is deleted, and created again.
func TestG1G6NamesAreReadAgainWhereTheirKindIsReplacedByOneWithNamespaces(t *testing.T) {
	for _, unseen := range []bool{false, true} {
		for _, optional := range []bool{false, true} {
			var served, namespaced atomic.Bool
			served.Store(true)
			config := stream.Config{StreamLists: true, KindPoll: time.Minute, Gone: func(context.Context, object.Resource, string, error) bool { return !served.Load() && !unseen }}
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				queries := namingQueries()
				queries[0] = sim.Scoped(queries[0], &served, &namespaced)
				queries[0].Optional = optional
				s.Create("as", sim.Thing("a", "refs", "x"))
				s.Create("as", sim.In("other", "b", "refs", "x"))
				s.Create("bs", sim.In("", "x"))
				a := watching(t, streams, collect.Options{}, queries...)
				require.True(t, signalled(a))
				assert.Equal(t, "a b / x", now(t, a))
				served.Store(false)
				s.Failing(func(_, resource string) error {
					if resource == "bs" {
						return apierrors.NewNotFound(schema.GroupResource{Resource: "bs"}, "")
					}
					return nil
				})
				s.Cut()
				s.Put("bs", object.Key{Name: "x"}, nil)
				sim.After(10 * time.Minute)
				assert.Equal(t, map[bool]string{false: "a b / ", true: "a b / x"}[unseen], now(t, a))
				for _, namespace := range []string{"ns", "other", "nobody's"} {
					s.Create("bs", sim.In(namespace, "x"))
				}
				served.Store(true)
				namespaced.Store(true)
				sim.After(2 * time.Minute)
				s.Failing(nil)
				sim.After(10 * time.Minute)
				assert.Equal(t, "a b / x x", now(t, a))
				s.Put("as", object.Key{Namespace: "other", Name: "b"}, nil)
				assert.Equal(t, "a / x", now(t, a))
				s.Remove("as", "a")
				assert.Equal(t, " / ", now(t, a))
				assert.Zero(t, a.collector.Fields()[0].Query.State().Waits)
			})
		}
	}
}

// While a reader takes what has changed of the named objects, their kind turns out to be served in
// another version, and each is watched anew.
func TestG6G8NamedObjectsAreWatchedAnewWhileAReaderTakesThem(t *testing.T) {
	for _, p := range []stream.Point{stream.AtNamed, stream.AtTake} {
		t.Run(string(p), func(t *testing.T) {
			var version atomic.Value
			version.Store("v1")
			var armed, refused atomic.Bool
			points := func(m stream.Moment) {
				if m.Point != p || p == stream.AtTake && !strings.HasPrefix(m.Stream.String(), "v1/bs ") {
					return
				}
				if armed.CompareAndSwap(true, false) {
					sim.After(2 * time.Minute)
				}
			}
			config := stream.Config{KindPoll: 10 * time.Second, Points: points}
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				queries := namingQueries()
				queries[0].Resolve = func(context.Context) (object.Resource, error) {
					r := sim.Resource("bs")
					r.Version = version.Load().(string)
					return r, nil
				}
				s.Create("as", sim.Thing("a", "refs", "x.y"))
				s.Create("bs", sim.Thing("x"))
				s.Create("bs", sim.Thing("y"))
				a := watching(t, streams, collect.Options{}, queries...)
				require.True(t, signalled(a))
				require.Equal(t, "a / x y", now(t, a))

				refused.Store(true)
				s.Failing(func(_, resource string) error {
					if resource == "bs" && refused.Load() {
						return apierrors.NewNotFound(schema.GroupResource{Resource: "bs"}, "")
					}
					return nil
				})
				s.Touch("bs", "x", 1)
				s.Touch("bs", "y", 1)
				synctest.Wait()
				before := a.collector.Fields()[0].Query.Listeners()
				s.Cut() // the manager looks again 10 seconds later
				time.AfterFunc(9950*time.Millisecond, func() { version.Store("v2") })
				time.AfterFunc(time.Minute, func() { refused.Store(false) })
				sim.After(9900 * time.Millisecond)
				armed.Store(true)
				assert.Equal(t, "a / x y", now(t, a))
				require.False(t, armed.Load(), "the point was reached")
				assert.NotEqual(t, before, a.collector.Fields()[0].Query.Listeners(), "they are watched anew")
				s.Touch("bs", "x", 2)
				s.Remove("bs", "y")
				assert.Equal(t, "a / x", now(t, a))
				for _, l := range a.collector.Fields()[0].Query.Listeners() {
					assert.Contains(t, l.Stream().String(), "v2/bs ")
				}
			})
		})
	}
}

// The race detector fails this test if a reader reads a reference without the lock under which it
// is watched anew. While the reader takes from the stream of one of two references, neither is
// watched, and the reader takes no lock before it turns to the other one.
func TestReferencesAreWatchedAnewWhileAReaderTakesThem(t *testing.T) {
	var taking, unwatched, taken unseen
	var sources source.Sources
	config := stream.Config{
		Points: func(m stream.Moment) {
			if m.Point == stream.AtTake && strings.HasPrefix(m.Stream.String(), "v1/bs ") {
				taking.take()
				unwatched.wait()
			}
		},
		Source: func(r object.Resource, namespace string, form object.Form) source.Source {
			if r.Version == "v2" {
				unwatched.take()
				taken.wait()
			}
			return sources(r, namespace, form)
		},
	}
	sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		sources = sim.Plain(s.Source)
		var version atomic.Value
		version.Store("v1")
		queries := namingQueries()
		queries[0].Resolve = func(context.Context) (object.Resource, error) {
			r := sim.Resource("bs")
			r.Version = version.Load().(string)
			return r, nil
		}
		s.Create("as", sim.Thing("a", "refs", "x.y"))
		s.Create("bs", sim.Thing("x"))
		s.Create("bs", sim.Thing("y"))
		a := watching(t, streams, collect.Options{}, queries...)
		require.True(t, signalled(a))
		named := a.collector.Fields()[0].Query
		version.Store("v2")
		done := make(chan struct{})
		go func() {
			defer close(done)
			taking.wait()
			named.Base().(interface{ Resolve(context.Context) }).Resolve(t.Context())
		}()
		var snap two
		update(t, a, &snap)
		taken.take()
		<-done
		for _, l := range named.Listeners() {
			assert.Contains(t, l.Stream().String(), "v2/bs ")
		}
		s.Remove("bs", "x")
		assert.Equal(t, "a / y", now(t, a))
	})
}
