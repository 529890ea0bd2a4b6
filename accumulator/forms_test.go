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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// shortSource delivers metadata like a server: the kind is another one, and items of a list have
// none.
type shortSource struct{ cache.ListerWatcherWithContext }

func shortOf(o runtime.Object, kind string) *metav1.PartialObjectMetadata {
	short, err := object.Shorten(o.(object.Object), metav1.SchemeGroupVersion.WithKind(kind))
	if err != nil {
		panic(err)
	}
	return short
}

func (s shortSource) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := s.ListerWatcherWithContext.ListWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	whole := list.(*unstructured.UnstructuredList)
	short := &metav1.PartialObjectMetadataList{}
	short.ResourceVersion, short.Continue = whole.GetResourceVersion(), whole.GetContinue()
	for i := range whole.Items {
		short.Items = append(short.Items, *shortOf(&whole.Items[i], ""))
	}
	return short, nil
}

func (s shortSource) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := s.ListerWatcherWithContext.WatchWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	return newShortWatch(w, func(e watch.Event) runtime.Object { return shortOf(e.Object, "PartialObjectMetadata") }), nil
}

// shortWatch is a watch.Filter that ends when it is stopped.
type shortWatch struct {
	watch.Interface
	change func(watch.Event) runtime.Object
	out    chan watch.Event
	stop   chan struct{}
}

func newShortWatch(w watch.Interface, change func(watch.Event) runtime.Object) *shortWatch {
	short := &shortWatch{Interface: w, change: change, out: make(chan watch.Event), stop: make(chan struct{})}
	go short.run()
	return short
}

func (w *shortWatch) ResultChan() <-chan watch.Event { return w.out }

func (w *shortWatch) Stop() {
	close(w.stop)
	w.Interface.Stop()
}

func (w *shortWatch) run() {
	defer close(w.out)
	for e := range w.Interface.ResultChan() {
		e.Object = w.change(e)
		select {
		case w.out <- e:
		case <-w.stop:
			return
		}
	}
}

// wholeSource can only deliver whole objects.
type wholeSource struct{ source.Plain }

func (wholeSource) Form() object.Form { return object.Whole }

// inForms runs a test in a bubble whose source knows forms.
func inForms(t *testing.T, config stream.Config, f func(t *testing.T, s *sim.Server, streams *streamset.Set)) {
	var s *sim.Server
	config.Source = sim.Plain(func(r object.Resource, namespace string, form object.Form) cache.ListerWatcherWithContext {
		if form == object.Metadata {
			return shortSource{s.Source(r, namespace, form)}
		}
		return s.Source(r, namespace, form)
	})
	sim.Bubble(t, config, func(t *testing.T, fresh *sim.Server, streams *streamset.Set) {
		s = fresh
		f(t, s, streams)
	})
}

// brief is a snapshot of metadata.
type brief struct {
	A []*metav1.PartialObjectMetadata
}

func metadataQuery() query.Query {
	q := sim.Query("A", "as")
	q.Form = object.Metadata
	return q
}

func briefly(objects []*metav1.PartialObjectMetadata) (all []string) {
	for _, o := range objects {
		all = append(all, fmt.Sprintf("%s %s %s", o.GroupVersionKind(), o.Name, o.Labels["in"]))
	}
	return all
}

func TestAMetadataStreamHoldsObjectsOfTheirOwnKindFromListsEventsAndOwnWrites(t *testing.T) {
	for name, config := range map[string]stream.Config{"streamed": {StreamLists: true}, "paged": {PageSize: 1}} {
		t.Run(name, func(t *testing.T) {
			inForms(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("a"))
				s.Create("as", sim.Thing("b"))
				acc := watching(t, streams, collect.Options{}, metadataQuery())
				synctest.Wait()
				s.Create("as", sim.Thing("c"))
				synctest.Wait()
				s.Mu.Lock()
				s.Delay = func(string) time.Duration { return 10 * second }
				s.Mu.Unlock()
				sim.NewClient(s, streams).Put("as", sim.Thing("d"), 0)
				var snap brief
				r := update(t, acc, &snap)
				var want []string
				for _, name := range []string{"a", "b", "c", "d"} {
					want = append(want, fmt.Sprintf("/v1, Kind=Thing %s ", name))
				}
				assert.Equal(t, want, briefly(snap.A))
				assert.Len(t, r.Differences, 4)
				shown := snap.A[3]
				sim.After(20 * second)
				assert.False(t, update(t, acc, &snap).Changed, "the event of an own write is nothing new")
				assert.Same(t, shown, snap.A[3])
				assert.Zero(t, acc.Status()[0].Pending)
				assert.Equal(t, "metadata", acc.Status()[0].Form)
			})
		})
	}
}

