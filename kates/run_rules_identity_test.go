package kates_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// TestWhoLosesTouchForLongerThanItsLeaseLeadsAtOnceWhenItComesBack, in each loop, and what a
// former call has left running stays refused.
func TestWhoLosesTouchForLongerThanItsLeaseLeadsAtOnceWhenItComesBack(t *testing.T) {
	for _, name := range []string{"Run", "RunEach", "a controller"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0)))
				lease := leaseFailures(fake)
				put(t, fake, "x", "1")
				called := make(chan struct{}, 1)
				loop := electedRuns(called, election)[name]
				done := make(chan error, 1)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				start := func() { done <- loop(ctx, fake.Client) }
				go start()
				<-called
				first := holder(t, fake)
				lease.set(errors.New("down"))
				require.ErrorIs(t, <-done, kates.ErrLeadershipLost)
				go start()
				<-time.After(25 * time.Second)
				assert.Empty(t, called)
				back := time.Now()
				lease.set(nil)
				<-called
				assert.Less(t, time.Since(back), 5*time.Second, "at its next try, and not after 15 s")
				assert.Equal(t, first, holder(t, fake))
				cancel()
				require.NoError(t, <-done)
			})
		})
	}
}

func TestWritesOfAFormerCallOfRunStayRefusedThoughTheIdentityLeadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent))
		lease := leaseFailures(fake)
		contexts := make(chan context.Context, 1)
		f := func(ctx context.Context, _ *maps) error {
			select {
			case contexts <- context.WithoutCancel(ctx):
			default:
			}
			return nil
		}
		write := func(ctx context.Context, name string) error {
			return fake.Client.Create(ctx, configMap(name), nil)
		}
		r := run(t, fake.Client, f, election)
		former := <-contexts
		require.NoError(t, write(former, "a"))
		lease.set(errors.New("down"))
		require.ErrorIs(t, <-r.done, kates.ErrLeadershipLost)
		require.ErrorIs(t, write(former, "b"), kates.ErrLeadershipLost)
		for len(contexts) > 0 {
			<-contexts
		}
		lease.set(nil)
		r = run(t, fake.Client, f, election)
		latter := <-contexts
		require.NoError(t, write(latter, "c"))
		require.ErrorIs(t, write(former, "d"), kates.ErrLeadershipLost)
		r.stop()
		require.ErrorIs(t, write(latter, "e"), kates.ErrLeadershipLost)
	})
}

// TestTwoCandidatesOfOneProgramAreRivals: their identities differ, and one that is said twice is
// an error.
func TestTwoCandidatesOfOneProgramAreRivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent))
		one, two := newCalls(), newCalls()
		a := run(t, fake.Client, one.call, election)
		a.runs()
		b := run(t, fake.Client, two.call, election)
		<-time.After(time.Minute)
		b.runs()
		assert.Len(t, one.seen(), 1)
		assert.Empty(t, two.seen())
		leaders := fake.Client.Status().Leaders
		require.Len(t, leaders, 2)
		assert.NotEqual(t, leaders[0].Identity, leaders[1].Identity)
		assert.Equal(t, []bool{true, false}, []bool{leaders[0].Leading, leaders[1].Leading})
		assert.Equal(t, leaders[0].Identity, leaders[1].Holder)
		a.stop()
		b.stop()

		a = run(t, fake.Client, one.call, as("a"))
		a.runs()
		b = run(t, fake.Client, two.call, as("a"))
		require.ErrorContains(t, <-b.done, `stands for it already under the identity "a"`)
		a.stop()
	})
}
