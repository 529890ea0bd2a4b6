package kates_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

type maps struct{ ConfigMaps []*kates.ConfigMap }

// text returns the names in a snapshot, and their data "a".
func (m *maps) text() (s string) {
	for _, cm := range m.ConfigMaps {
		s += cm.Name + cm.Data["a"] + " "
	}
	return s
}

var (
	errOops = errors.New("oops")
	silent  = kates.WithLogger(slog.New(slog.DiscardHandler))
)

// put writes a config map, like another program.
func put(t *testing.T, fake *katestest.Fake, name, a string) {
	t.Helper()
	in := fake.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "default"}, "data": map[string]any{"a": a}}}
	_, err := in.Get(context.Background(), name, metav1.GetOptions{})
	if err == nil {
		_, err = in.Update(context.Background(), u, metav1.UpdateOptions{})
	} else {
		_, err = in.Create(context.Background(), u, metav1.CreateOptions{})
	}
	require.NoError(t, err)
}

// running is a Run in a goroutine.
type running struct {
	t      *testing.T
	cancel context.CancelFunc
	done   chan error
}

func run[S any](t *testing.T, c *kates.Client, f func(context.Context, *S) error, options ...kates.RunOption) *running {
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{t, cancel, make(chan error, 1)}
	go func() { r.done <- kates.Run(ctx, c, f, options...) }()
	return r
}

// stop cancels it, and checks that it returns nil.
func (r *running) stop() {
	r.t.Helper()
	r.cancel()
	assert.NoError(r.t, <-r.done)
}

func (r *running) runs() {
	r.t.Helper()
	synctest.Wait()
	select {
	case err := <-r.done:
		r.t.Fatalf("it has ended: %v", err)
	default:
	}
}

// calls records the calls of a function, and sets its answers.
type calls struct {
	start time.Time

	mu      sync.Mutex
	texts   []string
	times   []time.Duration
	answers []error // then nil
}

func (c *calls) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.texts)
}

func (c *calls) at() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.times)
}

func newCalls(answers ...error) *calls { return &calls{start: time.Now(), answers: answers} }

func (c *calls) call(_ context.Context, m *maps) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts, c.times = append(c.texts, m.text()), append(c.times, time.Since(c.start))
	if len(c.answers) == 0 {
		return nil
	}
	err := c.answers[0]
	c.answers = c.answers[1:]
	return err
}

func TestRunCallsItsFunctionWithTheFirstCompleteSnapshotThoughItIsEmptyAndThenForWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(kates.WithInterval(0)))
		fine := make(chan struct{})
		react(fake, "list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { <-fine; return false, nil, nil })
		c := newCalls()
		r := run(t, fake.Client, c.call)
		r.runs()
		assert.Empty(t, c.seen(), "there is none yet")
		close(fine)
		r.runs()
		put(t, fake, "x", "1")
		r.runs()
		put(t, fake, "x", "2")
		r.runs()
		<-time.After(time.Hour)
		assert.Equal(t, []string{"", "x1 ", "x2 "}, c.seen())
		r.stop()
	})
}

func TestRunTakesQueriesAndWatchOptionsForItselfAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithObjects(configMap("x"), configMap("y")))
		c := newCalls()
		r := run(t, fake.Client, c.call, kates.Query{Name: "ConfigMaps", LabelSelector: "a=b"}, kates.WithInterval(time.Hour))
		r.runs()
		assert.Equal(t, []string{""}, c.seen())
		for i := range 3 {
			cm := configMap("x", "a", fmt.Sprint(i))
			cm.Labels = map[string]string{"a": "b"}
			require.NoError(t, fake.Client.Upsert(t.Context(), nil, cm, nil))
			r.runs()
		}
		assert.Len(t, c.seen(), 1)
		<-time.After(time.Hour)
		r.runs()
		assert.Equal(t, []string{"", "x2 "}, c.seen())
		r.stop()
	})
}

// TestRunCallsItsFunctionOncePerIntervalUnderChurn: changes that come during a call wait for the
// next signal, too.
func TestRunCallsItsFunctionOncePerIntervalUnderChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent))
		c := newCalls()
		r := run(t, fake.Client, func(ctx context.Context, m *maps) error {
			<-time.After(50 * time.Millisecond)
			return c.call(ctx, m)
		}, kates.WithInterval(time.Second))
		r.runs()
		for i := range 505 {
			<-time.After(10 * time.Millisecond)
			put(t, fake, "x", fmt.Sprint(i))
		}
		<-time.After(time.Hour)
		r.runs()
		at := c.at()
		assert.LessOrEqual(t, len(at), 8, at) // the first snapshot, the first change, one each second
		assert.GreaterOrEqual(t, len(at), 6, at)
		assert.Equal(t, "x504 ", c.seen()[len(at)-1])
		r.stop()
	})
}

