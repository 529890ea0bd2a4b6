package accumulator

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// goThing is the Go type of the simulated server's objects.
type goThing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]any `json:"spec"`
}

// compactions are how objects were compacted, by the object.
var compactions sync.Map

type compaction struct {
	final  []bool
	before []string // versions
}

func compactionOf(o *goThing) compaction {
	c, _ := compactions.LoadOrStore(o, compaction{})
	return c.(compaction)
}

// DeepCopyObject returns a copy.
func (o *goThing) DeepCopyObject() runtime.Object {
	c := *o
	c.ObjectMeta = *o.ObjectMeta.DeepCopy()
	return &c
}

var errBad = errors.New("it does not decode")

// typedSim decodes what the simulated server sends, like a source of typed objects. Objects with
// the label bad do not decode.
type typedSim struct{ source.Plain }

func (typedSim) Form() object.Form { return object.Typed + " from tests" }

func (typedSim) Typed(u *unstructured.Unstructured) (object.Object, error) {
	if u.GetLabels()["bad"] != "" {
		return nil, errBad
	}
	o := &goThing{TypeMeta: metav1.TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()}}
	o.Name, o.Namespace, o.UID, o.ResourceVersion, o.Labels = u.GetName(), u.GetNamespace(), u.GetUID(), u.GetResourceVersion(), u.GetLabels()
	o.Spec, _, _ = unstructured.NestedMap(u.Object, "spec")
	return o, nil
}

func (typedSim) Compact(o, before object.Object, final bool) {
	c := compactionOf(o.(*goThing))
	c.final = append(c.final, final)
	if before != nil {
		c.before = append(c.before, before.GetName()+"@"+before.GetResourceVersion())
	}
	compactions.Store(o, c)
}

func (s typedSim) decode(u *unstructured.Unstructured) object.Object {
	o, err := s.Typed(u)
	if err != nil {
		metadata, _ := object.Shorten(u, u.GroupVersionKind())
		return object.Undecoded(sim.Resource("as"), object.KeyOf(u), u.GetUID(), u.GetResourceVersion(), metadata, object.Original{}, err)
	}
	return o
}

func (s typedSim) ListItems(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (m metav1.ListMeta, err error) {
	list, err := s.ListWithContext(ctx, o)
	if err != nil {
		return m, err
	}
	whole := list.(*unstructured.UnstructuredList)
	for i := range whole.Items {
		if err := put(s.decode(&whole.Items[i])); err != nil {
			return m, err
		}
	}
	m.ResourceVersion, m.Continue = whole.GetResourceVersion(), whole.GetContinue()
	return m, nil
}

func (s typedSim) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := s.ListerWatcherWithContext.WatchWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	return newShortWatch(w, func(e watch.Event) runtime.Object {
		if u, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Bookmark {
			return s.decode(u)
		}
		return e.Object
	}), nil
}

type things struct{ A []*goThing }

func inTyped(t *testing.T, f func(t *testing.T, s *sim.Server, streams *streamset.Set)) {
	typedOrShared(t, false, f)
}

// typedOrShared is inTyped; with share, a query may be served from a wider stream.
func typedOrShared(t *testing.T, share bool, f func(t *testing.T, s *sim.Server, streams *streamset.Set)) {
	for name, config := range map[string]stream.Config{"streamed": {StreamLists: true}, "paged": {PageSize: 1}} {
		t.Run(name, func(t *testing.T) {
			var s *sim.Server
			config.Share = share
			config.Source = sim.Plain(func(r object.Resource, namespace string, form object.Form) cache.ListerWatcherWithContext {
				if form == object.Typed {
					return typedSim{source.Plain{ListerWatcherWithContext: s.Source(r, namespace, form)}}
				}
				return s.Source(r, namespace, form)
			})
			sim.Bubble(t, config, func(t *testing.T, fresh *sim.Server, streams *streamset.Set) {
				s = fresh
				f(t, s, streams)
			})
		})
	}
}

func typedQuery() query.Query {
	q := sim.Query("A", "as")
	q.Form = object.Typed
	return q
}

func called(objects []*goThing) (all []string) {
	for _, o := range objects {
		all = append(all, o.Kind+" "+o.Name)
	}
	return all
}

