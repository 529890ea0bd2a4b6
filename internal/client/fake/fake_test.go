package fake_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var things = object.Resource{
	GroupVersionResource: schema.GroupVersionResource{Group: "x.io", Version: "v1", Resource: "things"},
	Kind:                 schema.GroupVersionKind{Group: "x.io", Version: "v1", Kind: "Thing"}, Namespaced: true,
}

// thing is an object with a content. A label is "key=value".
func thing(name, content string, fixture ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"is": content}}}
	u.SetGroupVersionKind(things.Kind)
	u.SetNamespace("ns")
	u.SetName(name)
	if len(fixture) > 0 {
		u.SetUID("fixture")
		u.SetResourceVersion(fixture[0])
	}
	return u
}

// world is a fake behind a server.
type world struct {
	*testing.T
	fake   *dynamicfake.FakeDynamicClient
	server *fake.Server
}

// on runs a test in a bubble. Nothing may be left in it.
func on(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{things.GroupVersionResource: "ThingList"})
		f(&world{t, client, fake.New(client)})
	})
}

// These are another program's writes.
func (w *world) create(u *unstructured.Unstructured) {
	w.Helper()
	require.NoError(w, w.fake.Tracker().Create(things.GroupVersionResource, u, "ns"))
}

func (w *world) update(u *unstructured.Unstructured) {
	w.Helper()
	require.NoError(w, w.fake.Tracker().Update(things.GroupVersionResource, u, "ns"))
}

func (w *world) delete(name string) {
	w.Helper()
	require.NoError(w, w.fake.Tracker().Delete(things.GroupVersionResource, "ns", name))
}

// own is an own write, by its answer.
type own struct {
	uid, rv string
	object  object.Object
}

func key(name string) object.Key { return object.Key{Namespace: "ns", Name: name} }

// write writes an object, which is there if it was there.
func (w *world) write(u *unstructured.Unstructured) own {
	w.Helper()
	in, begun := w.fake.Resource(things.GroupVersionResource).Namespace("ns"), w.server.Begin(things)
	got, err := in.Update(w.Context(), u, metav1.UpdateOptions{})
	if err != nil {
		got, err = in.Create(w.Context(), u, metav1.CreateOptions{})
	}
	require.NoError(w, err)
	uid, rv, o := begun.Saw(key(u.GetName()), got)
	return own{string(uid), rv, o}
}

func (w *world) remove(name string) own {
	w.Helper()
	begun := w.server.Begin(things)
	require.NoError(w, w.fake.Resource(things.GroupVersionResource).Namespace("ns").Delete(w.Context(), name, metav1.DeleteOptions{}))
	uid, rv, o := begun.Saw(key(name), nil)
	return own{string(uid), rv, o}
}

// reading is a list and its watch.
type reading struct {
	w      *world
	source source.Source
	items  map[string]object.Object
	rv     string
	watch  watch.Interface
	stop   context.CancelFunc
}

// list lists, without a watch.
func (w *world) list(o metav1.ListOptions) *reading {
	w.Helper()
	r := &reading{w: w, source: w.server.Source(things, "ns", object.Whole), items: make(map[string]object.Object)}
	r.again(o)
	return r
}

func (r *reading) again(o metav1.ListOptions) {
	r.w.Helper()
	clear(r.items)
	m, err := r.source.ListItems(r.w.Context(), o, func(item runtime.Object) error {
		one := item.(object.Object)
		r.items[one.GetName()] = one
		return nil
	})
	require.NoError(r.w, err)
	r.rv = m.ResourceVersion
}

// follow opens the watch of a list.
func (r *reading) follow(o metav1.ListOptions) *reading {
	r.w.Helper()
	var ctx context.Context
	ctx, r.stop = context.WithCancel(r.w.Context())
	r.w.Cleanup(r.stop)
	o.ResourceVersion = r.rv
	var err error
	r.watch, err = r.source.WatchWithContext(ctx, o)
	require.NoError(r.w, err)
	return r
}

func (w *world) reads(selector string) *reading {
	w.Helper()
	o := metav1.ListOptions{LabelSelector: selector}
	return w.list(o).follow(o)
}

