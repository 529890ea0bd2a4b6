package kates_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/test/suite/sim"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// byTenant is a query whose objects belong to the tenant that their label names.
var byTenant = kates.Query{Name: "ConfigMaps", Key: kates.ByLabel("tenant")}

// putFor writes a config map of a tenant, like another program.
func putFor(t *testing.T, fake *katestest.Fake, tenant, name, a string) {
	t.Helper()
	in := fake.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "default", "labels": map[string]any{"tenant": tenant}}, "data": map[string]any{"a": a}}}
	_, err := in.Get(context.Background(), name, metav1.GetOptions{})
	if err == nil {
		_, err = in.Update(context.Background(), u, metav1.UpdateOptions{})
	} else {
		_, err = in.Create(context.Background(), u, metav1.CreateOptions{})
	}
	require.NoError(t, err)
}

func removeOf(t *testing.T, fake *katestest.Fake, name string) {
	t.Helper()
	in := fake.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	require.NoError(t, in.Delete(context.Background(), name, metav1.DeleteOptions{}))
}

// eachCalls records calls of a function for keys.
type eachCalls struct {
	mu     sync.Mutex
	texts  []string
	answer func(key string, snap *maps) error
}

func (c *eachCalls) call(_ context.Context, key string, snap *maps) error {
	c.mu.Lock()
	c.texts = append(c.texts, key+": "+strings.TrimSpace(snap.text()))
	c.mu.Unlock()
	if c.answer == nil {
		return nil
	}
	return c.answer(key, snap)
}

// taken returns the calls since the last time.
func (c *eachCalls) taken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.texts
	c.texts = nil
	return all
}

func runEach[S any](t *testing.T, c *kates.Client, f func(context.Context, string, *S) error, options ...kates.RunOption) *running {
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{t, cancel, make(chan error, 1)}
	go func() { r.done <- kates.RunEach(ctx, c, f, options...) }()
	return r
}

// tenants runs a test on a fake with x and y of a, and z of b.
func tenants(t *testing.T, f func(t *testing.T, fake *katestest.Fake)) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0)))
		putFor(t, fake, "a", "x", "1")
		putFor(t, fake, "a", "y", "1")
		putFor(t, fake, "b", "z", "1")
		f(t, fake)
	})
}

func TestRunEachCallsForEachKeyAndThenForThoseWhoseObjectsChange(t *testing.T) {
	tenants(t, func(t *testing.T, fake *katestest.Fake) {
		c, other := &eachCalls{}, make(chan int)
		r := runEach(t, fake.Client, c.call, byTenant, kates.WithTriggers(other))
		r.runs()
		assert.Equal(t, []string{"a: x1 y1", "b: z1"}, c.taken())
		putFor(t, fake, "a", "x", "2")
		r.runs()
		assert.Equal(t, []string{"a: x2 y1"}, c.taken())
		putFor(t, fake, "b", "x", "3")
		r.runs()
		assert.Equal(t, []string{"a: y1", "b: x3 z1"}, c.taken(), "it moved")
		removeOf(t, fake, "y")
		r.runs()
		assert.Equal(t, []string{"a: "}, c.taken(), "once more, empty")
		put(t, fake, "nobody's", "1")
		r.runs()
		assert.Empty(t, c.taken())
		other <- 1
		r.runs()
		assert.Equal(t, []string{"b: x3 z1"}, c.taken())
		assert.NoError(t, fake.Client.Ready())
		r.stop()
	})
}

func TestG4RunEachSeesItsOwnWritesAtItsNextCallAndQuietOnesDoNotWakeIt(t *testing.T) {
	for name, options := range map[string][]kates.RunOption{"signals": {byTenant}, "quiet": {byTenant, kates.WithQuietOwnWrites()}} {
		t.Run(name, func(t *testing.T) {
			tenants(t, func(t *testing.T, fake *katestest.Fake) {
				c := &eachCalls{}
				c.answer = func(key string, snap *maps) error {
					if key != "b" || snap.ConfigMaps[0].Data["a"] != "1" {
						return nil
					}
					mine := snap.ConfigMaps[0].DeepCopy()
					mine.Data["a"] = "mine"
					return fake.Client.Update(context.Background(), mine, nil)
				}
				r := runEach(t, fake.Client, c.call, options...)
				r.runs()
				all := []string{"a: x1 y1", "b: z1"}
				if name == "signals" {
					all = append(all, "b: zmine")
				}
				assert.Equal(t, all, c.taken())
				putFor(t, fake, "b", "v", "1")
				r.runs()
				assert.Equal(t, []string{"b: v1 zmine"}, c.taken()[:1])
				r.stop()
			})
		})
	}
}

