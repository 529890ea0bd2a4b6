package kates_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// refusals are the answers of a server that does not let a Lease be created.
var refusals = map[string]error{
	"the namespace is missing": apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "nosuch"),
	"it is forbidden":          apierrors.NewForbidden(leases.GroupResource(), "the-lease", errors.New("no right")),
}

// withoutLeases returns a fake that answers every creation of a Lease with an error, and its log.
func withoutLeases(t *testing.T, answer error) (fake *katestest.Fake, out *logged, heal func()) {
	t.Helper()
	out, refused := &logged{}, &unreachable{err: answer}
	fake = katestest.New(t, katestest.WithClientOptions(kates.WithInterval(0), kates.WithLogger(slog.New(slog.NewTextHandler(out, nil)))))
	react(fake, "create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		refused.mu.Lock()
		defer refused.mu.Unlock()
		return refused.err != nil, nil, refused.err
	})
	return fake, out, func() { refused.set(nil) }
}

// electedRuns are the loops that may have a leader. called is signalled by their functions.
func electedRuns(called chan<- struct{}, option kates.RunOption) map[string]func(context.Context, *kates.Client) error {
	said := func() {
		select {
		case called <- struct{}{}:
		default:
		}
	}
	return map[string]func(context.Context, *kates.Client) error{
		"Run": func(ctx context.Context, c *kates.Client) error {
			return kates.Run(ctx, c, func(context.Context, *maps) error { said(); return nil }, option)
		},
		"RunEach": func(ctx context.Context, c *kates.Client) error {
			return kates.RunEach(ctx, c, func(context.Context, string, *maps) error { said(); return nil },
				kates.Query{Name: "ConfigMaps", Key: kates.ByName}, option)
		},
		"a controller": func(ctx context.Context, c *kates.Client) error {
			r, err := controller.New(c, "test", func(context.Context, *rooted) (controller.Result, error) { said(); return controller.Done, nil }, option)
			if err != nil {
				return err
			}
			return r.Run(ctx)
		},
	}
}

func TestALeaseThatCannotBeHadIsSaidInTheLogTheStatusReadyAndTheError(t *testing.T) {
	for reason, answer := range refusals {
		for _, loop := range []string{"Run", "RunEach", "a controller"} {
			t.Run(loop+": "+reason, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					called := make(chan struct{}, 1)
					start := electedRuns(called, kates.LeaderElection{Namespace: "nosuch", Name: "the-lease"})[loop]
					fake, out, heal := withoutLeases(t, answer)
					put(t, fake, "x", "1")
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					done := make(chan error, 1)
					go func() { done <- start(ctx, fake.Client) }()
					<-time.After(time.Minute)
					status := fake.Client.Status()
					require.Len(t, status.Leaders, 1)
					assert.Equal(t, "nosuch/the-lease", status.Leaders[0].Lease)
					assert.False(t, status.Leaders[0].Leading || status.Leaders[0].Led)
					assert.Equal(t, "cannot write it: "+answer.Error(), status.Leaders[0].Error)
					assert.ErrorContains(t, status.Err(), "lease nosuch/the-lease: cannot write it: "+answer.Error())
					assert.Contains(t, status.String(), answer.Error())
					assert.ErrorContains(t, fake.Client.Ready(), "lease nosuch/the-lease: cannot write it: "+answer.Error())
					err := <-done
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					assert.ErrorIs(t, err, kates.ErrNeverLed)
					assert.ErrorIs(t, err, answer)
					assert.ErrorContains(t, err, "lease nosuch/the-lease: it never led: cannot write it: "+answer.Error())
					assert.Equal(t, 1, out.count("cannot write the lease"), &out.text)
					assert.Empty(t, fake.Client.Status().Leaders)
					assert.NoError(t, fake.Client.Ready(), "nothing runs")

					ctx, cancel = context.WithCancel(t.Context())
					go func() { done <- start(ctx, fake.Client) }()
					<-time.After(time.Minute)
					cancel()
					assert.NoError(t, <-done)
					assert.Equal(t, 1, out.count("ended without having held the lease"), &out.text)

					ctx, cancel = context.WithCancel(t.Context())
					go func() { done <- start(ctx, fake.Client) }()
					<-time.After(time.Minute)
					assert.Empty(t, called)
					heal() // somebody makes the namespace, or grants the right
					<-called
					assert.NoError(t, fake.Client.Ready())
					assert.NoError(t, fake.Client.Status().Err())
					assert.True(t, fake.Client.Status().Leaders[0].Leading)
					cancel()
					assert.NoError(t, <-done)
					assert.Equal(t, 1, out.count("ended without having held the lease"))
				})
			})
		}
	}
}