func TestG4AnOwnWriteMovesMetadataInAndOutOfAQueryThoughTheWatchIsLate(t *testing.T) {
	inForms(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q := metadataQuery()
		q.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		q.Transform = &object.Transform{Do: func(o object.Object) error { o.SetLabels(nil); return nil }}
		acc := watching(t, streams, collect.Options{}, q)
		synctest.Wait()
		var snap brief
		update(t, acc, &snap)
		s.Mu.Lock()
		s.Delay = func(string) time.Duration { return 10 * second }
		s.Mu.Unlock()
		for _, in := range []string{"yes", "no", "yes"} {
			sim.NewClient(s, streams).Put("as", sim.Thing("x", "in", in), 0)
			update(t, acc, &snap)
			require.Len(t, snap.A, map[string]int{"yes": 1, "no": 0}[in])
		}
		assert.Empty(t, snap.A[0].Labels)
		sim.After(60 * second)
		assert.False(t, update(t, acc, &snap).Changed)
		assert.Len(t, snap.A, 1, "what was judged before the transform is not judged again after it")
		sim.NewClient(s, streams).Delete("as", "x", 0, false)
		update(t, acc, &snap)
		assert.Empty(t, snap.A)
	})
}

func TestOneKindMayBeWatchedInTwoFormsAtOnce(t *testing.T) {
	inForms(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		long := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		short := watching(t, streams, collect.Options{}, metadataQuery())
		again := watching(t, streams, collect.Options{}, metadataQuery())
		synctest.Wait()
		sim.NewClient(s, streams).Put("as", sim.Thing("y"), 0)
		var whole one
		var metadata, same brief
		update(t, long, &whole)
		update(t, short, &metadata)
		update(t, again, &same)
		assert.Len(t, whole.A, 2)
		assert.Len(t, metadata.A, 2)
		assert.Same(t, metadata.A[1], same.A[1])
		assert.Equal(t, 2, s.Opened("as"))
	})
}

func TestAPredicateJudgesMetadata(t *testing.T) {
	inForms(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x", "in", "yes"))
		s.Create("as", sim.Thing("y"))
		acc := watching(t, streams, collect.Options{}, metadataQuery())
		synctest.Wait()
		var snap brief
		_, err := acc.Update(t.Context(), &snap, Pass(func(u *unstructured.Unstructured) bool {
			return u.GetLabels()["in"] == "yes" && u.GetKind() == "Thing"
		}))
		require.NoError(t, err)
		assert.Len(t, snap.A, 1)
	})
}

func TestTheStatusSaysWhereWholeObjectsAreShortenedHere(t *testing.T) {
	var s *sim.Server
	config := stream.Config{Source: func(r object.Resource, namespace string, form object.Form) source.Source {
		return wholeSource{source.Plain{ListerWatcherWithContext: s.Source(r, namespace, form)}}
	}}
	sim.Bubble(t, config, func(t *testing.T, fresh *sim.Server, streams *streamset.Set) {
		s = fresh
		s.Create("as", sim.Thing("x"))
		short := watching(t, streams, collect.Options{}, metadataQuery())
		long := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		var snap brief
		update(t, short, &snap)
		assert.Equal(t, []string{"/v1, Kind=Thing x "}, briefly(snap.A))
		assert.Equal(t, "metadata of whole objects", short.Status()[0].Form)
		assert.Empty(t, long.Status()[0].Form)
		s.Create("as", sim.Thing("y"))
		synctest.Wait()
		assert.True(t, update(t, short, &snap).Changed)
		assert.Len(t, snap.A, 2)
	})
}
