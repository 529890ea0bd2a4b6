package controller_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

// slow returns a reconciler that notes how each of its calls ends: by itself, after a time, or
// with its context.
func slow(j *journal, takes time.Duration) func(context.Context, *app) (controller.Result, error) {
	return func(ctx context.Context, a *app) (controller.Result, error) {
		j.note("begin " + a.Info.Key)
		select {
		case <-after(takes):
			j.note("done " + a.Info.Key)
			return controller.Done, nil
		case <-ctx.Done():
			j.note("cut " + a.Info.Key + ": " + context.Cause(ctx).Error())
			return controller.Done, ctx.Err()
		}
	}
}

func TestWhenItsContextEndsNoWorkBeginsAndWhatRunsMayFinish(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		w.root("b", "u2", "1")
		j := newJournal()
		r := run(w, slow(j, 10*time.Second), bySecret)
		assert.Equal(t, []string{"begin ns/a 0s"}, j.taken())
		r.end()
		synctest.Wait()
		w.root("a", "u1", "2")
		assert.NoError(t, <-r.done)
		assert.Equal(t, []string{"done ns/a 10s"}, j.taken())
		assert.Zero(t, r.Status().Running)
	})
}

func TestReconcilesThatAreNotDoneWithinTheGracePeriodHaveTheirContextsCancelled(t *testing.T) {
	for text, options := range map[string][]kates.RunOption{
		"20s": {bySecret, kates.WithWorkers(2)},
		"5s":  {bySecret, kates.WithWorkers(2), kates.WithShutdownTimeout(5 * time.Second)},
		"0s":  {bySecret, kates.WithWorkers(2), kates.WithShutdownTimeout(0)},
	} {
		inWorld(t, func(w *world) {
			w.root("a", "u1", "1")
			w.root("b", "u2", "1")
			j := newJournal()
			r := run(w, slow(j, hour), options...)
			j.taken()
			r.end()
			err := <-r.done
			assert.ErrorIs(t, err, kates.ErrAborted)
			assert.EqualError(t, err, `controller "test": calls under way have been aborted after a shutdown timeout of `+text)
			cut := j.taken()
			require.Len(t, cut, 2)
			assert.Contains(t, cut[0], "cut ns/")
			assert.Contains(t, cut[0], kates.ErrAborted.Error())
			assert.Contains(t, cut[0], " "+text)
			assert.Zero(t, r.Status().Errors, "that is no error of the key")
		})
	}
}

func TestRunReturnsWhenTheLastReconcileHasThoughThatDoesNotHeedItsContext(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		r := run(w, func(context.Context, *app) (controller.Result, error) {
			<-after(hour)
			return controller.Done, nil
		}, bySecret)
		start := time.Now()
		r.end()
		assert.ErrorIs(t, <-r.done, kates.ErrAborted)
		assert.Equal(t, hour, time.Since(start))
	})
}

func TestSignalsInABubbleAreAnErrorThatNamesTheOption(t *testing.T) {
	inWorld(t, func(w *world) {
		c, err := controller.New(w.Client, "test", (&calls{}).reconcile, bySecret, kates.WithSignals())
		require.NoError(t, err)
		assert.ErrorContains(t, c.Run(w.Context()), `controller "test": WithSignals: `)
	})
}

func TestADeadlineIsAnEndWithItsError(t *testing.T) {
	inWorld(t, func(w *world) {
		c, err := controller.New(w.Client, "test", (&calls{}).reconcile, bySecret)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		err = c.Run(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, `controller "test": `)
	})
}

func TestItEndsWithItsWatch(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		r := run(w, (&calls{}).reconcile, bySecret, kates.WithWorkers(3))
		w.Client.Close()
		err := <-r.done
		assert.ErrorIs(t, err, kates.ErrClosed)
		assert.ErrorContains(t, err, `controller "test": the watch has ended: `)
	})
}

func TestItRunsOnceAtATimeAndAgainWhenItHasReturned(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		c := &calls{}
		r := run(w, c.reconcile, bySecret)
		assert.ErrorIs(t, r.Run(w.Context()), controller.ErrRunning)
		r.stop()
		w.root("b", "u2", "1")
		ctx, cancel := context.WithCancel(w.Context())
		go func() { r.done <- r.Start(ctx) }()
		r.runs()
		assert.Equal(t, []string{"ns/a u1=1", "ns/a u1=1", "ns/b u2=1"}, c.taken())
		assert.Equal(t, int64(3), r.Status().Reconciles)
		cancel()
		assert.NoError(t, <-r.done)
	})
}

func TestAReconcilerThatEndsItsGoroutineEndsTheController(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		c, err := controller.New(w.Client, "test", func(context.Context, *app) (controller.Result, error) {
			runtime.Goexit()
			return controller.Done, nil
		}, bySecret, kates.WithWorkers(2))
		require.NoError(t, err)
		assert.ErrorContains(t, c.Run(w.Context()), "runtime.Goexit")
		assert.Zero(t, c.Status().Running)
	})
}
