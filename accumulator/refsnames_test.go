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

	"github.com/kates-go/kates/accumulator/stream"
)

// scoped returns a query whose kind is served as the test says.
func scoped(q Query, served, namespaced *atomic.Bool) Query {
	q.Resolve = func(context.Context) (Resource, error) {
		r := simResource(q.Kind)
		r.Namespaced = namespaced.Load()
		if !served.Load() {
			return r, ErrNotServed
		}
		return r, nil
	}
	return q
}

// TestG6G8AnObjectIsNeverThereThatIsNamedWhereThereCanBeNone: otherwise the request has another
// path, which a user of the program could choose.
func TestG6G8AnObjectIsNeverThereThatIsNamedWhereThereCanBeNone(t *testing.T) {
	for what, key := range map[string]Key{
		"no namespace": {Name: "x"}, "all namespaces": {Namespace: "..", Name: "x"}, "another kind's": {Namespace: "ns/others", Name: "x"},
		"no name": {Namespace: "ns", Name: "x/y"},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
				var served, namespaced atomic.Bool
				served.Store(true)
				asked := key
				queries := namingQueries()
				queries[1] = scoped(queries[1], &served, &namespaced)
				queries[0].Refs[0].Names = func(Object) ([]Key, error) { return []Key{asked}, nil }
				s.create("as", in("", "a"))
				s.create("bs", in("ns1", "x"))
				s.create("bs", in("ns2", "x"))
				a := watching(t, streams, Options{}, queries...)
				require.True(t, signalled(a), "it holds nothing up")
				assert.Equal(t, "a / ", now(t, a))
				assert.Zero(t, s.opened("bs"))
				asked = Key{Namespace: "ns1", Name: "x"}
				s.create("as", in("", "a"))
				assert.Equal(t, "a / x", now(t, a))
				s.put("as", Key{Name: "a"}, nil)
				assert.Equal(t, " / ", now(t, a))
				assert.Empty(t, a.fieldsNow()[0].refs.named)
			})
		})
	}
}

func TestG1G6NamesAreReadAgainWhereTheirKindTurnsOutToHaveNoNamespaces(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true, KindPoll: time.Minute}, func(t *testing.T, s *sim, streams *stream.Set) {
		var served, namespaced atomic.Bool
		queries := namingQueries()
		queries[0] = scoped(queries[0], &served, &namespaced)
		queries[0].Optional = true
		s.create("as", thing("a", "refs", "x"))
		s.create("as", in("other", "b", "refs", "x"))
		s.create("bs", in("", "x"))
		a := watching(t, streams, Options{}, queries...)
		require.True(t, signalled(a))
		assert.Equal(t, "a b / ", now(t, a), "nobody knows what is named")
		served.Store(true)
		after(10 * time.Minute)
		assert.True(t, signalled(a))
		assert.Equal(t, "a b / x", now(t, a))
		assert.Len(t, a.fieldsNow()[0].refs.named, 1, "both name the same")
		s.create("as", in("other", "b"))
		assert.Equal(t, "a b / x", now(t, a))
		s.remove("as", "a")
		assert.Equal(t, "b / ", now(t, a))
		assert.Empty(t, a.fieldsNow()[0].refs.named)
	})
}