func TestG4OwnWritesMoveTypedObjectsInAndOutOfAQueryThoughTheWatchIsLate(t *testing.T) {
	for name, transform := range map[string]*object.Transform{"plain": nil, "transformed": {Do: func(o object.Object) error { o.(*goThing).Labels = nil; return nil }}} {
		t.Run(name, func(t *testing.T) {
			inTyped(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("a", "in", "yes"))
				s.Create("as", sim.Thing("b", "in", "yes"))
				q := typedQuery()
				q.Labels, q.Transform = labels.SelectorFromSet(labels.Set{"in": "yes"}), transform
				acc := watching(t, streams, collect.Options{}, q)
				synctest.Wait()
				var snap things
				update(t, acc, &snap)
				require.Equal(t, []string{"Thing a", "Thing b"}, called(snap.A))
				s.Late(10 * second)
				for _, in := range []string{"yes", "no", "yes"} {
					sim.NewClient(s, streams).Put("as", sim.Thing("x", "in", in), 0)
					update(t, acc, &snap)
					require.Len(t, snap.A, map[string]int{"yes": 3, "no": 2}[in])
				}
				shown := snap.A[2]
				assert.Equal(t, transform == nil, shown.Labels != nil)
				for _, o := range snap.A {
					assert.Equal(t, []bool{transform == nil}, compactionOf(o).final, "once, before anybody has it")
				}
				sim.After(60 * second)
				assert.False(t, update(t, acc, &snap).Changed, "the event of an own write is nothing new")
				assert.Same(t, shown, snap.A[2])
				assert.Zero(t, acc.Status()[0].Pending)
				assert.Equal(t, "typed from tests", acc.Status()[0].Form)
				typed := streams.Newest(sim.Resource("as"), object.Key{Namespace: "ns", Name: "x"}, func(o object.Object) bool { return !object.IsWhole(o) })
				assert.Equal(t, transform == nil, typed != nil, "a transform may have left something out")
				assert.Nil(t, streams.Newest(sim.Resource("as"), object.Key{Namespace: "ns", Name: "x"}, object.IsWhole), "typed objects may be less than the server sent")
				sim.NewClient(s, streams).Delete("as", "x", 0, false)
				update(t, acc, &snap)
				assert.Len(t, snap.A, 2)
			})
		})
	}
}

func TestG8TypedObjectsThatDoNotDecodeAreLeftOutAndHealByTheirNextVersion(t *testing.T) {
	inTyped(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("listed", "bad", "yes", "in", "yes"))
		s.Create("as", sim.Thing("good", "in", "yes"))
		q := typedQuery()
		q.Labels, _ = labels.Parse("in=yes")
		q.Transform = &object.Transform{Do: func(object.Object) error { return nil }}
		acc := watching(t, streams, collect.Options{}, q)
		synctest.Wait()
		s.Create("as", sim.Thing("watched", "bad", "yes", "in", "yes"))
		synctest.Wait()
		s.Late(10 * second)
		sim.NewClient(s, streams).Put("as", sim.Thing("written", "bad", "yes", "in", "yes"), 0)
		var snap things
		r := update(t, acc, &snap)
		assert.Equal(t, []string{"Thing good"}, called(snap.A))
		require.Len(t, r.Invalid, 3)
		for i, name := range []string{"listed", "watched", "written"} {
			require.ErrorIs(t, r.Invalid[i].Err, errBad)
			require.ErrorIs(t, object.Fault(r.Invalid[i].Object), errBad)
			assert.Equal(t, name, r.Invalid[i].Object.GetName())
			assert.Equal(t, "Thing", r.Invalid[i].Object.GetObjectKind().GroupVersionKind().Kind)
			assert.NotEmpty(t, r.Invalid[i].Object.GetUID())
		}
		sim.After(20 * second)
		assert.False(t, update(t, acc, &snap).Changed, "the event of what did not decode is nothing new")
		sim.NewClient(s, streams).Put("as", sim.Thing("written", "in", "yes"), 0)
		s.Put("as", object.Key{Namespace: "ns", Name: "watched"}, sim.Thing("watched", "in", "yes"))
		s.Put("as", object.Key{Namespace: "ns", Name: "listed"}, sim.Thing("listed", "in", "yes"))
		sim.After(60 * second)
		assert.Empty(t, update(t, acc, &snap).Invalid)
		assert.Len(t, snap.A, 4)
	})
}

