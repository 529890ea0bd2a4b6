package kates_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// told is what OnChange was told: who leads, and whether that can be read and written.
type told struct {
	Leading bool
	Holder  string
	Trouble bool
}

// telling returns an election that sends what OnChange is told.
func telling(identity string, all chan<- told) kates.LeaderElection {
	e := as(identity)
	e.OnChange = func(s kates.LeaderStatus) { all <- told{s.Leading, s.Holder, s.Error != ""} }
	return e
}

// drained are the values that a channel has.
func drained[T any](c <-chan T) (all []T) {
	for len(c) > 0 {
		all = append(all, <-c)
	}
	return all
}

func TestOnChangeIsToldWhoLeadsUntilRunReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent))
		lease := leaseFailures(fake)
		one, two := make(chan told, 100), make(chan told, 100)
		a := run(t, fake.Client, newCalls().call, telling("a", one))
		a.runs()
		<-time.After(time.Minute)
		b := run(t, another(t, fake), newCalls().call, telling("b", two))
		<-time.After(time.Minute)
		b.runs()
		assert.Equal(t, []told{{Leading: true, Holder: "a"}}, drained(one))
		assert.Equal(t, []told{{Holder: "a"}}, drained(two))
		a.stop()
		last := drained(one)
		require.NotEmpty(t, last)
		assert.Equal(t, told{}, last[len(last)-1], "released")
		<-time.After(time.Minute)
		b.runs()
		changes := drained(two)
		assert.Equal(t, told{Leading: true, Holder: "b"}, changes[len(changes)-1])

		lease.set(errors.New("down"))
		assert.ErrorIs(t, <-b.done, kates.ErrLeadershipLost)
		assert.Equal(t, []told{{true, "b", true}, {false, "b", true}}, drained(two))
		lease.set(nil)
		<-time.After(time.Hour)
		assert.Empty(t, two, "the run has ended")
	})
}

// TestOnChangeThatIsSlowOrPanicsHoldsNoRenewalUp: it is told the state when it returns.
func TestOnChangeThatIsSlowOrPanicsHoldsNoRenewalUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &logged{}
		fake := katestest.New(t, katestest.WithClientOptions(kates.WithLogger(slog.New(slog.NewTextHandler(out, nil)))))
		e, calls := as("a"), 0
		proceed := make(chan struct{})
		e.OnChange = func(s kates.LeaderStatus) {
			<-proceed
			if calls++; calls == 1 {
				assert.True(t, s.Leading)
				panic("oops")
			}
			assert.False(t, s.Leading)
		}
		c := newCalls()
		r := run(t, fake.Client, c.call, e)
		<-time.After(time.Hour)
		r.runs()
		assert.Len(t, c.seen(), 1)
		assert.True(t, fake.Client.Status().Leaders[0].Leading)
		r.cancel()
		<-time.After(time.Hour)
		r.runs() // it waits for OnChange
		close(proceed)
		assert.NoError(t, <-r.done)
		assert.Equal(t, 2, calls)
		assert.Equal(t, 1, out.count(`err="OnChange panicked: oops" stack=`), &out.text)
	})
}

func TestTheStatusSaysWhoLeadsAndSinceWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent))
		second := another(t, fake)
		make := func(c *kates.Client, identity string) *controller.Controller[rooted] {
			r, err := controller.New(c, identity, func(context.Context, *rooted) (controller.Result, error) { return controller.Done, nil }, as(identity))
			require.NoError(t, err)
			return r
		}
		one, two := make(fake.Client, "a"), make(second, "b")
		assert.Equal(t, &kates.LeaderStatus{Lease: "default/the-lease"}, one.Status().Leader)
		ctx, cancel := context.WithCancel(t.Context())
		deadline, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		ends := [...]chan error{chanOf[error](), chanOf[error]()}
		start := time.Now()
		go func() { ends[0] <- one.Run(ctx) }()
		synctest.Wait()
		go func() { ends[1] <- two.Run(deadline) }()
		<-time.After(time.Minute)
		leader := kates.LeaderStatus{Lease: "default/the-lease", Identity: "a", Leading: true, Led: true, Holder: "a", Since: one.Status().Leader.Since}
		assert.WithinDuration(t, start, leader.Since, time.Millisecond)
		follower := kates.LeaderStatus{Lease: "default/the-lease", Identity: "b", Holder: "a", Since: two.Status().Leader.Since}
		assert.True(t, follower.Since.Equal(leader.Since), "what the Lease says")
		assert.Equal(t, &leader, one.Status().Leader)
		assert.Equal(t, &follower, two.Status().Leader)
		assert.Equal(t, []kates.LeaderStatus{follower}, second.Status().Leaders)
		assert.NoError(t, second.Status().Err(), "to follow is no error")
		assert.NoError(t, two.Ready())
		assert.Nil(t, one.Status().Shard)
		err := <-ends[1]
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, kates.ErrNeverLed)
		assert.ErrorContains(t, err, `lease default/the-lease: it never led: "a" holds it: `)
		cancel()
		require.NoError(t, <-ends[0])
		assert.Equal(t, &kates.LeaderStatus{Lease: "default/the-lease", Identity: "a", Led: true}, one.Status().Leader, "of the last run")

		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = one.Run(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, kates.ErrNeverLed)
		assert.ErrorContains(t, err, "lease default/the-lease: it was held by this replica: ")
	})
}

func chanOf[T any]() chan T { return make(chan T, 1) }
