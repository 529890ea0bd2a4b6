package fake_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/object"
)

// watches lets f answer watches of things, until it returns false.
func (w *world) watches(f func() (bool, watch.Interface)) {
	w.fake.PrependWatchReactor("things", func(clienttesting.Action) (bool, watch.Interface, error) {
		handled, made := f()
		return handled, made, nil
	})
}

// listed lets a reactor answer lists of things.
func (w *world) listed(items ...*unstructured.Unstructured) {
	w.fake.PrependReactor("list", "things", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("x.io/v1")
		list.SetKind("ThingList")
		list.SetResourceVersion("1")
		for _, each := range items {
			list.Items = append(list.Items, *each)
		}
		return true, list, nil
	})
}

func TestG6ADeleteBetweenAListAndItsWatchIsNotLost(t *testing.T) {
	on(t, func(w *world) {
		for range 20 { // the fake counts no deletions: the versions are not its own
			w.write(thing("x", "1"))
			w.remove("x")
		}
		w.create(thing("a", "1"))
		w.create(thing("b", "1"))
		w.create(thing("c", "1"))
		o := metav1.ListOptions{}
		r := w.list(o)
		require.Len(w, r.items, 3)
		w.delete("a")
		w.delete("c")
		w.create(thing("c", "2")) // it came back
		w.create(thing("d", "1"))
		r.follow(o)
		events := r.events()
		assert.ElementsMatch(w, []string{"DELETED a 1", "MODIFIED c 2", "ADDED d 1"}, events)
		lists := 0
		for _, a := range w.fake.Actions() {
			if a.GetVerb() == "list" {
				lists++
			}
		}
		assert.Equal(w, 1, lists, "a user counts them")
	})
}

// A fixture that is written by hand has values that DeepCopy panics at.
func TestValuesThatNoJSONDecodesToAreTaken(t *testing.T) {
	on(t, func(w *world) {
		sloppy := func(content string) *unstructured.Unstructured {
			u := thing("a", content)
			u.Object["more"] = map[string]any{"int": 3, "strings": []string{"x"}, "list": []any{map[string]string{"x": "y"}}}
			return u
		}
		w.listed(sloppy("1"))
		test := watch.NewFake()
		w.watches(func() (bool, watch.Interface) { return true, test })
		w.fake.PrependReactor("update", "things", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, sloppy("3"), nil
		})
		r := w.reads("")
		require.Equal(w, sloppy("1"), object.Bare(r.items["a"]))
		test.Modify(sloppy("1"))
		assert.Empty(w, r.events(), "they are compared, too")
		test.Modify(sloppy("2"))
		assert.Equal(w, sloppy("2"), r.last().Object)
		w.write(thing("a", "sent"))
		assert.Equal(w, sloppy("3"), r.last().Object)
	})
}

func TestG6ADeleteBetweenTwoWatchesIsNotLost(t *testing.T) {
	for _, late := range []bool{false, true} {
		on(t, func(w *world) {
			test := watch.NewFake()
			w.watches(func() (bool, watch.Interface) { handled := late; late = false; return handled, test })
			driven := late
			r := w.reads("")
			if !driven {
				w.create(thing("a", "1")) // no list has shown it
			}
			w.write(thing("b", "1"))
			r.events()
			r.stop()
			r.all()
			w.fake.PrependWatchReactor("things", func(clienttesting.Action) (bool, watch.Interface, error) {
				if !driven {
					w.delete("a")
				}
				w.delete("b")
				return false, nil, nil
			})
			r.follow(metav1.ListOptions{})
			want := []string{"DELETED b 1"}
			if !driven {
				want = append(want, "DELETED a 1")
			}
			assert.ElementsMatch(w, want, r.events())
		})
	}
}

func TestG7AListThatAReactorAnswersDeletesNothingForOthers(t *testing.T) {
	on(t, func(w *world) {
		w.create(thing("a", "1"))
		r := w.reads("")
		w.listed()
		assert.Empty(w, w.list(metav1.ListOptions{}).items)
		assert.Empty(w, r.events())
		w.delete("a")
		assert.Equal(w, []string{"DELETED a 1"}, r.events())
	})
}

// What a reactor has answered is not in the tracker.
func TestAListThatAReactorAnswersIsNotJudgedByTheTracker(t *testing.T) {
	on(t, func(w *world) {
		w.listed(thing("of a reactor", "1"))
		r := w.reads("")
		assert.Len(w, r.items, 1)
		assert.Empty(w, r.events())
		w.create(thing("a", "1"))
		assert.Equal(w, []string{"ADDED a 1"}, r.events())
	})
}