func TestWhatARelistBringsAgainIsNotHeldTwice(t *testing.T) {
	for _, transform := range []*object.Transform{nil, {Do: func(object.Object) error { return nil }}} {
		inTyped(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			s.Create("as", sim.Thing("a"))
			q := typedQuery()
			q.Transform = transform
			acc := watching(t, streams, collect.Options{}, q)
			synctest.Wait()
			var snap things
			update(t, acc, &snap)
			a := snap.A[0]
			{
				st := listener(acc, 0).Stage()
				fresh, err := typedSim{}.Typed(s.At("as", s.Rev)[object.Key{Namespace: "ns", Name: "a"}])
				require.NoError(t, err)
				held, err := st.Put(fresh, false)
				require.NoError(t, err)
				assert.Same(t, a, held)
				assert.Equal(t, transform != nil, compactionOf(fresh.(*goThing)).final != nil, "it takes a transform to compare them")
				anew, err := st.Put(fresh, true)
				require.NoError(t, err)
				assert.Same(t, fresh, anew, "versions of another history say nothing")
			}
		})
	}
}

func TestAnObjectIsCompactedAfterItsVersionBefore(t *testing.T) {
	for name, transform := range map[string]*object.Transform{"plain": nil, "transformed": {Do: func(object.Object) error { return nil }}} {
		t.Run(name, func(t *testing.T) {
			inTyped(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("a"))
				s.Create("as", sim.Thing("b"))
				q := typedQuery()
				q.Transform = transform
				acc := watching(t, streams, collect.Options{}, q)
				synctest.Wait()
				shows := func(what string, before ...string) {
					t.Helper()
					var snap things
					update(t, acc, &snap)
					require.Len(t, snap.A, 2)
					assert.Equal(t, what, snap.A[0].Name+"@"+snap.A[0].ResourceVersion)
					assert.Equal(t, before, compactionOf(snap.A[0]).before)
				}
				shows("a@101")
				s.Touch("as", "a", 1)
				synctest.Wait()
				shows("a@103", "a@101")
				s.Late(10 * second)
				sim.NewClient(s, streams).Put("as", sim.Thing("a"), 0)
				shows("a@104", "a@103")
				sim.NewClient(s, streams).Put("as", sim.Thing("a"), 0)
				shows("a@105", "a@104")
				sim.After(60 * second)
				shows("a@105", "a@104")
				s.Mu.Lock()
				s.Oldest = s.Rev + 2 // what follows is a new list
				s.Mu.Unlock()
				s.Cut()
				s.Touch("as", "a", 1)
				sim.After(60 * second)
				require.Positive(t, acc.Status()[0].Restarts)
				shows("a@106", "a@105")
			})
		})
	}
}

func TestATypedQueryOfASourceThatKnowsNoTypesHasEveryObjectInvalid(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a"))
		acc := watching(t, streams, collect.Options{}, typedQuery())
		synctest.Wait()
		var snap things
		r := update(t, acc, &snap)
		require.Len(t, r.Invalid, 1)
		require.ErrorContains(t, r.Invalid[0].Err, "no Go type")
	})
}

func TestAPredicateJudgesTypedObjectsInTheirUntypedForm(t *testing.T) {
	inTyped(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "in", "yes"))
		s.Create("as", sim.Thing("y"))
		acc := watching(t, streams, collect.Options{}, typedQuery())
		synctest.Wait()
		var snap things
		_, err := acc.Update(t.Context(), &snap, Pass(func(u *unstructured.Unstructured) bool {
			return u.GetLabels()["in"] == "yes" && u.GetKind() == "Thing"
		}))
		require.NoError(t, err)
		assert.Equal(t, []string{"Thing x"}, called(snap.A))
	})
}

func TestG8AListOfAStreamWithObjectsThatDoNotDecodeIsNotAllThereIs(t *testing.T) {
	inTyped(t, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("fine", "in", "yes"))
		s.Create("as", sim.Thing("other", "in", "yes", "bad", "yes"))
		watching(t, streams, collect.Options{}, typedQuery())
		synctest.Wait()
		listed := func(namespace string) (int, bool) {
			all, ok := streams.List(sim.Resource("as"), namespace, labels.SelectorFromSet(labels.Set{"in": "yes"}), intake.Meta)
			return len(all), ok
		}
		_, ok := listed("ns")
		assert.False(t, ok, "one of them is not known")
		n, ok := listed("elsewhere")
		assert.True(t, ok)
		assert.Zero(t, n)
		watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		n, ok = listed("ns")
		assert.True(t, ok, "another stream knows")
		assert.Equal(t, 2, n)
	})
}
