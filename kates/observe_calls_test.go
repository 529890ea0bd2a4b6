package kates_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	"k8s.io/klog/v2"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// watched is an observer that writes down what it is told of calls.
type watched struct {
	mu    sync.Mutex
	begun []kates.CallInfo
	ended []string
}

type observedKey struct{}

func (w *watched) Request(ctx context.Context, _ kates.RequestInfo) (context.Context, func(kates.RequestResult)) {
	return ctx, nil
}

func (w *watched) Updated(kates.UpdateInfo) {}

func (w *watched) Call(ctx context.Context, c kates.CallInfo) (context.Context, func(kates.CallResult)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = append(w.begun, c)
	return context.WithValue(ctx, observedKey{}, c.ID), func(r kates.CallResult) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended = append(w.ended, fmt.Sprintf("%s %d %s %s %v", c.Key, c.Attempt, r.Outcome, r.Duration, r.Err))
	}
}

func (w *watched) taken() (begun []kates.CallInfo, ended []string) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	begun, ended = w.begun, w.ended
	w.begun, w.ended = nil, nil
	return begun, ended
}

func TestAnObserverIsToldOfEachCallAndHowItHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{}
		fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0), kates.WithObserver(w)),
			katestest.WithObjects(configMap("a")))
		answers := []func(context.Context) error{
			func(context.Context) error { return errors.New("not now") },
			func(context.Context) error { panic("broken") },
			func(context.Context) error { return kates.AgainWithBackoff() },
			func(context.Context) error { return kates.Again(time.Second) },
			func(context.Context) error { return nil },
		}
		var seen []any
		r := run(t, fake.Client, func(ctx context.Context, _ *maps) error {
			time.Sleep(time.Second)
			seen = append(seen, ctx.Value(observedKey{}))
			if len(answers) == 0 {
				<-ctx.Done()
				return ctx.Err()
			}
			answer := answers[0]
			answers = answers[1:]
			return answer(ctx)
		})
		time.Sleep(time.Minute)
		put(t, fake, "b", "1")
		time.Sleep(time.Minute)
		r.stop()
		begun, ended := w.taken()
		assert.Equal(t, []string{
			" 1 error 1s not now",
			" 2 error 1s panic: broken",
			" 3 requeue_after 1s <nil>",
			" 4 requeue_after 1s <nil>",
			" 1 success 1s <nil>",
			" 1 cut 1m0s context canceled",
		}, ended)
		ids := map[string]bool{}
		for i, c := range begun {
			assert.Equal(t, "kates_test.maps", c.Loop)
			assert.Equal(t, c.ID, seen[i], "the context of the call is the observer's")
			ids[c.ID] = true
		}
		assert.Len(t, ids, 6)
	})
}

func TestAPermanentErrorAndTheEndOfAGoroutineAreEndsOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, end := range []struct {
			by   func() error
			text string
		}{
			{func() error { return kates.Permanent(errors.New("never")) }, "a 1 terminal 0s never"},
			{func() error { runtime.Goexit(); return nil }, "a 1 cut 0s <nil>"},
		} {
			w := &watched{}
			fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithObserver(w)), katestest.WithObjects(configMap("a")))
			r := runEach(t, fake.Client, func(context.Context, string, *maps) error { return end.by() },
				kates.Query{Name: "ConfigMaps", Key: kates.ByName})
			assert.Error(t, <-r.done)
			_, ended := w.taken()
			assert.Equal(t, []string{end.text}, ended)
		}
	})
}

func TestAKeyIsQueuedFromWhenItIsReadyUntilItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{}
		fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0), kates.WithObserver(w)),
			katestest.WithObjects(configMap("a"), configMap("b")))
		var failing atomic.Bool
		failing.Store(true)
		r := runEach(t, fake.Client, func(_ context.Context, key string, _ *maps) error {
			time.Sleep(10 * time.Second)
			if key == "c" && failing.Load() {
				return errors.New("not now")
			}
			return nil
		}, kates.Query{Name: "ConfigMaps", Key: kates.ByName}, kates.WithBackoff(time.Minute, time.Minute))
		queued := func() (all []string) {
			begun, _ := w.taken()
			for _, c := range begun {
				all = append(all, fmt.Sprintf("%s %s", c.Key, c.Queued))
			}
			return all
		}
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"a 0s", "b 10s"}, queued())

		put(t, fake, "a", "1")
		time.Sleep(4 * time.Second)
		put(t, fake, "b", "1") // while the only worker is busy
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"a 0s", "b 6s"}, queued())

		put(t, fake, "c", "1")
		time.Sleep(65 * time.Second) // its rest ends after 70 s
		failing.Store(false)
		put(t, fake, "a", "2")
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"c 0s", "a 0s", "c 5s"}, queued(), "a rest is no queue, and what comes after it is")
		r.stop()
	})
}

