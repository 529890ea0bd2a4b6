package kates_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var (
	leases   = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	election = kates.LeaderElection{Name: "the-lease"}
)

// holder returns the holder of the lease.
func holder(t *testing.T, fake *katestest.Fake) string {
	t.Helper()
	u, err := fake.Dynamic.Resource(leases).Namespace("default").Get(context.Background(), "the-lease", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "nobody"
	}
	require.NoError(t, err)
	name, _, _ := unstructured.NestedString(u.Object, "spec", "holderIdentity")
	return name
}

func as(identity string) kates.LeaderElection {
	e := election
	e.Identity = identity
	return e
}

// steal gives the lease to "b".
func steal(t *testing.T, fake *katestest.Fake) {
	t.Helper()
	// On this fake a write succeeds without its version. The reactor refuses it, like a server.
	react(fake, "update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(leases.GroupResource(), "the-lease", errors.New("it is another"))
	})
	u, err := fake.Dynamic.Resource(leases).Namespace("default").Get(t.Context(), "the-lease", metav1.GetOptions{})
	require.NoError(t, err)
	_ = unstructured.SetNestedField(u.Object, "b", "spec", "holderIdentity")
	require.NoError(t, fake.Dynamic.Tracker().Update(leases, u, "default"))
}

// react adds a reactor to a fake that is in use. PrependReactor itself takes no lock.
func react(fake *katestest.Fake, verb, resource string, f clienttesting.ReactionFunc) {
	fake.Dynamic.Lock()
	defer fake.Dynamic.Unlock()
	fake.Dynamic.PrependReactor(verb, resource, f)
}

// another returns a second replica: a client of its own.
func another(t *testing.T, fake *katestest.Fake, options ...kates.Option) *kates.Client {
	t.Helper()
	c, err := kates.NewClientFromDynamic(fake.Dynamic, fake.Mapper, append([]kates.Option{silent, kates.WithInterval(0)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// unreachable makes the leases unreachable.
type unreachable struct {
	mu  sync.Mutex
	err error
}

func (u *unreachable) set(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.err = err
}

func leaseFailures(fake *katestest.Fake) *unreachable {
	u := &unreachable{}
	react(fake, "*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.err != nil, nil, u.err
	})
	return u
}

func TestAFollowerIsWarmAndItsFunctionIsCalledAtOnceWhenItWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0)))
		shown, other := 0, make(chan int)
		second := another(t, fake, showing{f: func() { shown++ }})
		one, two := newCalls(), newCalls()
		a := run(t, fake.Client, one.call, as("a"))
		a.runs()
		require.Len(t, one.seen(), 1)
		b := run(t, second, two.call, as("b"), kates.WithTriggers(other))
		for _, name := range []string{"x", "y", "z"} {
			<-time.After(time.Minute)
			put(t, fake, name, "1")
			other <- 1
		}
		b.runs()
		assert.Equal(t, 3, shown, "it has converted everything already")
		assert.NoError(t, second.Ready())
		assert.Empty(t, two.seen())
		assert.Equal(t, "x1 y1 z1 ", one.seen()[3])
		start := time.Now()
		a.stop()
		assert.Equal(t, "", holder(t, fake))
		for len(two.seen()) == 0 {
			<-time.After(time.Millisecond)
		}
		assert.Less(t, time.Since(start), 5*time.Second, "RetryPeriod and its jitter")
		assert.Equal(t, "b", holder(t, fake))
		assert.Equal(t, []string{"x1 y1 z1 "}, two.seen())
		put(t, fake, "x", "2")
		b.runs()
		assert.Equal(t, []string{"x1 y1 z1 ", "x2 y1 z1 "}, two.seen())
		b.stop()
		assert.Equal(t, "", holder(t, fake))
	})
}