func TestAnErrorMeansATryWithTheNewestSnapshotNoSoonerThanItsBackoffAlsoUnderChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0)))
		put(t, fake, "x", "0")
		c := newCalls(errOops, errOops, errOops, errOops, errOops, nil, errOops, nil)
		other := make(chan int)
		r := run(t, fake.Client, c.call, kates.WithBackoff(100*time.Millisecond, 500*time.Millisecond), kates.WithTriggers(other))
		r.runs()
		<-time.After(3 * time.Millisecond)
		for i := range 250 { // at 3 ms, 13 ms, …
			put(t, fake, "x", fmt.Sprint(i+1))
			other <- i
			r.runs()
			<-time.After(10 * time.Millisecond)
		}
		ms := func(all ...int) (d []time.Duration) {
			for _, n := range all {
				d = append(d, time.Duration(n)*time.Millisecond)
			}
			return d
		}
		seen, at := c.seen(), c.at()
		require.Greater(t, len(at), 10)
		assert.Equal(t, ms(0, 100, 300, 700, 1200, 1700), at[:6], "100, 200, 400, and then 500")
		assert.Equal(t, at[6]+100*time.Millisecond, at[7], "after a success it begins anew")
		for i, at := range at {
			if at%(10*time.Millisecond) != 3*time.Millisecond { // it may run at these times
				assert.Equal(t, fmt.Sprintf("x%d ", (at.Milliseconds()+7)/10), seen[i], "at %s", at)
			}
		}
		assert.Equal(t, "x250 ", seen[len(seen)-1])
		r.stop()
	})
}

func TestG8APanicOfTheFunctionIsAnErrorWithAStackAndIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &logged{}
		fake := katestest.New(t, katestest.WithClientOptions(kates.WithLogger(slog.New(slog.NewTextHandler(out, nil)))))
		n := 0
		var told error
		r := run(t, fake.Client, func(context.Context, *maps) error {
			if n++; n == 1 {
				panic(kates.Permanent(errOops))
			}
			return nil
		}, kates.WithOnError(func(err error, _ int) { told = err }))
		r.runs()
		var p *kates.PanicError
		require.ErrorAs(t, told, &p)
		assert.EqualError(t, p.Value.(error), "oops")
		assert.Contains(t, p.Stack, "run_rules_test.go")
		assert.EqualError(t, told, "panic: oops")
		assert.Equal(t, 1, out.count(`"the function has panicked, will keep trying"`), &out.text)
		assert.Equal(t, 1, out.count(` stack="goroutine `), &out.text)
		assert.Equal(t, 1, out.count(`err="panic: oops"`), &out.text)
		<-time.After(100 * time.Millisecond)
		r.runs()
		assert.Equal(t, 2, n)
		r.stop()
	})
}

func TestPermanentEndsRunWithThatError(t *testing.T) {
	assert.NoError(t, kates.Permanent(nil))
	assert.EqualError(t, kates.Permanent(errOops), "oops")
	assert.ErrorIs(t, kates.Permanent(errOops), errOops)
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent))
		attempts := 0
		err := kates.Run(t.Context(), fake.Client, newCalls(errOops, kates.Permanent(errOops)).call, kates.WithOnError(func(error, int) { attempts++ }))
		assert.Same(t, errOops, err)
		assert.Equal(t, 2, attempts)
		wrapped := fmt.Errorf("mine: %w", kates.Permanent(errOops))
		assert.Same(t, wrapped, kates.Run(t.Context(), fake.Client, newCalls(wrapped).call))
		assert.Empty(t, fake.Client.Status().Queries, "its watch has ended")
	})
}