// breaking panics whenever it is told something.
type breaking struct{ late bool }

func (b breaking) Request(ctx context.Context, _ kates.RequestInfo) (context.Context, func(kates.RequestResult)) {
	return ctx, nil
}
func (b breaking) Updated(kates.UpdateInfo) {}
func (b breaking) Call(context.Context, kates.CallInfo) (context.Context, func(kates.CallResult)) {
	if b.late {
		return nil, func(kates.CallResult) { panic("late") }
	}
	panic("early")
}

func TestAnObserverThatPanicsHarmsNeitherTheCallNorTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, out := &watched{}, &textOut{}
		fake := katestest.New(t, katestest.WithClientOptions(out.option(), kates.WithObserver(breaking{}),
			kates.WithObserver(w), kates.WithObserver(breaking{late: true})), katestest.WithObjects(configMap("a")))
		called := 0
		r := run(t, fake.Client, func(ctx context.Context, _ *maps) error {
			called++
			assert.NotNil(t, ctx.Value(observedKey{}))
			return nil
		})
		r.runs()
		_, ended := w.taken()
		r.stop()
		assert.Equal(t, 1, called)
		assert.Equal(t, []string{" 1 success 0s <nil>"}, ended)
		for _, text := range []string{"early", "late"} {
			assert.Contains(t, out.all(), text)
		}
		assert.Equal(t, 2, strings.Count(out.all(), "an observer has panicked"))
	})
}

// textOut is a log of all levels, as text without times.
type textOut struct{ logged }

func (o *textOut) option() kates.Option {
	return kates.WithLogger(slog.New(slog.NewTextHandler(o, &slog.HandlerOptions{Level: slog.Level(-100),
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})))
}

// of are the lines with the ID of a call, in place of which they have ID.
func (o *textOut) of(id string) (lines []string) {
	for line := range strings.Lines(o.all()) {
		if strings.Contains(line, id) {
			lines = append(lines, strings.TrimSpace(strings.ReplaceAll(line, id, "ID")))
		}
	}
	return lines
}

func (o *textOut) all() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.logged.text.String()
}

func TestEachCallHasAnIDAndALoggerThatHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &textOut{}
		fake := katestest.New(t, katestest.WithClientOptions(out.option()), katestest.WithObjects(configMap("a")))
		assert.Empty(t, kates.CallIDFromContext(t.Context()))
		var ids []string
		fails := true
		r := runEach(t, fake.Client, func(ctx context.Context, _ string, _ *maps) error {
			ids = append(ids, kates.CallIDFromContext(ctx))
			klog.FromContext(ctx).Info("in the function")
			if fails {
				fails = false
				return errors.New("not now")
			}
			return fake.Client.Create(ctx, configMap("output"), nil)
		}, kates.Query{Name: "ConfigMaps", Key: kates.KeyOf(func(o metav1.Object) []string { return []string{"all"} })})
		time.Sleep(time.Minute)
		r.stop()
		require.Len(t, slices.Compact(slices.Clone(ids)), len(ids))
		require.GreaterOrEqual(t, len(ids), 2)
		assert.Equal(t, []string{
			`level=INFO msg="in the function" run=kates_test.maps key=all reconcileID=ID`,
			`level=ERROR msg="the function has failed, will keep trying" run=kates_test.maps key=all reconcileID=ID attempt=1 err="key \"all\": not now" again=100ms`,
		}, out.of(ids[0]))
		assert.Equal(t, []string{
			`level=INFO msg="in the function" run=kates_test.maps key=all reconcileID=ID`,
			`level=DEBUG+2 msg=written run=kates_test.maps key=all reconcileID=ID verb=create resource=v1/configmaps namespace=default name=output`,
			`level=INFO msg="the function has succeeded again" run=kates_test.maps key=all reconcileID=ID attempts=2`,
		}, out.of(ids[1]))
	})
}
