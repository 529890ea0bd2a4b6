package fake_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/internal/client/fake"
)

// swallows lets a reactor answer a verb, and store nothing.
func (w *world) swallows(verb string) {
	w.fake.PrependReactor(verb, "things", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a, ok := a.(clienttesting.CreateAction); ok {
			return true, a.GetObject(), nil
		}
		return true, nil, nil
	})
}

func TestG7AnAnswerThatIsNotStoredCountsUntilItsEventIsOverdue(t *testing.T) {
	for _, late := range []bool{false, true} {
		on(t, func(w *world) {
			if late {
				w.watches(func() (bool, watch.Interface) { return true, watch.NewFake() })
			}
			w.create(thing("a", "1"))
			w.create(thing("b", "1"))
			r := w.reads("")
			for _, verb := range []string{"create", "update", "delete"} {
				w.swallows(verb)
			}
			w.remove("a")
			w.write(thing("b", "2"))
			w.write(thing("c", "1"))
			assert.ElementsMatch(w, []string{"DELETED a 1", "MODIFIED b 2", "MODIFIED c 1"}, added(r.events()))
			time.Sleep(9 * time.Second)
			assert.Empty(w, r.events())
			time.Sleep(time.Second)
			assert.ElementsMatch(w, []string{"MODIFIED a 1", "MODIFIED b 1", "DELETED c 1"}, added(r.events()))
			w.update(thing("b", "2"))
			if !late {
				assert.Equal(w, []string{"MODIFIED b 2"}, r.events(), "what was swallowed is no echo")
			}
		})
	}
}

// added takes additions for modifications.
func added(events []string) []string {
	for i, e := range events {
		if after, is := strings.CutPrefix(e, "ADDED"); is {
			events[i] = "MODIFIED" + after
		}
	}
	return events
}

func TestG7WithoutAWatchAListShowsWhatIsStored(t *testing.T) {
	on(t, func(w *world) {
		broken := errors.New("broken by the test")
		w.fake.PrependWatchReactor("things", func(clienttesting.Action) (bool, watch.Interface, error) { return true, nil, broken })
		r := w.list(metav1.ListOptions{})
		w.write(thing("a", "1"))
		w.update(thing("a", "2"))
		fails := func() error {
			_, err := r.source.WatchWithContext(w.Context(), metav1.ListOptions{ResourceVersion: r.rv})
			return err
		}
		require.ErrorIs(w, fails(), broken)
		time.Sleep(10 * time.Second)
		require.True(w, apierrors.IsResourceExpired(fails()), "a list is the only way")
		r.again(metav1.ListOptions{})
		assert.Equal(w, "2", contentOf(r.items["a"]))
		require.ErrorIs(w, fails(), broken)
	})
}

func TestG7WhatIsObservedIsNoNewerThanWhatTheFakeHas(t *testing.T) {
	on(t, func(w *world) {
		w.create(thing("a", "1"))
		r := w.reads("")
		for _, content := range []string{"2", "3"} {
			w.update(thing("a", content))
			assert.Len(w, r.events(), 1)
		}
		for _, older := range []string{"1", "2", "3"} {
			begun := w.server.Begin(things)
			_, rv, o := begun.Observed(key("a"), thing("a", older))
			assert.Equal(w, "3", contentOf(o))
			assert.Equal(w, r.rv, rv)
		}
		assert.Empty(w, r.events())
		other := fake.New(w.fake)
		_, _, o := other.Begin(things).Observed(key("a"), thing("a", "2"))
		assert.Equal(w, "3", contentOf(o), "nothing was known of it")
	})
}

// The server's lock is held, as by a long list of another kind. A goroutine that waits for a lock
// keeps a bubble from being idle, so this is none. The fake's watch has no buffer: each event is one
// that has been read.
func TestG3NoWriterWaitsBecauseTheServerIsBusy(t *testing.T) {
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{things.GroupVersionResource: "ThingList"})
	w := &world{t, client, fake.New(client)}
	test := watch.NewFake()
	w.watches(func() (bool, watch.Interface) { return true, test })
	r := w.reads("")
	unlock := w.server.Block()
	for i := range 300 {
		test.Add(thing(fmt.Sprint(i), "1"))
	}
	unlock()
	for got := 0; got < 300; {
		if e := <-r.watch.ResultChan(); e.Type == watch.Added {
			got++
		}
	}
	r.stop()
	for range r.watch.ResultChan() { // until it has ended
		continue
	}
}
