package shards

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/internal/loops/fence"
	"github.com/kates-go/kates/internal/loops/lease"
)

func TestKeysAreDividedAndMoveWhenReplicasComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.join(t, "a")
		<-time.After(time.Second)
		assert.NotContains(t, owners(a), -1, "alone it has all")
		b, c := l.join(t, "b"), l.join(t, "c")
		<-time.After(time.Second)
		before := owners(a, b, c)
		assert.NotContains(t, before, -1)
		for n := range 3 {
			assert.Contains(t, before, n)
		}
		start := time.Now()
		b.Leave()
		<-time.After(time.Second)
		after := owners(a, b, c)
		assert.NotContains(t, after, -1, "at once: %s", time.Since(start))
		for i := range before {
			if before[i] != 1 {
				assert.Equal(t, before[i], after[i], "it stays where it was")
			}
		}
		a.Leave()
		c.Leave()
		list, err := l.Tracker().List(lease.Resource, lease.Resource.GroupVersion().WithKind("Lease"), "ns")
		require.NoError(t, err)
		assert.Empty(t, list.(*unstructured.UnstructuredList).Items, "nothing is left")
	})
}

func TestTheKeysOfAReplicaThatDiedMoveWhenItsLeaseHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a, b := l.join(t, "a"), l.join(t, "b")
		<-time.After(time.Second)
		b.cancel() // without telling the others
		b.tasks.Wait()
		start := time.Now()
		<-time.After(12 * time.Second)
		assert.Contains(t, owners(a), -1)
		<-time.After(6 * time.Second)
		assert.NotContains(t, owners(a), -1, "%s", time.Since(start))
		a.Leave()
	})
}

func TestAKeyMovesWhenWhatIsDoneForItHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.join(t, "a")
		<-time.After(time.Second)
		var moving string
		for i := range 100 {
			if key := fmt.Sprint("key-", i); owner("group", key, set{member("a"), member("b")}) == member("b") {
				moving = key
			}
		}
		require.True(t, a.Take(moving, a.Gains()))
		assert.False(t, a.Take(moving, a.Gains()), "it is taken")
		ctx, cancel := a.Context(t.Context(), moving)
		defer cancel()
		b := l.join(t, "b")
		<-time.After(10 * time.Second)
		assert.False(t, a.Mine(moving), "it takes no more turns")
		assert.False(t, b.Mine(moving), "nor does the other")
		require.NoError(t, ctx.Err(), "but it may go on")
		require.NoError(t, fence.Check(ctx))
		a.Give(moving)
		<-time.After(time.Second)
		assert.True(t, b.Mine(moving))
		a.Leave()
		b.Leave()
	})
}

func TestWhatIsDoneForALostKeyIsCancelledAfterALeaseDurationAndThenNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.join(t, "a")
		<-time.After(time.Second)
		var ends []context.Context
		for i := range 100 {
			key := fmt.Sprint("key-", i)
			require.True(t, a.Take(key, a.Gains()))
			ctx, cancel := a.Context(t.Context(), key)
			defer cancel()
			ends = append(ends, ctx)
		}
		b := l.join(t, "b")
		<-time.After(16 * time.Second)
		lost := 0
		for _, ctx := range ends {
			if ctx.Err() != nil {
				lost++
				require.ErrorIs(t, context.Cause(ctx), ErrLost)
				require.ErrorIs(t, fence.Check(context.WithoutCancel(ctx)), ErrLost)
			}
		}
		assert.Greater(t, lost, 20)
		assert.Less(t, lost, 80, "those that stay go on")
		assert.NotContains(t, owners(b), 0)
		<-time.After(16 * time.Second)
		assert.Contains(t, owners(b), 0, "it is waited for no longer")
		a.Leave()
		b.Leave()
	})
}

func TestAReplicaThatCannotRenewGivesUpBeforeOthersTakeOverAndJoinsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.join(t, "a")
		<-time.After(time.Second)
		require.True(t, a.Take("key", a.Gains()))
		ctx, cancel := a.Context(t.Context(), "key")
		defer cancel()
		start := time.Now()
		l.setDown(true)
		<-ctx.Done()
		assert.Less(t, time.Since(start), 15*time.Second)
		require.ErrorIs(t, context.Cause(ctx), ErrLost)
		assert.ErrorContains(t, context.Cause(ctx), "could not be renewed within 10s")
		require.ErrorIs(t, fence.Check(context.WithoutCancel(ctx)), ErrLost)
		assert.NotContains(t, owners(a), 0)
		a.Give("key")
		l.setDown(false)
		<-time.After(time.Minute)
		assert.NotContains(t, owners(a), -1)
		a.Leave()
		assert.Equal(t, 1, bytes.Count(l.out.Bytes(), []byte("cannot keep a place")), "%s", l.out.String())
	})
}

// TestWhoWasStoppedLongerThanItsLeaseWritesNothing, before any of its goroutines has run.
func TestWhoWasStoppedLongerThanItsLeaseWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.join(t, "a")
		<-time.After(time.Second)
		require.True(t, a.Take("key", a.Gains()))
		ctx, cancel := a.Context(t.Context(), "key")
		defer cancel()
		require.NoError(t, fence.Check(ctx))
		a.mu.Lock()
		a.core.own.sent = a.core.own.sent.Add(-15 * time.Second)
		a.mu.Unlock()
		require.ErrorIs(t, fence.Check(ctx), ErrLost)
		assert.False(t, a.Mine("key"))
		a.Leave()
	})
}

func TestWhoseLeaseWasDeletedHasLostAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.join(t, "a")
		<-time.After(time.Second)
		require.True(t, a.Take("key", a.Gains()))
		ctx, cancel := a.Context(t.Context(), "key")
		defer cancel()
		a.mu.Lock()
		uid := types.UID(a.core.own.uid)
		a.mu.Unlock()
		require.NoError(t, l.Resource(lease.Resource).Namespace("ns").Delete(t.Context(), leaseName("group", member("a")),
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}))
		<-time.After(time.Second)
		require.ErrorIs(t, context.Cause(ctx), ErrLost)
		a.Leave()
	})
}

func TestAWrongGroupIsAnErrorThatNamesIt(t *testing.T) {
	_, err := Join(t.Context(), Config{Group: "a.b"})
	require.ErrorContains(t, err, `the Name of a group of shards, "a.b"`)
	_, err = Join(t.Context(), Config{
		Group: "a", Settings: lease.Settings{Namespace: "ns", LeaseDuration: time.Millisecond},
	})
	require.ErrorContains(t, err, "LeaseDuration is 1ms")
}

// TestThatKeysAreUsableIsToldWhenTheWatchesHaveCaughtUpWithThem, not before, and each time.
func TestThatKeysAreUsableIsToldWhenTheWatchesHaveCaughtUpWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		var a *Replica
		var mu sync.Mutex
		mine := func() (n int) {
			for i := range 100 {
				if a.Mine(fmt.Sprint("key-", i)) {
					n++
				}
			}
			return n
		}
		told := 0 // the number of usable keys at the last call
		watch := &shown{l, make(chan struct{}, 1)}
		l.watchers = append(l.watchers, watch.changed)
		b := l.join(t, "b")
		<-time.After(time.Second)
		var err error
		mu.Lock()
		a, err = Join(t.Context(), Config{
			Settings: lease.Settings{
				Client: l, Namespace: "ns", Identity: "a", Logger: funcr.New(func(string, string) {}, funcr.Options{}),
			},
			Group: "group", Watch: watch,
			CatchUp: func(context.Context) error { <-time.After(time.Second); return nil },
			Moved: func() {
				mu.Lock()
				defer mu.Unlock()
				told = mine()
			},
		})
		mu.Unlock()
		require.NoError(t, err)
		for _, leave := range []func(){func() {}, b.Leave} {
			leave()
			<-time.After(900 * time.Millisecond)
			before := mine()
			<-time.After(10 * time.Second)
			mu.Lock()
			assert.Greater(t, told, before)
			assert.Equal(t, mine(), told)
			mu.Unlock()
		}
		assert.Equal(t, 100, told)
		a.Leave()
	})
}

// TestAShardWhoseNamespaceIsMissingSaysSoOnceAndJoinsWhenThereIsOne: a creation is answered with
// "not found" then.
func TestAShardWhoseNamespaceIsMissingSaysSoOnceAndJoinsWhenThereIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		var exists atomic.Bool
		l.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if verb := a.GetVerb(); exists.Load() || verb != "create" && verb != "update" {
				return false, nil, nil
			}
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns")
		})
		a := l.join(t, "a")
		said := func() string {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.out.String()
		}
		<-time.After(time.Hour)
		assert.Equal(t, 1, strings.Count(said(), "cannot keep a place"), said())
		assert.Equal(t, 1, strings.Count(said(), `namespaces \"ns\" not found`), said())
		assert.NotContains(t, owners(a), 0)
		exists.Store(true)
		<-time.After(time.Minute)
		assert.NotContains(t, owners(a), -1)
		assert.Equal(t, 1, strings.Count(said(), "can keep a place"), said())
		exists.Store(false)
		<-time.After(time.Hour)
		assert.NotContains(t, owners(a), 0)
		assert.Equal(t, 2, strings.Count(said(), "cannot keep a place"), said())
		exists.Store(true)
		<-time.After(time.Minute)
		assert.NotContains(t, owners(a), -1)
		a.Leave()
	})
}

// TestAReplicaThatWasLostJoinsAtOnceInItsProcess: it does not wait until its own former Lease has
// expired, neither when it joins again by itself, nor when the program begins anew.
func TestAReplicaThatWasLostJoinsAtOnceInItsProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		l.server = "https://server"
		a := l.join(t, "")
		b := l.join(t, "")
		assert.NotEqual(t, a.Status().Identity, b.Status().Identity, "at the same time")
		b.Leave()
		<-time.After(time.Second)
		require.True(t, a.Take("key", a.Gains()))
		ctx, cancel := a.Context(context.Background(), "key")
		defer cancel()
		freeze := func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.core.own.sent = a.core.own.sent.Add(-15 * time.Second)
		}
		freeze()
		<-time.After(4 * time.Second)
		assert.False(t, a.Status().Holds, "work is left")
		a.Give("key")
		<-time.After(3 * time.Second)
		assert.True(t, a.Status().Holds)
		assert.NotContains(t, owners(a), -1)
		require.ErrorIs(t, fence.Check(ctx), ErrLost, "the identity is no fence")

		freeze()
		l.setDown(true)
		<-time.After(4 * time.Second)
		a.Leave()
		l.setDown(false)
		again := l.join(t, "")
		assert.Equal(t, a.Status().Identity, again.Status().Identity)
		<-time.After(5 * time.Second)
		assert.True(t, again.Status().Holds)
		assert.NotContains(t, owners(again), -1)
		assert.NotContains(t, owners(a), 0)
		again.Leave()
	})
}