func TestAListShowsWhatNoEventHas(t *testing.T) {
	on(t, func(w *world) {
		test := watch.NewFake()
		w.watches(func() (bool, watch.Interface) { return true, test })
		w.create(thing("a", "1"))
		w.create(thing("b", "1"))
		r := w.reads("")
		w.update(thing("a", "2")) // the watch is the test's, so nobody hears of it
		w.delete("b")
		assert.Empty(w, r.events())
		w.list(metav1.ListOptions{})
		assert.ElementsMatch(w, []string{"MODIFIED a 2", "DELETED b 1"}, r.events())
	})
}

func TestAWatchThatTheTestDrivesIsFollowed(t *testing.T) {
	on(t, func(w *world) {
		test := watch.NewFake()
		w.watches(func() (bool, watch.Interface) { return true, test })
		r := w.reads("")
		test.Add(thing("a", "1"))
		test.Modify(thing("a", "2"))
		test.Delete(thing("a", "2"))
		test.Action(watch.Bookmark, thing("", "", "99999"))
		assert.Equal(w, []string{"ADDED a 1", "MODIFIED a 2", "DELETED a 2"}, r.events())
		status := metav1.Status{Message: "by the test"}
		test.Error(&status)
		all := r.all()
		require.Len(w, all, 1)
		assert.Equal(w, &status, all[0].Object)
		test.Stop()
		assert.Equal(w, []watch.Event{{Type: "END"}}, r.all())
	})
}

func TestG4TheEventOfAnOwnWriteMayComeLaterAndOlderOnesWaitForIt(t *testing.T) {
	on(t, func(w *world) {
		test := watch.NewFake()
		w.watches(func() (bool, watch.Interface) { return true, test })
		w.create(thing("a", "0"))
		r := w.reads("")
		first, second := w.write(thing("a", "2")), w.write(thing("a", "3"))
		assert.Equal(w, []string{"MODIFIED a 2", "MODIFIED a 3"}, r.events())
		test.Modify(thing("a", "1")) // another program was faster
		test.Modify(thing("a", "2"))
		test.Modify(thing("a", "3"))
		assert.Empty(w, r.events(), "they are the own writes, and older")
		assert.Less(w, number(w, first.rv), number(w, second.rv))
		test.Modify(thing("a", "4"))
		assert.Equal(w, []string{"MODIFIED a 4"}, r.events())
	})
}

func TestWhatWaitsForAnEventThatNeverComesIsShownInTheEnd(t *testing.T) {
	on(t, func(w *world) {
		test := watch.NewFake()
		w.watches(func() (bool, watch.Interface) { return true, test })
		r := w.reads("")
		w.write(thing("a", "mine"))
		test.Add(thing("a", "theirs"))
		assert.Equal(w, []string{"ADDED a mine"}, r.events())
		time.Sleep(11 * time.Second)
		assert.Equal(w, []string{"MODIFIED a theirs"}, r.events())
	})
}

func TestWhatAReactorAnswersCounts(t *testing.T) {
	on(t, func(w *world) {
		r := w.reads("")
		answers := thing("a", "answered")
		w.fake.PrependReactor("update", "things", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, answers.DeepCopy(), nil
		})
		wrote := w.write(thing("a", "sent"))
		now := r.last()
		assert.Equal(w, answers, now.Object, "nothing is stored, but the fake says so")
		assert.Equal(w, wrote.rv, now.GetResourceVersion())
	})
}

// The reactor stores something, and answers with something else.
func TestWhatTheFakeStoresCountsMoreThanAnAnswer(t *testing.T) {
	on(t, func(w *world) {
		w.create(thing("a", "0"))
		r := w.reads("")
		w.fake.PrependReactor("update", "things", func(a clienttesting.Action) (bool, runtime.Object, error) {
			w.update(thing("a", "stored"))
			return true, thing("a", "answered"), nil
		})
		wrote := w.write(thing("a", "sent"))
		assert.Equal(w, "stored", contentOf(wrote.object), "one version is one content")
		assert.Equal(w, []string{"MODIFIED a stored"}, r.events())
		assert.Equal(w, r.rv, wrote.rv)
	})
}

// contentOf is the content of a thing; "gone" for nil.
func contentOf(o object.Object) string {
	if o == nil {
		return "gone"
	}
	is, _, _ := unstructured.NestedString(object.Bare(o).(*unstructured.Unstructured).Object, "spec", "is")
	return is
}

func TestG4ADeleteThatAFinalizerKeepsIsNoDeletion(t *testing.T) {
	on(t, func(w *world) {
		w.create(thing("a", "1"))
		r := w.reads("")
		w.fake.PrependReactor("delete", "things", func(clienttesting.Action) (bool, runtime.Object, error) {
			w.update(thing("a", "deleting"))
			return true, nil, nil
		})
		wrote := w.remove("a")
		assert.Equal(w, "deleting", contentOf(wrote.object))
		assert.Equal(w, []string{"MODIFIED a deleting"}, r.events())
		assert.Equal(w, r.rv, wrote.rv)
	})
}

