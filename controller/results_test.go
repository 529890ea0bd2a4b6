package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

var errOops = errors.New("oops")

func TestRequeueAfterReconcilesOnceMoreThenUnlessSomethingIsEarlier(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		w.root("b", "u2", "1")
		j := newJournal()
		r := run(w, func(_ context.Context, a *app) (controller.Result, error) {
			j.note(a.Info.Key + "=" + a.Root.Data["a"])
			switch {
			case a.Info.Key == "ns/b" || a.Root.Data["a"] == "3":
				return controller.Done, nil
			case a.Root.Data["a"] == "2":
				return controller.RequeueAfter(time.Minute), nil
			}
			return controller.RequeueAfter(10 * time.Second), nil
		}, bySecret)
		<-after(15 * second)
		w.root("a", "u1", "2") // earlier than 20 s
		<-after(70 * second)
		w.root("a", "u1", "3")
		<-after(hour)
		r.runs()
		assert.Equal(t, []string{"ns/a=1 0s", "ns/b=1 0s", "ns/a=1 10s", "ns/a=2 15s", "ns/a=2 1m15s", "ns/a=3 1m25s"}, j.taken())
		r.stop()
	})
}

func TestARequeueIsDroppedWhenItsKeyIsGone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		c := &calls{answer: func(_ context.Context, a *app) (controller.Result, error) {
			if a.Info.Departure != "" {
				return controller.Done, nil
			}
			return controller.RequeueAfter(time.Minute), nil
		}}
		r := run(w, c.reconcile, bySecret)
		w.remove(configs, "ns", "a")
		<-after(hour)
		r.runs()
		assert.Equal(t, []string{"ns/a u1=1", "ns/a u1=1 deleted"}, c.taken())
		assert.Empty(t, r.Keys())
		r.stop()
	})
}

func TestRequeueAfterZeroIsAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u", "1")
		n := 0
		r := run(w, func(context.Context, *app) (controller.Result, error) {
			if n++; n < 5 {
				return controller.RequeueAfter(-time.Second), nil
			}
			return controller.Done, nil
		}, bySecret)
		assert.Equal(t, 5, n)
		r.stop()
	})
}

// told notes the calls of OnError.
func told(j *journal) kates.RunOption {
	return kates.WithOnError(func(err error, attempt int) {
		var of *kates.KeyError
		key := "?"
		if errors.As(err, &of) {
			key = of.Key
		}
		text, _, _ := strings.Cut(of.Err.Error(), "\n")
		j.note(fmt.Sprint(key, " ", attempt, " ", text))
	})
}

func TestG8AnErrorOrAPanicBacksItsKeyAloneOffWithTheAttemptsInSight(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		w.root("b", "u2", "1")
		c, attempts := &calls{}, newJournal()
		c.answer = func(_ context.Context, a *app) (controller.Result, error) {
			if a.Info.Key == "ns/b" {
				return controller.Done, nil
			}
			attempts.note(fmt.Sprint(a.Info.Attempt))
			switch a.Info.Attempt {
			case 1, 2:
				return controller.Done, errOops
			case 3:
				panic("a bug")
			}
			return controller.Done, nil
		}
		errs := newJournal()
		r := run(w, c.reconcile, bySecret, kates.WithBackoff(time.Second, time.Minute), told(errs))
		assert.Equal(t, []string{"ns/a u1=1", "ns/b u2=1"}, c.taken())
		w.root("a", "u1", "2")
		w.root("b", "u2", "2")
		r.runs()
		assert.Equal(t, []string{"ns/b u2=2"}, c.taken())
		assert.Equal(t, "ns/a: 1 oops", failures(r.Status()))
		<-after(hour)
		r.runs()
		assert.Equal(t, []string{"ns/a u1=2", "ns/a u1=2", "ns/a u1=2"}, c.taken())
		assert.Equal(t, []string{"ns/a 1 oops 0s", "ns/a 2 oops 1s", "ns/a 3 panic: a bug 3s"}, errs.taken())
		assert.Equal(t, []string{"1 0s", "2 1s", "3 3s", "4 7s"}, attempts.taken())
		status := r.Status()
		assert.Equal(t, "", failures(status))
		assert.Equal(t, []int64{6, 3}, []int64{status.Reconciles, status.Errors})
		w.root("a", "u1", "3")
		r.runs()
		assert.Equal(t, []string{"1 1h0m0s"}, attempts.taken(), "counted anew")
		r.stop()
	})
}