func TestG7TheFirstDeltasOfALeaderAreEverythingThoughItHasFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent, kates.WithInterval(0)), katestest.WithObjects(configMap("x"), configMap("y")))
		a := run(t, fake.Client, newCalls().call, as("a"))
		a.runs()
		var deltas []string
		b := run(t, another(t, fake), func(_ context.Context, s *mapsAndDeltas) error {
			for _, d := range s.Deltas {
				deltas = append(deltas, d.DeltaType.String()+" "+d.Name)
			}
			return nil
		}, as("b"))
		b.runs()
		require.NoError(t, fake.Client.Delete(t.Context(), configMap("x"), nil))
		put(t, fake, "y", "2")
		b.runs()
		a.stop()
		<-time.After(time.Minute)
		b.runs()
		assert.Equal(t, []string{"add y"}, deltas)
		b.stop()
	})
}

func TestLosingTheLeaseCancelsTheFunctionAndIsAnErrorWhenThatHasReturned(t *testing.T) {
	for name, late := range map[string]error{"": nil, "with an error": errOops, "with one for good": kates.Permanent(errOops)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := katestest.New(t, katestest.WithClientOptions(silent))
				lease := leaseFailures(fake)
				cancelled := make(chan error, 1)
				finished := false
				r := run(t, fake.Client, func(ctx context.Context, _ *maps) error {
					<-ctx.Done()
					cancelled <- context.Cause(ctx)
					<-time.After(time.Hour)
					finished = true
					return late
				}, as("a"))
				<-time.After(time.Minute)
				r.runs()
				require.Equal(t, "a", holder(t, fake))
				lease.set(errors.New("down"))
				start := time.Now()
				cause := <-cancelled
				assert.ErrorIs(t, cause, kates.ErrLeadershipLost)
				assert.LessOrEqual(t, time.Since(start), 15*time.Second, "before anyone else can lead")
				<-time.After(time.Minute)
				r.runs()
				err := <-r.done
				assert.True(t, finished)
				assert.ErrorIs(t, err, kates.ErrLeadershipLost)
				assert.ErrorContains(t, err, "lease default/the-lease: ")
				assert.ErrorContains(t, err, "down")
				assert.Equal(t, name == "with one for good", errors.Is(err, errOops))
				lease.set(nil)
				assert.Equal(t, "a", holder(t, fake), "it is not released: it may be another's")
			})
		})
	}
}

func TestLosingTheLeaseToAnotherIsAnErrorAlsoBetweenCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &logged{}
		fake := katestest.New(t, katestest.WithClientOptions(kates.WithLogger(slog.New(slog.NewTextHandler(out, nil)))))
		c := newCalls()
		r := run(t, fake.Client, c.call, as("a"))
		<-time.After(time.Minute + time.Second)
		r.runs()
		steal(t, fake)
		err := <-r.done
		assert.ErrorIs(t, err, kates.ErrLeadershipLost)
		assert.ErrorContains(t, err, `"b" holds it`)
		assert.Len(t, c.seen(), 1)
		assert.Equal(t, 1, out.count("msg=leading "))
		assert.Equal(t, 1, out.count(`msg="leading no more"`))

		again := run(t, fake.Client, c.call, as("a")) // it follows
		<-time.After(10 * time.Second)
		again.runs()
		assert.Len(t, c.seen(), 1)
		assert.Equal(t, 1, out.count("msg=following "))
		again.stop()
	})
}