func TestG8AnErrorOfRunEachIsTriedAgainForItsKeyAloneWithTheNewestSnapshot(t *testing.T) {
	tenants(t, func(t *testing.T, fake *katestest.Fake) {
		c, n := &eachCalls{}, 0
		c.answer = func(key string, _ *maps) error {
			if key != "a" {
				return nil
			}
			switch n++; n {
			case 1:
				return errOops
			case 2:
				panic("a bug")
			}
			return nil
		}
		var told []string
		start := time.Now()
		r := runEach(t, fake.Client, c.call, byTenant, kates.WithBackoff(time.Second, time.Minute), kates.WithOnError(func(err error, attempt int) {
			text, _, _ := strings.Cut(err.Error(), "\n")
			told = append(told, fmt.Sprint(time.Since(start), " ", attempt, " ", text))
		}))
		r.runs()
		assert.Equal(t, []string{"a: x1 y1", "b: z1"}, c.taken())
		putFor(t, fake, "a", "x", "2")
		putFor(t, fake, "b", "z", "2")
		r.runs()
		assert.Equal(t, []string{"b: z2"}, c.taken())
		<-time.After(1500 * time.Millisecond)
		r.runs()
		assert.Equal(t, []string{"a: x2 y1"}, c.taken())
		<-time.After(time.Hour)
		r.runs()
		assert.Equal(t, []string{"a: x2 y1"}, c.taken())
		assert.Equal(t, []string{`0s 1 key "a": oops`, `1s 2 key "a": panic: a bug`}, told)
		r.stop()
	})
}

func TestPermanentEndsRunEachWithAnErrorThatNamesTheKeyWhenAllCallsHaveReturned(t *testing.T) {
	tenants(t, func(t *testing.T, fake *katestest.Fake) {
		var running atomic.Int32
		r := runEach(t, fake.Client, func(ctx context.Context, key string, _ *maps) error {
			running.Add(1)
			defer running.Add(-1)
			if key == "b" {
				<-time.After(time.Second)
				return kates.Permanent(errOops)
			}
			<-ctx.Done()
			<-time.After(time.Hour)
			return ctx.Err()
		}, byTenant, kates.WithWorkers(3))
		err := <-r.done
		assert.ErrorIs(t, err, errOops)
		assert.EqualError(t, err, `key "b": oops`)
		assert.Zero(t, running.Load())
	})
}

func TestWorkersCallForSeveralKeysAtATimeAndNeverTwiceForOne(t *testing.T) {
	tenants(t, func(t *testing.T, fake *katestest.Fake) {
		proceed := make(chan struct{})
		c := &eachCalls{answer: func(string, *maps) error { <-proceed; return nil }}
		r := runEach(t, fake.Client, c.call, byTenant, kates.WithWorkers(3))
		r.runs()
		putFor(t, fake, "a", "x", "2")
		putFor(t, fake, "c", "v", "1")
		r.runs()
		all := c.taken()
		slices.Sort(all)
		assert.Equal(t, []string{"a: x1 y1", "b: z1", "c: v1"}, all)
		close(proceed)
		r.runs()
		assert.Equal(t, []string{"a: x2 y1"}, c.taken())
		r.stop()
	})
}

func TestAFollowerOfRunEachIsWarmAndCallsForEveryKeyWhenItWins(t *testing.T) {
	tenants(t, func(t *testing.T, fake *katestest.Fake) {
		shown := 0
		second := another(t, fake, showing{f: func() { shown++ }})
		one, two := &eachCalls{}, &eachCalls{}
		a := runEach(t, fake.Client, one.call, byTenant, as("a"))
		a.runs()
		b := runEach(t, second, two.call, byTenant, as("b"))
		<-time.After(time.Minute)
		putFor(t, fake, "b", "z", "2")
		b.runs()
		assert.Equal(t, 4, shown, "it has converted everything already")
		assert.Equal(t, []string{"a: x1 y1", "b: z1", "b: z2"}, one.taken())
		assert.Empty(t, two.taken())
		a.stop()
		<-time.After(time.Minute)
		b.runs()
		assert.Equal(t, []string{"b: z2", "a: x1 y1"}, two.taken(), "what has changed comes first")
		b.stop()
		assert.Equal(t, "", holder(t, fake))
	})
}

