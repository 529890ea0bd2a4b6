package accumulator

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

var inYes = labels.SelectorFromSet(labels.Set{"in": "yes"})

// sharing runs a test while an accumulator watches all objects of a resource, and queries may be
// served from that watch.
func sharing(t *testing.T, f func(t *testing.T, s *sim.Server, streams *streamset.Set)) {
	t.Helper()
	sim.Bubble(t, stream.Config{Share: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a", "in", "yes"))
		s.Create("as", sim.Thing("b"))
		s.Create("as", sim.In("other", "c", "in", "yes"))
		wide := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(wide))
		f(t, s, streams)
	})
}

func labelled() query.Query {
	q := sim.Query("A", "as")
	q.Labels = inYes
	return q
}

func TestAQueryForAPartIsServedByAWatchOfAll(t *testing.T) {
	sharing(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, labelled())
		require.True(t, signalled(a))
		var snap one
		assert.Equal(t, []string{"+a", "+c"}, told(update(t, a, &snap)))
		assert.Equal(t, 1, streams.Len())
		assert.Equal(t, 1, s.Opened("as"), "the server is asked for all objects, once")
		st := a.Status()[0]
		assert.Equal(t, 2, st.Objects)
		assert.Equal(t, "of a wider watch", st.Form)

		s.Touch("as", "b", 1)
		assert.False(t, signalled(a), "the query does not have it")
		assert.False(t, update(t, a, &snap).Changed)
		s.Relabel("b", "in", "yes")
		assert.True(t, signalled(a))
		assert.Equal(t, []string{"+b"}, told(update(t, a, &snap)))
		sim.After(time.Minute)
		s.Relabel("a", "in", "no")
		assert.True(t, signalled(a))
		assert.Equal(t, []string{"-a"}, told(update(t, a, &snap)))
		s.Remove("as", "a")
		synctest.Wait()
		assert.Empty(t, told(update(t, a, &snap)))
		s.Relabel("b", "in", "yes", "n", "2")
		synctest.Wait()
		assert.Equal(t, []string{"~b"}, told(update(t, a, &snap)))
	})
}

func TestG4OwnWritesMoveObjectsIntoAndOutOfAPart(t *testing.T) {
	sharing(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, labelled())
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		s.Late(time.Hour)
		o := sim.NewClient(s, streams)
		o.Put("as", s.Relabelled("b", "in", "yes"), 0)
		assert.Equal(t, []string{"+b"}, told(update(t, a, &snap)))
		o.Put("as", s.Relabelled("b", "in", "no"), 0)
		assert.Equal(t, []string{"-b"}, told(update(t, a, &snap)))
		require.True(t, o.Delete("as", "a", 0, true))
		assert.Equal(t, []string{"-a"}, told(update(t, a, &snap)))
		sim.After(3 * time.Hour)
		synctest.Wait()
		assert.False(t, update(t, a, &snap).Changed)
		assert.Equal(t, []string{"c"}, sim.Names(snap.A))
	})
}

func TestQuietOwnWritesOfOtherObjectsDoNotSignalAPart(t *testing.T) {
	sharing(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		var woken int
		l, err := streams.Join(sim.Resource("as"), object.Spec{Selection: object.Selection{Labels: inYes}},
			stream.ListenOptions{PerKey: true, QuietOwn: true, Wake: func() { woken++ }})
		require.NoError(t, err)
		defer l.Close()
		require.Len(t, l.Take().Changes, 2)
		for name, worth := range map[string]int{"b": 0, "a": 1} {
			woken = 0
			w := streams.Begin(sim.Resource("as"), object.Key{Namespace: "ns", Name: name})
			s.Touch("as", name, 1) // somebody else's, while an own write is under way that then fails
			synctest.Wait()
			w.Abandon()
			assert.Equal(t, worth, woken, name)
		}
	})
}

func TestNamespacesOfAQueryAreServedByAWatchOfAll(t *testing.T) {
	sharing(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q := sim.Query("A", "as")
		q.Namespaces = []string{"other", "ns"}
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		assert.Equal(t, []string{"+a", "+b", "+c"}, told(update(t, a, &snap)))
		assert.Equal(t, 1, streams.Len())
		q.Namespaces = []string{"other"}
		require.NoError(t, a.Replace(t.Context(), q))
		synctest.Wait()
		assert.Equal(t, []string{"-a", "-b"}, told(update(t, a, &snap)))
		s.Remove("as", "a")
		assert.False(t, signalled(a) && update(t, a, &snap).Changed)
	})
}

func TestANamespaceIsServedByAWatchOfAll(t *testing.T) {
	sharing(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q := sim.Query("A", "as")
		q.Namespace = "other"
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		assert.Equal(t, []string{"+c"}, told(update(t, a, &snap)))
		s.Touch("as", "a", 1)
		assert.False(t, signalled(a))
		assert.Equal(t, 1, streams.Len())
	})
}