func TestRunReturnsNilWhenItIsCancelledWhateverItWasDoing(t *testing.T) {
	for name, f := range map[string]func(ctx context.Context) error{
		"waiting":             func(context.Context) error { return nil },
		"waiting for a retry": func(context.Context) error { return errOops },
		"in its function":     func(ctx context.Context) error { <-ctx.Done(); return nil },
		"in a function that returns the context's error": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"in one that calls it permanent":                 func(ctx context.Context) error { <-ctx.Done(); return kates.Permanent(ctx.Err()) },
		"in one that panics then":                        func(ctx context.Context) error { <-ctx.Done(); panic("late") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := katestest.New(t, katestest.WithClientOptions(silent))
				r := run(t, fake.Client, func(ctx context.Context, _ *maps) error { return f(ctx) }, kates.WithBackoff(time.Hour, time.Hour), kates.WithTriggers(make(chan int)))
				r.runs()
				start := time.Now()
				r.stop()
				assert.Equal(t, start, time.Now())
				assert.Empty(t, fake.Client.Status().Queries)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		fake, pods := unreliable(t, silent)
		pods.set(podsOutages[0])
		r := run(t, fake.Client, func(context.Context, *podsAndServices) error { return nil })
		r.runs()
		r.stop() // there is no snapshot yet
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("before it began"))
		assert.NoError(t, kates.Run(ctx, fake.Client, newCalls().call))
	})
}

func TestRunReturnsAfterItsFunctionWhoseContextEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t)
		var inside context.Context
		finished := false
		r := run(t, fake.Client, func(ctx context.Context, _ *maps) error {
			inside = ctx
			<-ctx.Done()
			<-time.After(time.Minute)
			finished = true
			return nil
		})
		r.runs()
		r.stop()
		assert.True(t, finished)

		require.Same(t, errOops, kates.Run(t.Context(), katestest.New(t, katestest.WithClientOptions(silent)).Client, func(ctx context.Context, _ *maps) error {
			inside = ctx
			return kates.Permanent(errOops)
		}))
		assert.ErrorIs(t, inside.Err(), context.Canceled)
	})
}

func TestTheEndOfTheWatchIsAnErrorOfRunThatNamesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, pods := unreliable(t, silent)
		for _, f := range []func(context.Context, *podsAndServices) error{
			func(context.Context, *podsAndServices) error { return nil },
			func(context.Context, *podsAndServices) error { return errOops }, // then it waits
		} {
			fake := katestest.New(t, katestest.WithClientOptions(silent))
			r := run(t, fake.Client, f, kates.WithBackoff(time.Hour, time.Hour))
			r.runs()
			fake.Client.Close()
			err := <-r.done
			assert.ErrorIs(t, err, kates.ErrClosed)
			assert.ErrorContains(t, err, "run kates_test.podsAndServices: the watch has ended: ")
		}
		pods.set(podsOutages[0])
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := kates.Run(ctx, fake.Client, func(context.Context, *podsAndServices) error { return nil })
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "run kates_test.podsAndServices: ")
		assert.ErrorContains(t, err, "broken", "and what was incomplete")
	})
}

func TestWhatRunCannotDoIsAnErrorBeforeItBegins(t *testing.T) {
	fake := katestest.New(t)
	f := newCalls().call
	lease := kates.LeaderElection{Name: "l"}
	for text, options := range map[string][]kates.RunOption{
		"an option is nil":              {nil},
		"a backoff from 0s to 1s":       {kates.WithBackoff(0, time.Second)},
		"a backoff from 2s to 1s":       {kates.WithBackoff(2*time.Second, time.Second)},
		"WithOnError(nil)":              {kates.WithOnError(nil)},
		"a lease: it has no Name":       {kates.LeaderElection{}},
		`the Name of a lease, "A B"`:    {kates.LeaderElection{Name: "A B"}},
		`the Namespace of a lease, "."`: {kates.LeaderElection{Name: "l", Namespace: "."}},
		"not for several":               {lease, lease},
		"LeaseDuration is 1.5s":         {kates.LeaderElection{Name: "l", LeaseDuration: 1500 * time.Millisecond}},
		"LeaseDuration is -1s":          {kates.LeaderElection{Name: "l", LeaseDuration: -time.Second}},
		"RetryPeriod is -1s":            {kates.LeaderElection{Name: "l", RetryPeriod: -time.Second}},
		"RenewDeadline (15s) must be less than LeaseDuration (15s)":         {kates.LeaderElection{Name: "l", RenewDeadline: 15 * time.Second}},
		"RenewDeadline (10s) must be more than 1.2 times RetryPeriod (10s)": {kates.LeaderElection{Name: "l", RetryPeriod: 10 * time.Second}},
		`query "Other": kates_test.maps has no exported field of that name`: {kates.Query{Name: "Other"}},
	} {
		err := kates.Run(t.Context(), fake.Client, f, options...)
		require.Error(t, err, text)
		assert.Contains(t, err.Error(), "run kates_test.maps: ")
		assert.Contains(t, err.Error(), text)
	}
	assert.EqualError(t, kates.Run[maps](t.Context(), fake.Client, nil), "run kates_test.maps: there is no function to call")
	assert.Empty(t, fake.Dynamic.Actions(), "nothing was asked")
}
