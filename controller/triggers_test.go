package controller_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

func TestOneKeyNeverRunsTwiceAtATimeSeveralDoAndWhatComesMeanwhileIsOneReconcile(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, name := range []string{"a", "b", "c"} {
			w.root(name, "u"+name, "1")
		}
		var mu sync.Mutex
		held, most := map[string]bool{}, 0
		proceed := make(chan struct{})
		c := &calls{answer: func(_ context.Context, a *app) (controller.Result, error) {
			mu.Lock()
			assert.False(t, held[a.Info.Key], "%s is held by two", a.Info.Key)
			held[a.Info.Key] = true
			most = max(most, len(held))
			mu.Unlock()
			<-proceed
			mu.Lock()
			delete(held, a.Info.Key)
			mu.Unlock()
			return controller.Done, nil
		}}
		r := run(w, c.reconcile, bySecret, kates.WithWorkers(2))
		all := c.taken()
		slices.Sort(all)
		assert.Equal(t, []string{"ns/a ua=1", "ns/b ub=1"}, all)
		assert.Equal(t, 2, r.Status().Running)
		for i := range 5 {
			w.root("a", "ua", fmt.Sprint("later", i))
			w.secret(fmt.Sprint("s", i), "ns/a")
			r.Trigger("ns/a", "ns/a")
			r.TriggerAll()
			r.runs()
		}
		assert.Empty(t, c.taken())
		close(proceed)
		r.runs()
		all = c.taken()
		slices.Sort(all)
		assert.Equal(t, []string{"ns/a ua=later4 *s0 *s1 *s2 *s3 *s4", "ns/b ub=1", "ns/c uc=1"}, all)
		assert.Equal(t, 2, most)
		r.stop()
	})
}

func TestATriggerIsForOneKeyOrForAll(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		w.root("b", "u2", "1")
		c, other := &calls{}, make(chan string)
		idle, err := controller.New(w.Client, "idle", c.reconcile, bySecret)
		require.NoError(t, err)
		idle.Trigger("ns/a") // a trigger of a controller that does not run does nothing
		idle.TriggerAll()
		r := run(w, c.reconcile, bySecret, kates.WithTriggers(other))
		c.taken()
		r.Trigger("ns/b")
		r.runs()
		assert.Equal(t, []string{"ns/b u2=1"}, c.taken())
		r.TriggerAll()
		r.runs()
		assert.Equal(t, []string{"ns/a u1=1", "ns/b u2=1"}, c.taken())
		other <- "now"
		r.runs()
		assert.Equal(t, []string{"ns/a u1=1", "ns/b u2=1"}, c.taken())
		r.Trigger()
		r.Trigger("ns/x", "")
		r.runs()
		assert.Empty(t, c.taken())
		r.stop()
	})
}

func TestG4AReconcileHasTheControllersOwnWritesAndQuietOnesDoNotWakeIt(t *testing.T) {
	for name, options := range map[string][]kates.RunOption{"signals": {bySecret}, "quiet": {bySecret, kates.WithQuietOwnWrites()}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.root("a", "u", "1")
				c := &calls{answer: func(ctx context.Context, a *app) (controller.Result, error) {
					if len(a.Deployments) > 0 {
						return controller.Done, nil
					}
					return controller.Done, w.Client.Create(ctx, ownedObject("a", "u", "d"), nil)
				}}
				r := run(w, c.reconcile, options...)
				want := []string{"ns/a u=1"}
				if name == "signals" {
					want = append(want, "ns/a u=1 +d")
				}
				assert.Equal(t, want, c.taken())
				r.Trigger("ns/a")
				r.runs()
				assert.Equal(t, []string{"ns/a u=1 +d"}, c.taken())
				r.stop()
			})
		})
	}
}

func TestASignalSaysWhichChangesOfTheRootReconcileIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u", "1")
		c := &calls{}
		r := run(w, c.reconcile, bySecret, kates.Query{Name: "Root", Signal: kates.LabelsChanged})
		c.taken()
		w.root("a", "u", "2")
		r.runs()
		assert.Empty(t, c.taken())
		w.secret("s", "ns/a")
		r.runs()
		assert.Equal(t, []string{"ns/a u=2 *s"}, c.taken())
		r.stop()
	})
}

func TestADebouncedKeyIsReconciledWhenItIsQuietButNoLaterThanAMost(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "0")
		w.root("b", "u2", "0")
		j := newJournal()
		r := run(w, func(_ context.Context, a *app) (controller.Result, error) {
			j.note(a.Info.Key + "=" + a.Root.Data["a"])
			return controller.Done, nil
		}, bySecret, kates.WithDebounce(2*time.Second, 5500*time.Millisecond))
		assert.Equal(t, []string{"ns/a=0 0s", "ns/b=0 0s"}, j.taken(), "what there is at first does not wait")
		for i := 1; i <= 8; i++ { // from 1 s to 8 s
			<-after(second)
			w.root("a", "u1", fmt.Sprint(i))
			if i <= 2 {
				w.root("b", "u2", fmt.Sprint(i))
			}
		}
		<-after(hour)
		r.runs()
		assert.Equal(t, []string{"ns/b=2 4s", "ns/a=6 6.5s", "ns/a=8 10s"}, j.taken())
		r.stop()
	})
}

func TestATriggerDoesNotWaitForADebounceAndANewRootDoes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "0")
		j := newJournal()
		r := run(w, func(_ context.Context, a *app) (controller.Result, error) {
			j.note(a.Info.Key + fmt.Sprint(len(a.Secrets)))
			return controller.Done, nil
		}, bySecret, kates.WithDebounce(2*time.Second, 0))
		w.root("c", "u3", "0")
		w.secret("s", "ns/a")
		<-after(second)
		r.Trigger("ns/a")
		<-after(hour)
		r.runs()
		assert.Equal(t, []string{"ns/a0 0s", "ns/a1 1s", "ns/c0 2s"}, j.taken())
		r.stop()
	})
}

func TestADebounceCountsFromTheChangeThoughAllWorkersAreBusyThen(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "0")
		w.root("b", "u2", "0")
		j := newJournal()
		r := run(w, func(_ context.Context, a *app) (controller.Result, error) {
			j.note(a.Info.Key + "=" + a.Root.Data["a"])
			if a.Root.Data["a"] == "long" {
				<-after(10 * second)
			}
			return controller.Done, nil
		}, bySecret, kates.WithDebounce(2*time.Second, 0))
		w.root("a", "u1", "long")
		<-after(3 * second)
		w.root("b", "u2", "1")
		<-after(hour)
		r.runs()
		assert.Equal(t, []string{"ns/a=0 0s", "ns/b=0 0s", "ns/a=long 2s", "ns/b=1 12s"}, j.taken())
		r.stop()
	})
}