// events are the events that have come, without bookmarks: "ADDED x a". Versions must grow.
func (r *reading) events() (all []string) {
	r.w.Helper()
	for _, e := range r.all() {
		if e.Type == watch.Bookmark {
			continue
		}
		o := e.Object.(*object.Stamped)
		is, _, _ := unstructured.NestedString(o.Object.(*unstructured.Unstructured).Object, "spec", "is")
		all = append(all, fmt.Sprint(e.Type, " ", o.GetName(), " ", is))
	}
	return all
}

func (r *reading) all() (all []watch.Event) {
	r.w.Helper()
	synctest.Wait()
	for last := r.rv; ; {
		synctest.Wait()
		select {
		case e, open := <-r.watch.ResultChan():
			if !open {
				return append(all, watch.Event{Type: "END"})
			}
			if m, ok := e.Object.(metav1.Object); ok && e.Type != watch.Error {
				require.GreaterOrEqual(r.w, number(r.w, m.GetResourceVersion()), number(r.w, last))
				last = m.GetResourceVersion()
				r.rv = last
			}
			all = append(all, e)
		default:
			return all
		}
	}
}

// last is the last object that a watch has brought.
func (r *reading) last() *object.Stamped {
	r.w.Helper()
	var last *object.Stamped
	for _, e := range r.all() {
		if o, ok := e.Object.(*object.Stamped); ok {
			last = o
		}
	}
	require.NotNil(r.w, last, "nothing has come")
	return last
}

func number(t testing.TB, rv string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(rv, 10, 64)
	require.NoError(t, err)
	return n
}

func TestAListAndItsWatchHaveVersionsAndUIDsThatTheObjectsDoNotHave(t *testing.T) {
	on(t, func(w *world) {
		w.create(thing("a", "1"))
		w.create(thing("b", "1", "77"))
		r := w.reads("")
		for name, o := range r.items {
			assert.NotEmpty(w, o.GetUID(), name)
			assert.Positive(w, number(w, o.GetResourceVersion()))
		}
		assert.NotEqual(w, r.items["a"].GetUID(), r.items["b"].GetUID())
		assert.Equal(w, thing("a", "1"), object.Bare(r.items["a"]))
		assert.Equal(w, thing("b", "1", "77"), object.Bare(r.items["b"]), "as the fixture has it")
		assert.Empty(w, r.events())
		w.update(thing("b", "2", "77"))
		now := r.last()
		assert.Greater(w, number(w, now.GetResourceVersion()), number(w, r.items["b"].GetResourceVersion()))
		assert.Equal(w, r.items["b"].GetUID(), now.GetUID())
		assert.Equal(w, thing("b", "2", "77"), now.Object)
	})
}

func TestG4AnOwnWriteIsKnownByTheVersionOfItsEvent(t *testing.T) {
	on(t, func(w *world) {
		r, other := w.reads(""), w.reads("")
		for _, content := range []string{"1", "2", "1"} {
			wrote := w.write(thing("a", content))
			assert.Equal(w, wrote.rv, wrote.object.GetResourceVersion())
			for _, each := range []*reading{r, other} {
				now := each.last()
				assert.Equal(w, wrote.rv, now.GetResourceVersion(), "one write is one version")
				assert.Equal(w, wrote.uid, string(now.GetUID()))
			}
		}
		gone := w.remove("a")
		assert.Nil(w, gone.object)
		assert.Equal(w, gone.rv, r.last().GetResourceVersion())
		r.again(metav1.ListOptions{})
		assert.Empty(w, r.items)
		assert.Empty(w, r.events())
	})
}

// The contents are equal, so they alone do not say whose a write is.
func TestG5AnothersWriteIsNoEcho(t *testing.T) {
	on(t, func(w *world) {
		r := w.reads("")
		first := w.write(thing("a", "1"))
		w.update(thing("a", "2"))
		w.update(thing("a", "1"))
		assert.Equal(w, []string{"ADDED a 1", "MODIFIED a 2", "MODIFIED a 1"}, r.events())
		r.again(metav1.ListOptions{})
		assert.Greater(w, number(w, r.items["a"].GetResourceVersion()), number(w, first.rv)+1)
	})
}

func TestAWriteThatChangesNothingIsNoEvent(t *testing.T) {
	on(t, func(w *world) {
		w.create(thing("a", "1"))
		r := w.reads("")
		assert.Equal(w, r.items["a"].GetResourceVersion(), w.write(thing("a", "1")).rv)
		assert.Empty(w, r.events())
	})
}