// TestG1G6NamesAreReadAgainWhereTheirKindIsReplacedByOneWithNamespaces: the custom resource
// definition is deleted, and created again.
func TestG1G6NamesAreReadAgainWhereTheirKindIsReplacedByOneWithNamespaces(t *testing.T) {
	for _, unseen := range []bool{false, true} {
		for _, optional := range []bool{false, true} {
			var served, namespaced atomic.Bool
			served.Store(true)
			config := stream.Config{StreamLists: true, KindPoll: time.Minute, Gone: func(context.Context, Resource, string, error) bool { return !served.Load() && !unseen }}
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				queries := namingQueries()
				queries[0] = scoped(queries[0], &served, &namespaced)
				queries[0].Optional = optional
				s.create("as", thing("a", "refs", "x"))
				s.create("as", in("other", "b", "refs", "x"))
				s.create("bs", in("", "x"))
				a := watching(t, streams, Options{}, queries...)
				require.True(t, signalled(a))
				assert.Equal(t, "a b / x", now(t, a))
				served.Store(false)
				s.failing(func(_, resource string) error {
					if resource == "bs" {
						return apierrors.NewNotFound(schema.GroupResource{Resource: "bs"}, "")
					}
					return nil
				})
				s.cut()
				s.put("bs", Key{Name: "x"}, nil)
				after(10 * time.Minute)
				assert.Equal(t, map[bool]string{false: "a b / ", true: "a b / x"}[unseen], now(t, a))
				for _, namespace := range []string{"ns", "other", "nobody's"} {
					s.create("bs", in(namespace, "x"))
				}
				served.Store(true)
				namespaced.Store(true)
				after(2 * time.Minute)
				s.failing(nil)
				after(10 * time.Minute)
				assert.Equal(t, "a b / x x", now(t, a))
				s.put("as", Key{Namespace: "other", Name: "b"}, nil)
				assert.Equal(t, "a / x", now(t, a))
				s.remove("as", "a")
				assert.Equal(t, " / ", now(t, a))
				assert.Empty(t, a.fieldsNow()[0].refs.named)
			})
		}
	}
}

// While a reader takes what has changed of the named objects, their kind turns out to be served in
// another version, and each is watched anew. The race detector sees whether the reader and the
// manager touch a reference at the same time: neither waits for the other one here. It remembers a
// few reads only, so it misses one of six. Hence the repetition.
func TestG6G8NamedObjectsAreWatchedAnewWhileAReaderTakesThem(t *testing.T) {
	for i := range 10 {
		p := []stream.Point{stream.AtNamed, stream.AtTake}[i%2]
		t.Run(string(p), func(t *testing.T) {
			var version atomic.Value
			version.Store("v1")
			var armed, refused atomic.Bool
			points := func(m stream.Moment) {
				if m.Point != p || p == stream.AtTake && !strings.HasPrefix(m.Stream.String(), "v1/bs ") {
					return
				}
				if armed.CompareAndSwap(true, false) {
					after(2 * time.Minute)
				}
			}
			config := stream.Config{KindPoll: 10 * time.Second, Points: points}
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				queries := namingQueries()
				queries[0].Resolve = func(context.Context) (Resource, error) {
					r := simResource("bs")
					r.Version = version.Load().(string)
					return r, nil
				}
				s.create("as", thing("a", "refs", "x.y"))
				s.create("bs", thing("x"))
				s.create("bs", thing("y"))
				a := watching(t, streams, Options{}, queries...)
				require.True(t, signalled(a))
				require.Equal(t, "a / x y", now(t, a))

				refused.Store(true)
				s.failing(func(_, resource string) error {
					if resource == "bs" && refused.Load() {
						return apierrors.NewNotFound(schema.GroupResource{Resource: "bs"}, "")
					}
					return nil
				})
				s.touch("bs", "x", 1)
				s.touch("bs", "y", 1)
				synctest.Wait()
				before := a.fieldsNow()[0].parts
				s.cut() // the manager looks again 10 seconds later
				time.AfterFunc(9950*time.Millisecond, func() { version.Store("v2") })
				time.AfterFunc(time.Minute, func() { refused.Store(false) })
				after(9900 * time.Millisecond)
				armed.Store(true)
				assert.Equal(t, "a / x y", now(t, a))
				require.False(t, armed.Load(), "the point was reached")
				assert.NotEqual(t, before, a.fieldsNow()[0].parts, "they are watched anew")
				s.touch("bs", "x", 2)
				s.remove("bs", "y")
				assert.Equal(t, "a / x", now(t, a))
				for _, p := range a.fieldsNow()[0].parts {
					assert.Contains(t, p.sub.Stream().String(), "v2/bs ")
				}
			})
		})
	}
}