func TestMetadataIsServedByAWatchOfWholeObjects(t *testing.T) {
	sharing(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q := sim.Query("A", "as")
		q.Form = object.Metadata
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap, again struct {
			A []*metav1.PartialObjectMetadata
		}
		assert.Equal(t, []string{"+a", "+b", "+c"}, told(update(t, a, &snap)))
		assert.Equal(t, 1, streams.Len())
		assert.Equal(t, "Thing", snap.A[0].Kind)
		assert.Equal(t, "yes", snap.A[0].Labels["in"])
		s.Touch("as", "b", 1)
		synctest.Wait()
		assert.Equal(t, []string{"~b"}, told(update(t, a, &again)))
		assert.Same(t, snap.A[0], again.A[0], "one version is one pointer")
		l := listener(a, 0)
		b := object.Key{Namespace: "ns", Name: "b"}
		assert.Same(t, l.Get(b), l.Get(b))
		assert.Same(t, again.A[1], l.Get(b))
		assert.Equal(t, "metadata of a wider watch", a.Status()[0].Form)
	})
}

func TestAnObjectThatDoesNotDecodeIsInvalidWhereItIsSelected(t *testing.T) {
	typedOrShared(t, true, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a", "in", "yes"))
		s.Create("as", sim.Thing("broken", "bad", "yes"))
		s.Create("as", sim.Thing("selected", "bad", "yes", "in", "yes"))
		q := sim.Query("A", "as")
		q.Form = object.Typed
		wide := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(wide))
		q.Labels = inYes
		part := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(part))
		r := update(t, part, &things{})
		require.Len(t, r.Invalid, 1)
		assert.Equal(t, "selected", r.Invalid[0].Object.GetName())

		m := sim.Query("A", "as")
		m.Form = object.Metadata
		short := watching(t, streams, collect.Options{}, m)
		require.True(t, signalled(short))
		var snap struct {
			A []*metav1.PartialObjectMetadata
		}
		assert.Empty(t, update(t, short, &snap).Invalid, "its metadata decodes")
		require.Len(t, snap.A, 3)
		assert.Equal(t, map[string]string{"bad": "yes"}, snap.A[1].Labels)
		assert.Equal(t, 1, streams.Len())
	})
}

func TestAQueryHasAWatchOfItsOwnWhereNoOtherIsSure(t *testing.T) {
	node := sim.Query("A", "as")
	node.Fields = fields.OneTermEqualSelector("spec.node", "n1")
	readable := sim.Resource("as")
	readable.Field = sim.Field
	fielded := sim.Query("A", "as")
	fielded.Resolve = func(context.Context) (object.Resource, error) { return readable, nil }
	fielded.AnyOf = []object.Selection{{Labels: inYes}, {Fields: node.Fields}}
	changed := labelled()
	changed.Transform = &object.Transform{Do: func(object.Object) error { return nil }}
	typed := labelled()
	typed.Form = object.Typed
	for what, c := range map[string]struct {
		query query.Query
		own   int
	}{
		"a field that only the server can judge": {node, 1}, "an alternative by a field": {fielded, 1}, "alternatives by labels": {either("l", "r"), 0}, "a transform": {changed, 1}, "another form": {typed, 1},
	} {
		t.Run(what, func(t *testing.T) {
			sharing(t, func(t *testing.T, _ *sim.Server, streams *streamset.Set) {
				watching(t, streams, collect.Options{}, c.query)
				assert.Equal(t, 1+c.own, streams.Len())
			})
		})
	}
	t.Run("a watch in trouble", func(t *testing.T) {
		sharing(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			s.Failing(func(string, string) error { return fmt.Errorf("no") })
			s.Cut()
			synctest.Wait()
			watching(t, streams, collect.Options{}, labelled())
			assert.Equal(t, 2, streams.Len())
		})
	})
	t.Run("many queries", func(t *testing.T) {
		sharing(t, func(t *testing.T, _ *sim.Server, streams *streamset.Set) {
			q := sim.Query("A", "as")
			for i := range 66 {
				q.Namespaces = append(q.Namespaces, fmt.Sprint("ns", i))
			}
			watching(t, streams, collect.Options{}, q)
			assert.Equal(t, 1+66-64, streams.Len())
		})
	})
	t.Run("without the option", func(t *testing.T) {
		sim.Bubble(t, stream.Config{}, func(t *testing.T, _ *sim.Server, streams *streamset.Set) {
			require.True(t, signalled(watching(t, streams, collect.Options{}, sim.Query("A", "as"))))
			watching(t, streams, collect.Options{}, labelled())
			assert.Equal(t, 2, streams.Len())
		})
	})
}

func TestG11APartKeepsTheWholeWatchUntilItEnds(t *testing.T) {
	sim.Bubble(t, stream.Config{Share: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		wide := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(wide))
		part := watching(t, streams, collect.Options{}, labelled())
		require.True(t, signalled(part))
		wide.Close()
		var snap one
		update(t, part, &snap)
		s.Create("as", sim.Thing("a", "in", "yes"))
		synctest.Wait()
		assert.Equal(t, []string{"+a"}, told(update(t, part, &snap)))
		assert.Equal(t, 1, streams.Len())
		part.Close()
		assert.Zero(t, streams.Len())
	})
}