func TestAnObjectThatIsCreatedAgainIsAnotherOne(t *testing.T) {
	on(t, func(w *world) {
		w.create(thing("a", "1", "5"))
		r := w.reads("")
		w.delete("a")
		w.create(thing("a", "1", "5"))
		assert.Equal(w, []string{"DELETED a 1", "ADDED a 1"}, r.events())
		r.again(metav1.ListOptions{})
		uid := r.items["a"].GetUID()
		other := thing("a", "1")
		other.SetUID("another's")
		w.update(other)
		assert.Equal(w, []string{"DELETED a 1", "ADDED a 1"}, r.events(), "its fixture says so")
		r.again(metav1.ListOptions{})
		assert.NotEqual(w, uid, r.items["a"].GetUID())
	})
}

func TestAnObjectThatLeavesASelectorIsDeletedWithItsOldContent(t *testing.T) {
	on(t, func(w *world) {
		labelled := func(content, label string) *unstructured.Unstructured {
			u := thing("a", content)
			u.SetLabels(map[string]string{"in": label})
			return u
		}
		w.create(labelled("1", "yes"))
		r := w.reads("in=yes")
		uid := r.items["a"].GetUID()
		w.update(labelled("2", "no"))
		assert.Equal(w, []string{"DELETED a 1"}, r.events())
		w.update(labelled("3", "no"))
		assert.Empty(w, r.events())
		wrote := w.write(labelled("4", "yes"))
		back := r.last()
		assert.Equal(w, uid, back.GetUID())
		assert.Equal(w, wrote.rv, back.GetResourceVersion())
		w.create(thing("b", "1"))
		assert.NotEmpty(w, r.all(), "a bookmark")
		fields := metav1.ListOptions{FieldSelector: "spec.is=1"}
		r = w.list(fields).follow(fields)
		assert.Len(w, r.items, 1)
		w.update(thing("b", "2"))
		assert.Equal(w, []string{"DELETED b 1"}, r.events())
	})
}

func TestG11AWatchEndsWithItsContextAndWithStopAndWithTheFakes(t *testing.T) {
	on(t, func(w *world) {
		for end, do := range map[string]func(r *reading){
			"context": func(r *reading) { r.stop() }, "stop": func(r *reading) { r.watch.Stop() },
		} {
			r := w.reads("")
			do(r)
			assert.Equal(w, []watch.Event{{Type: "END"}}, r.all(), end)
		}
		assert.NotPanics(w, func() {
			for i := range 300 {
				w.create(thing(fmt.Sprint(i), "1"))
			}
		}, "the fake's watch is full")
	})
}

func TestAWatchSaysHowFarItIs(t *testing.T) {
	on(t, func(w *world) {
		r := w.reads("")
		for range 3 {
			time.Sleep(time.Minute)
			all := r.all()
			require.NotEmpty(w, all)
			assert.Equal(w, watch.Bookmark, all[0].Type)
		}
		before := number(w, r.rv)
		narrow := w.reads("in=yes")
		w.write(thing("a", "1"))
		all := narrow.all()
		require.Len(w, all, 1)
		assert.Equal(w, watch.Bookmark, all[0].Type)
		assert.Greater(w, number(w, narrow.rv), before)
	})
}

func TestG3NoWriterPanicsBecauseOwnWritesAreUnread(t *testing.T) {
	on(t, func(w *world) {
		for i := range 150 {
			w.create(thing(fmt.Sprint(i), "1")) // a watch from "" would bring them all
		}
		r := w.reads("")
		assert.Len(w, r.items, 150)
		for i := range 500 {
			w.write(thing(fmt.Sprint(i), "2"))
		}
		assert.Len(w, r.events(), 500)
	})
}

func TestAWatchFromBeforeTheDeletionsThatAreRememberedExpires(t *testing.T) {
	on(t, func(w *world) {
		r := w.reads("")
		old := r.rv
		for i := range 10_001 {
			w.write(thing(fmt.Sprint(i), "1"))
			w.remove(fmt.Sprint(i))
		}
		_, err := r.source.WatchWithContext(w.Context(), metav1.ListOptions{ResourceVersion: old})
		require.ErrorContains(w, err, "too old")
		r.again(metav1.ListOptions{})
		r.follow(metav1.ListOptions{})
		w.write(thing("a", "1"))
		assert.Equal(w, []string{"ADDED a 1"}, r.events())
	})
}
