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

	"github.com/kates-go/kates/accumulator/stream"
)

// shortSource delivers metadata like a server: the kind is another one, and items of a list have
// none.
type shortSource struct{ cache.ListerWatcherWithContext }

func shortOf(o runtime.Object, kind string) *metav1.PartialObjectMetadata {
	short, err := stream.Shorten(o.(Object), metav1.SchemeGroupVersion.WithKind(kind))
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
type wholeSource struct{ stream.Plain }

func (wholeSource) Form() Form { return Whole }

// inForms runs a test in a bubble whose source knows forms.
func inForms(t *testing.T, config stream.Config, f func(t *testing.T, s *sim, streams *stream.Set)) {
	var s *sim
	config.Source = plain(func(r Resource, namespace string, form Form) cache.ListerWatcherWithContext {
		if form == Metadata {
			return shortSource{s.source(r, namespace, form)}
		}
		return s.source(r, namespace, form)
	})
	bubble(t, config, func(t *testing.T, fresh *sim, streams *stream.Set) {
		s = fresh
		f(t, s, streams)
	})
}

// brief is a snapshot of metadata.
type brief struct {
	A []*metav1.PartialObjectMetadata
}

func metadataQuery() Query {
	q := simQuery("A", "as")
	q.Form = Metadata
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
			inForms(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("a"))
				s.create("as", thing("b"))
				acc := watching(t, streams, Options{}, metadataQuery())
				synctest.Wait()
				s.create("as", thing("c"))
				synctest.Wait()
				s.mu.Lock()
				s.delay = func(string) time.Duration { return 10 * second }
				s.mu.Unlock()
				own{s, streams}.put("as", thing("d"), 0)
				var snap brief
				r := update(t, acc, &snap)
				var want []string
				for _, name := range []string{"a", "b", "c", "d"} {
					want = append(want, fmt.Sprintf("/v1, Kind=Thing %s ", name))
				}
				assert.Equal(t, want, briefly(snap.A))
				assert.Len(t, r.Differences, 4)
				shown := snap.A[3]
				after(20 * second)
				assert.False(t, update(t, acc, &snap).Changed, "the event of an own write is nothing new")
				assert.Same(t, shown, snap.A[3])
				assert.Zero(t, acc.Status()[0].Pending)
				assert.Equal(t, "metadata", acc.Status()[0].Form)
			})
		})
	}
}

func TestG4AnOwnWriteMovesMetadataInAndOutOfAQueryThoughTheWatchIsLate(t *testing.T) {
	inForms(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		q := metadataQuery()
		q.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		q.Transform = func(o Object) error { o.SetLabels(nil); return nil }
		acc := watching(t, streams, Options{}, q)
		synctest.Wait()
		var snap brief
		update(t, acc, &snap)
		s.mu.Lock()
		s.delay = func(string) time.Duration { return 10 * second }
		s.mu.Unlock()
		for _, in := range []string{"yes", "no", "yes"} {
			own{s, streams}.put("as", thing("x", "in", in), 0)
			update(t, acc, &snap)
			require.Len(t, snap.A, map[string]int{"yes": 1, "no": 0}[in])
		}
		assert.Empty(t, snap.A[0].Labels)
		after(60 * second)
		assert.False(t, update(t, acc, &snap).Changed)
		assert.Len(t, snap.A, 1, "what was judged before the transform is not judged again after it")
		own{s, streams}.delete("as", "x", 0, false)
		update(t, acc, &snap)
		assert.Empty(t, snap.A)
	})
}

func TestOneKindMayBeWatchedInTwoFormsAtOnce(t *testing.T) {
	inForms(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		long := watching(t, streams, Options{}, simQuery("A", "as"))
		short := watching(t, streams, Options{}, metadataQuery())
		again := watching(t, streams, Options{}, metadataQuery())
		synctest.Wait()
		own{s, streams}.put("as", thing("y"), 0)
		var whole one
		var metadata, same brief
		update(t, long, &whole)
		update(t, short, &metadata)
		update(t, again, &same)
		assert.Len(t, whole.A, 2)
		assert.Len(t, metadata.A, 2)
		assert.Same(t, metadata.A[1], same.A[1])
		assert.Equal(t, 2, s.opened("as"))
	})
}

func TestAPredicateJudgesMetadata(t *testing.T) {
	inForms(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x", "in", "yes"))
		s.create("as", thing("y"))
		acc := watching(t, streams, Options{}, metadataQuery())
		synctest.Wait()
		var snap brief
		_, err := acc.Update(t.Context(), &snap, &Judgement{func(u *unstructured.Unstructured) bool {
			return u.GetLabels()["in"] == "yes" && u.GetKind() == "Thing"
		}})
		require.NoError(t, err)
		assert.Len(t, snap.A, 1)
	})
}

func TestTheStatusSaysWhereWholeObjectsAreShortenedHere(t *testing.T) {
	var s *sim
	config := stream.Config{ByContent: true, Source: func(r Resource, namespace string, form Form) stream.Source {
		return wholeSource{stream.Plain{ListerWatcherWithContext: s.source(r, namespace, form)}}
	}}
	bubble(t, config, func(t *testing.T, fresh *sim, streams *stream.Set) {
		s = fresh
		s.create("as", thing("x"))
		short := watching(t, streams, Options{}, metadataQuery())
		long := watching(t, streams, Options{}, simQuery("A", "as"))
		synctest.Wait()
		var snap brief
		update(t, short, &snap)
		assert.Equal(t, []string{"/v1, Kind=Thing x "}, briefly(snap.A))
		assert.Equal(t, "metadata of whole objects", short.Status()[0].Form)
		assert.Empty(t, long.Status()[0].Form)
		u := thing("y")
		u.SetUID("uid-y")
		fakeWrite(streams, u, func() { s.put("as", Key{Namespace: "ns", Name: "y"}, u) }, 0)
		assert.True(t, update(t, short, &snap).Changed)
		assert.Len(t, snap.A, 2)
	})
}