// The answer is stored nowhere, and then the old content is written again.
func TestG5AWriteBackToTheContentBeforeAnAnswerIsNoEcho(t *testing.T) {
	on(t, func(w *world) {
		w.create(thing("a", "1"))
		r := w.reads("")
		w.fake.PrependReactor("update", "things", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return true, a.(clienttesting.UpdateAction).GetObject(), nil
		})
		w.write(thing("a", "2"))
		w.update(thing("a", "1"))
		assert.Equal(w, []string{"MODIFIED a 2", "MODIFIED a 1"}, r.events())
	})
}

func TestTheEventOfAWriteThatHasFailedIsAnothers(t *testing.T) {
	on(t, func(w *world) {
		r := w.reads("")
		begun := w.server.Begin(things)
		w.create(thing("a", "1")) // it was stored nonetheless
		begun.End()
		assert.Equal(w, []string{"ADDED a 1"}, r.events())
		wrote := w.write(thing("a", "1"))
		r.again(metav1.ListOptions{})
		assert.Equal(w, wrote.rv, r.items["a"].GetResourceVersion())
	})
}

func TestErrorsOfReactorsAreThoseOfTheRequest(t *testing.T) {
	on(t, func(w *world) {
		broken := errors.New("broken by the test")
		source := w.server.Source(things, "ns", object.Whole)
		w.fake.PrependReactor("list", "things", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, broken })
		_, err := source.ListItems(w.Context(), metav1.ListOptions{}, nil)
		require.ErrorIs(w, err, broken)
		w.fake.PrependWatchReactor("things", func(clienttesting.Action) (bool, watch.Interface, error) { return true, nil, broken })
		_, err = source.WatchWithContext(w.Context(), metav1.ListOptions{ResourceVersion: "1"})
		require.ErrorIs(w, err, broken)
	})
}

// Many write and read at once. Each own write is at most as new as what its watch shows after it.
func TestG5ManyWritersAndReadersAgree(t *testing.T) {
	on(t, func(w *world) {
		readers := []*reading{w.reads(""), w.reads(""), w.reads("in=no")}
		var wait sync.WaitGroup
		for writer := range 4 {
			wait.Go(func() {
				for i := range 40 {
					name := fmt.Sprint(writer, "-", i%3)
					if writer%2 == 0 {
						w.write(thing(name, fmt.Sprint(i)))
						continue
					}
					tracker, r := w.fake.Tracker(), things.GroupVersionResource
					if tracker.Update(r, thing(name, fmt.Sprint(i)), "ns") != nil {
						_ = tracker.Create(r, thing(name, fmt.Sprint(i)), "ns")
					}
					w.list(metav1.ListOptions{})
				}
			})
		}
		wait.Wait()
		truth := w.list(metav1.ListOptions{})
		for _, r := range readers[:2] {
			have := make(map[string]object.Object)
			for _, e := range r.all() {
				if o, ok := e.Object.(*object.Stamped); ok {
					have[o.GetName()] = o
				}
			}
			require.Len(w, have, len(truth.items))
			for name, o := range truth.items {
				assert.Equal(w, object.Bare(o), object.Bare(have[name]))
				assert.Equal(w, o.GetResourceVersion(), have[name].GetResourceVersion())
				assert.Equal(w, o.GetUID(), have[name].GetUID())
			}
		}
		assert.Empty(w, readers[2].events())
	})
}

// A test that writes without end to a watch of its own waits for those who read.
func TestG3AWatchThatATestFloodsIsNotReadAheadWithoutBound(t *testing.T) {
	for late, want := range map[bool]int64{true: fake.AheadMost, false: 2 * fake.AheadMost} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			test := watch.NewFake()
			go fake.Pump(ctx, test, late)
			var written atomic.Int64
			go func() {
				defer test.Stop()
				for written.Load() < 2*fake.AheadMost {
					test.Modify(thing("a", "1"))
					written.Add(1)
				}
			}()
			synctest.Wait()
			assert.Equal(t, want, written.Load())
			cancel()
			for range test.ResultChan() {
				continue
			}
		})
	}
}

// Reactors answer with nothing, as those of tests that only count actions do.
func TestReactorsThatAnswerWithNothing(t *testing.T) {
	on(t, func(w *world) {
		w.create(thing("a", "1"))
		nothing := true
		w.fake.PrependReactor("list", "things", func(clienttesting.Action) (bool, runtime.Object, error) {
			return nothing, nil, nil
		})
		w.watches(func() (bool, watch.Interface) { return nothing, nil })
		r := w.list(metav1.ListOptions{})
		assert.Empty(w, r.items)
		_, err := r.source.WatchWithContext(w.Context(), metav1.ListOptions{ResourceVersion: r.rv})
		require.ErrorContains(w, err, "answered the watch with nil")
		nothing = false
		assert.Len(w, w.reads("").items, 1)
	})
}