func failures(s controller.Status) string {
	var all []string
	for _, f := range s.Failing {
		all = append(all, fmt.Sprintf("%s: %d %v", f.Key, f.Attempt, f.Err))
	}
	return strings.Join(all, ", ")
}

func TestRequeueAfterWithAnErrorIsTheWaitInPlaceOfTheBackoff(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u", "1")
		c := &calls{answer: func(_ context.Context, a *app) (controller.Result, error) {
			switch a.Info.Attempt {
			case 1:
				return controller.RequeueAfter(time.Minute), errOops
			case 2:
				return controller.RequeueAfter(0), errOops
			}
			return controller.Done, nil
		}}
		errs := newJournal()
		r := run(w, c.reconcile, bySecret, told(errs))
		w.root("a", "u", "2")
		r.Trigger("ns/a")
		<-after(59 * second)
		r.runs()
		assert.Len(t, c.taken(), 1, "nothing comes earlier")
		<-after(second)
		r.runs()
		assert.Equal(t, []string{"ns/a 1 oops 0s", "ns/a 2 oops 1m0s"}, errs.taken())
		assert.Len(t, c.taken(), 2)
		assert.Empty(t, r.Status().Failing)
		r.stop()
	})
}

func TestRequeueAfterWithAPermanentErrorSaysNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u", "1")
		c := &calls{answer: func(context.Context, *app) (controller.Result, error) {
			return controller.RequeueAfter(second), kates.Permanent(errOops)
		}}
		r := run(w, c.reconcile, bySecret)
		<-after(hour)
		r.runs()
		assert.Len(t, c.taken(), 1)
		assert.Len(t, r.Status().Failing, 1)
		r.stop()
	})
}

func TestAPermanentErrorWaitsForAChangeAndEndsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u", "1")
		c := &calls{answer: func(_ context.Context, a *app) (controller.Result, error) {
			if a.Root.Data["a"] == "2" {
				return controller.Done, nil
			}
			return controller.RequeueAfter(time.Second), fmt.Errorf("bad: %w", kates.Permanent(errOops))
		}}
		errs := newJournal()
		r := run(w, c.reconcile, bySecret, told(errs))
		<-after(hour)
		r.runs()
		assert.Equal(t, []string{"ns/a 1 bad: oops 0s"}, errs.taken())
		assert.Equal(t, "ns/a: 1 bad: oops", failures(r.Status()))
		r.Trigger("ns/a")
		r.runs()
		assert.Len(t, c.taken(), 2)
		w.root("a", "u", "2")
		r.runs()
		assert.Equal(t, []string{"ns/a u=2"}, c.taken())
		assert.Empty(t, r.Status().Failing)
		r.stop()
	})
}

func TestAPermanentErrorCountsAsOneInARowInInfoOnErrorStatusAndTheBackoff(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		seen, errs := newJournal(), newJournal()
		r := run(w, func(_ context.Context, a *app) (controller.Result, error) {
			seen.note(fmt.Sprint(a.Info.Attempt))
			if a.Root.Data["a"] == "1" {
				return controller.Done, kates.Permanent(errOops)
			}
			return controller.Done, errOops
		}, bySecret, kates.WithBackoff(second, hour), told(errs))
		w.root("a", "u1", "2")
		r.runs()
		<-after(3 * second)
		assert.Equal(t, []string{"1 0s", "2 0s", "3 2s"}, seen.taken())
		assert.Equal(t, []string{"ns/a 1 oops 0s", "ns/a 2 oops 0s", "ns/a 3 oops 2s"}, errs.taken())
		assert.Equal(t, 3, r.Status().Failing[0].Attempt)
		r.stop()
	})
}