func TestTheLeaseIsRenewedUntilTheFunctionHasReturnedAndThenReleased(t *testing.T) {
	never := false
	for name, c := range map[string]struct {
		release *bool
		after   string
		end     error
	}{
		"cancelled":             {after: ""},
		"ended for good":        {end: kates.Permanent(errOops)},
		"kept by who asks that": {release: &never, after: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := katestest.New(t, katestest.WithClientOptions(silent))
				proceed := make(chan struct{})
				e := as("a")
				e.ReleaseOnCancel = c.release
				a := run(t, fake.Client, func(ctx context.Context, _ *maps) error {
					<-proceed
					return c.end
				}, e)
				a.runs()
				two := newCalls()
				b := run(t, another(t, fake), two.call, as("b"))
				if c.end == nil {
					a.cancel()
				}
				<-time.After(time.Hour)
				b.runs()
				assert.Empty(t, two.seen(), "the other's function still runs")
				require.Equal(t, "a", holder(t, fake))
				close(proceed)
				err := <-a.done
				if c.end == nil {
					assert.NoError(t, err)
				} else {
					assert.Same(t, errOops, err)
				}
				assert.Equal(t, c.after, holder(t, fake))
				<-time.After(30 * time.Second)
				b.runs()
				assert.Len(t, two.seen(), 1)
				b.stop()
			})
		})
	}
}

func TestAReplicaStandsForElectionWhenItsFirstSnapshotIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, pods := unreliable(t, silent)
		pods.set(podsOutages[0])
		n := 0
		r := run(t, fake.Client, func(context.Context, *podsAndServices) error { n++; return nil }, as("a"))
		<-time.After(time.Hour)
		r.runs()
		assert.Equal(t, "nobody", holder(t, fake), "another may be able to do it")
		pods.set(nil)
		<-time.After(2 * time.Minute)
		r.runs()
		assert.Equal(t, "a", holder(t, fake))
		assert.Equal(t, 1, n)
		r.stop()
	})
}

// TestANewLeaderDoesNotActOnAnOldSnapshot: it waits until the server has answered a list, or has
// refused it.
func TestANewLeaderDoesNotActOnAnOldSnapshot(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		waits bool
	}{"an outage": {podsOutages[0], true}, "unavailable": {podsOutages[2], true}, "forbidden": {podsOutages[1], false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := &logged{}
				fake, pods := unreliable(t, kates.WithLogger(slog.New(slog.NewTextHandler(out, nil))))
				lease := leaseFailures(fake)
				lease.set(errors.New("down"))
				n := make(chan int, 10)
				r := run(t, fake.Client, func(context.Context, *podsAndServices) error { n <- 1; return nil }, as("a"))
				<-time.After(time.Minute)
				r.runs()
				pods.set(c.err) // lists fail, the watch is open
				lease.set(nil)
				<-time.After(time.Minute)
				r.runs()
				assert.Equal(t, "a", holder(t, fake))
				assert.Equal(t, !c.waits, len(n) == 1)
				if c.waits {
					assert.Equal(t, 1, out.count("cannot learn what the former leader has done"), "once")
					pods.set(nil)
					<-time.After(2 * time.Minute)
					r.runs()
					assert.Len(t, n, 1)
				}
				r.stop()
			})
		})
	}
}

func TestALeaderWhoLosesBeforeItsFirstCallNeverCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, pods := unreliable(t, silent)
		lease := leaseFailures(fake)
		lease.set(errors.New("down"))
		r := run(t, fake.Client, func(context.Context, *podsAndServices) error { panic("called") }, as("a"))
		<-time.After(time.Minute)
		r.runs()
		pods.set(podsOutages[0])
		lease.set(nil)
		<-time.After(time.Minute)
		lease.set(errors.New("down"))
		assert.ErrorIs(t, <-r.done, kates.ErrLeadershipLost)
	})
}

func TestAFollowerEndsAsAnyRunDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent))
		a := run(t, fake.Client, newCalls().call, as("a"))
		a.runs()
		second := another(t, fake)
		b := run(t, second, newCalls().call, as("b"))
		b.runs()
		b.stop()
		assert.Equal(t, "a", holder(t, fake))
		b = run(t, second, newCalls().call, as("b"))
		b.runs()
		second.Close()
		assert.ErrorIs(t, <-b.done, kates.ErrClosed)
		a.runs()
		fake.Client.Close()
		assert.ErrorIs(t, <-a.done, kates.ErrClosed)
		assert.Equal(t, "", holder(t, fake), "a leader whose watch has ended lets others lead")
	})
}