func TestAPlaceAmongShardsThatCannotBeHadIsSaidInTheLogTheStatusReadyAndTheError(t *testing.T) {
	for reason, answer := range refusals {
		for _, loop := range []string{"RunEach", "a controller"} {
			t.Run(loop+": "+reason, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					called := make(chan struct{}, 1)
					start := electedRuns(called, kates.Sharding{Namespace: "nosuch", Name: "group"})[loop]
					fake, out, heal := withoutLeases(t, answer)
					put(t, fake, "x", "1")
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					done := make(chan error, 1)
					go func() { done <- start(ctx, fake.Client) }()
					<-time.After(time.Minute)
					status := fake.Client.Status()
					require.Len(t, status.Shards, 1)
					assert.Equal(t, "nosuch/group", status.Shards[0].Group)
					assert.False(t, status.Shards[0].Member)
					assert.Equal(t, answer.Error(), status.Shards[0].Error)
					assert.ErrorContains(t, status.Err(), "shards nosuch/group: "+answer.Error())
					assert.Contains(t, status.String(), answer.Error())
					assert.ErrorContains(t, fake.Client.Ready(), "lease nosuch/group: "+answer.Error())
					err := <-done
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					assert.ErrorIs(t, err, answer)
					assert.ErrorContains(t, err, "it never was one of the shards: "+answer.Error())
					assert.Equal(t, 1, out.count("cannot keep a place among the shards"), &out.text)

					ctx, cancel = context.WithCancel(t.Context())
					go func() { done <- start(ctx, fake.Client) }()
					<-time.After(time.Minute)
					assert.Empty(t, called)
					heal()
					<-called
					assert.NoError(t, fake.Client.Ready())
					assert.NoError(t, fake.Client.Status().Err())
					assert.True(t, fake.Client.Status().Shards[0].Member)
					assert.Equal(t, 1, fake.Client.Status().Shards[0].Members)
					cancel()
					assert.NoError(t, <-done)
				})
			})
		}
	}
}

// TestAReplicaIsNotReadyBeforeItHasReachedItsLeaseAndStaysReadyAfterThat, also when a run begins
// anew while the server does not answer.
func TestAReplicaIsNotReadyBeforeItHasReachedItsLeaseAndStaysReadyAfterThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent))
		lease := leaseFailures(fake)
		lease.set(errors.New("down"))
		r := run(t, fake.Client, newCalls().call, election)
		<-time.After(time.Minute)
		r.runs()
		assert.ErrorContains(t, fake.Client.Ready(), "lease default/the-lease: cannot read it: down")
		lease.set(nil)
		<-time.After(time.Minute)
		assert.NoError(t, fake.Client.Ready())
		lease.set(errors.New("down"))
		assert.ErrorIs(t, <-r.done, kates.ErrLeadershipLost)
		r = run(t, fake.Client, newCalls().call, election)
		<-time.After(time.Minute)
		r.runs()
		assert.NoError(t, fake.Client.Ready(), "an outage takes no replica away")
		assert.ErrorContains(t, fake.Client.Status().Err(), "cannot read it: down")
		r.stop()
	})
}

// TestASecondRunForALeaseDoesNotTurnReadyBack: it begins in an outage, while the first one runs.
func TestASecondRunForALeaseDoesNotTurnReadyBack(t *testing.T) {
	group := kates.Sharding{Name: "group", LeaseDuration: time.Hour, RenewDeadline: 30 * time.Minute}
	for name, start := range map[string]func(*testing.T, *kates.Client) *running{
		"election": func(t *testing.T, c *kates.Client) *running {
			e := election
			e.LeaseDuration, e.RenewDeadline = time.Hour, 30*time.Minute
			return run(t, c, newCalls().call, e)
		},
		"shards": func(t *testing.T, c *kates.Client) *running {
			return runEach(t, c, func(context.Context, string, *maps) error { return nil }, byTenant, group)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := katestest.New(t, katestest.WithClientOptions(silent))
				lease := leaseFailures(fake)
				first := start(t, fake.Client)
				<-time.After(time.Minute)
				require.NoError(t, fake.Client.Ready())
				lease.set(errors.New("down"))
				second := start(t, fake.Client)
				<-time.After(time.Minute)
				first.runs()
				second.runs()
				assert.NoError(t, fake.Client.Ready())
				first.stop()
				assert.NoError(t, fake.Client.Ready())
				second.stop()
			})
		})
	}
}

// TestARunThatBeginsAnewInAnOutageIsReadyIfItsStreamsLinger: they have what they had.
func TestARunThatBeginsAnewInAnOutageIsReadyIfItsStreamsLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := katestest.New(t, katestest.WithClientOptions(silent, kates.Tuning{Linger: time.Minute}))
		lease := leaseFailures(fake)
		var down atomic.Bool
		react(fake, "list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, errors.New("down, too")
		})
		r := run(t, fake.Client, newCalls().call, election)
		<-time.After(time.Minute)
		require.NoError(t, fake.Client.Ready())
		lease.set(errors.New("down"))
		down.Store(true)
		assert.ErrorIs(t, <-r.done, kates.ErrLeadershipLost)
		r = run(t, fake.Client, newCalls().call, election)
		<-time.After(10 * time.Minute)
		assert.NoError(t, fake.Client.Ready())
		r.stop()
	})
}

func TestARunWhoseWatchCannotStartHasNeverLed(t *testing.T) {
	ways := electedRuns(nil, election)
	for loop, start := range ways {
		t.Run(loop, func(t *testing.T) {
			fake := katestest.New(t, katestest.WithClientOptions(silent))
			fake.Client.Close()
			err := start(t.Context(), fake.Client)
			assert.ErrorIs(t, err, kates.ErrClosed)
			assert.ErrorIs(t, err, kates.ErrNeverLed)
			assert.ErrorContains(t, err, "lease default/the-lease: it never led: it is asked for once the first snapshot is complete: ")
		})
	}
}