func TestG7TheDeltasOfATurnAreThoseSinceTheLastOneOfItsKeyWithoutAnError(t *testing.T) {
	tenants(t, func(t *testing.T, fake *katestest.Fake) {
		p, err := kates.WatchEach[mapsAndDeltas](t.Context(), fake.Client, byTenant, kates.Query{Name: "Secrets", Key: kates.ByName})
		require.NoError(t, err)
		defer p.Close()
		next := func() (*kates.Turn[mapsAndDeltas], string) {
			turn, err := p.Next(t.Context())
			require.NoError(t, err)
			text := turn.Key
			for _, d := range turn.Snapshot.Deltas {
				text += " " + d.DeltaType.String() + " " + d.Name
			}
			return turn, text
		}
		a, text := next()
		assert.Equal(t, "a add x add y", text)
		b, text := next()
		assert.Equal(t, "b add z", text)
		a.Done(nil)
		b.Done(nil)
		putFor(t, fake, "a", "x", "2")
		a, text = next()
		assert.Equal(t, "a update x", text)
		a.Done(errOops)
		a.Done(nil) // does nothing
		removeOf(t, fake, "y")
		putFor(t, fake, "a", "v", "1")
		a, text = next()
		assert.Equal(t, "a add v update x delete y", text)
		assert.Equal(t, 2, a.Attempt)
		a.Done(nil)
		removeOf(t, fake, "z")
		b, text = next()
		assert.Equal(t, "b delete z", text)
		assert.True(t, b.Gone)
		b.Done(nil)
		assert.Equal(t, []string{"a"}, p.Keys())
		p.TriggerAll()
		a, text = next()
		assert.Equal(t, "a", text)
		assert.False(t, a.Gone)
		a.Done(nil)
		assert.Equal(t, "Secrets", p.Status().Queries[1].Name)
	})
}

func TestG8WhatIsInvalidInAKeyIsInItsFieldForThat(t *testing.T) {
	type snap struct {
		ConfigMaps []*kates.ConfigMap
		Invalid    []kates.Invalid
	}
	tenants(t, func(t *testing.T, fake *katestest.Fake) {
		q := kates.Query{Name: "ConfigMaps", Key: kates.KeyOf(func(o metav1.Object) []string {
			if tenant := o.GetLabels()["tenant"]; tenant != "broken" {
				return []string{tenant}
			}
			panic("a bug")
		})}
		var seen []string
		r := runEach(t, fake.Client, func(_ context.Context, key string, s *snap) error {
			text := key
			for _, i := range s.Invalid {
				text += " without " + i.Object.GetName()
			}
			seen = append(seen, text)
			return nil
		}, q)
		r.runs()
		putFor(t, fake, "broken", "x", "1")
		r.runs()
		putFor(t, fake, "a", "x", "1")
		r.runs()
		assert.Equal(t, []string{"a", "b", "a without x", "a"}, seen)
		r.stop()
	})
}

func TestWhatRunEachCannotDoIsAnErrorBeforeItBegins(t *testing.T) {
	fake := katestest.New(t)
	f := (&eachCalls{}).call
	for text, options := range map[string][]kates.RunOption{
		"no query has a key function":                            {kates.Query{Name: "ConfigMaps"}},
		"the number of workers is 0: there must be one at least": {byTenant, kates.WithWorkers(0)},
		"a backoff from 0s to 1s":                                {byTenant, kates.WithBackoff(0, time.Second)},
		`query "Other": kates_test.maps has no exported field`:   {kates.Query{Name: "Other", Key: kates.ByName}},
		"a lease: it has no Name":                                {byTenant, kates.LeaderElection{}},
	} {
		err := kates.RunEach(t.Context(), fake.Client, f, options...)
		assert.ErrorContains(t, err, text)
		assert.ErrorContains(t, err, "kates_test.maps: ")
	}
	assert.EqualError(t, kates.RunEach[maps](t.Context(), fake.Client, nil, byTenant), "run each kates_test.maps: there is no function to call")
	assert.EqualError(t, kates.Run(t.Context(), fake.Client, newCalls().call, kates.WithWorkers(2)),
		"run kates_test.maps: WithWorkers is an option of RunEach: one snapshot has one function")
}

func TestRunEachEndsWithItsWatch(t *testing.T) {
	tenants(t, func(t *testing.T, fake *katestest.Fake) {
		r := runEach(t, fake.Client, (&eachCalls{}).call, byTenant, kates.WithWorkers(2))
		r.runs()
		fake.Client.Close()
		err := <-r.done
		assert.ErrorIs(t, err, kates.ErrClosed)
		assert.ErrorContains(t, err, "run kates_test.maps: the watch has ended: ")
	})
}

func TestAFunctionThatEndsItsGoroutineEndsRunEach(t *testing.T) {
	tenants(t, func(t *testing.T, fake *katestest.Fake) {
		putFor(t, fake, "a", "x", "1")
		err := kates.RunEach(t.Context(), fake.Client, func(context.Context, string, *maps) error {
			runtime.Goexit()
			return nil
		}, byTenant, kates.WithWorkers(2))
		assert.ErrorContains(t, err, "runtime.Goexit")
	})
}

// showing is an option as the kit has it. The function is called for each converted value.
type showing struct {
	kates.WatchOption
	f func()
}

func (s showing) Witness(string) collect.Witness { return sim.Witness(s.f) }
