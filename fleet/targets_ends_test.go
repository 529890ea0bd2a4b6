package fleet

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/kates"
)

func TestWhatNoOwnerNeedsIsStoppedAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k, targets := newTargets(t, TargetOptions{Grace: time.Minute}, targetMap("x", "one"))
		r := ensure(t, targets, "o", cmTarget("x", "one"))
		other := ensure(t, targets, "p", cmTarget("x", "one"))
		targets.Drop("o")
		_, err := r.Get()
		assert.ErrorIs(t, err, ErrTargetDropped)
		_, err = r.List()
		assert.ErrorIs(t, err, ErrTargetDropped, "and no empty list")
		assert.ErrorIs(t, r.Err(), ErrTargetDropped)
		_, err = other.Get()
		assert.NoError(t, err, "another owner needs it")
		targets.Drop("p")
		time.Sleep(59 * time.Second)
		assert.Equal(t, 1, watchOf(t, targets).Idle)
		ensure(t, targets, "o", cmTarget("x", "one"))
		_, err = r.Get()
		assert.NoError(t, err, "it was dropped, and is wanted again")
		time.Sleep(10 * time.Minute)
		_, err = r.Get()
		assert.NoError(t, err)
		targets.Drop("o")
		time.Sleep(61 * time.Second)
		synctest.Wait()
		assert.Empty(t, targets.Status().Watches)
		assert.Empty(t, k.Client.Status().Queries)
		ensure(t, targets, "o", cmTarget("x", "one"))
		_, err = r.Get()
		assert.NoError(t, err, "also when the watch is another one")
	})
}

// Owners want, read and drop targets at the very moments when their watch is stopped. Who has
// ensured a target can read it until it drops it.
func TestNoReaderHoldsAWatchThatWasStopped(t *testing.T) {
	k := newCluster(t, "1", targetMap("x", "one"))
	f := newFleet(t, Options{})
	require.NoError(t, f.Set(Member{Name: "a", Client: k.Client}))
	eventually(t, f, "the cluster is there", func() bool { return f.Cluster("a") != nil })
	targets := f.Targets(TargetOptions{Grace: -1})                 // stopped at once
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a dead watch would be waited for
	defer cancel()
	ensure(t, targets, "first", cmTarget("x", "one"))
	targets.mu.Lock()
	w := targets.watches[watchKey{"a", "configmaps"}]
	targets.mu.Unlock()
	require.False(t, targets.retire(w), "it was about to be stopped, and is wanted again")
	targets.Drop("first")
	var running sync.WaitGroup
	for i := range 2 {
		running.Go(func() {
			owner := fmt.Sprint("o", i)
			for range 2000 {
				r, err := targets.Want(owner, cmTarget("x", "one"))
				if !assert.NoError(t, err) {
					return
				}
				for {
					_, err := targets.Ensure(ctx, owner, cmTarget("x", "one"))
					if err == nil {
						break
					}
					if !assert.ErrorIs(t, err, ErrNotKnown) || !assert.NoError(t, ctx.Err()) {
						return
					}
				}
				for range 3 {
					if o, err := r.Get(); !assert.NoError(t, err, "it was ensured, and nobody has dropped it") || !assert.Equal(t, "one", o.GetName()) {
						return
					}
				}
				targets.Drop(owner)
				_, err = r.Get()
				if !assert.ErrorIs(t, err, ErrTargetDropped) {
					return
				}
			}
		})
	}
	running.Wait()
	synced := func() bool { return len(targets.Status().Watches) == 0 && len(k.Client.Status().Queries) == 0 }
	assert.Eventually(t, synced, time.Minute, time.Millisecond, "nothing is left")
}

// A watch that is given up, and is wanted again before its goroutine has ended it.
func TestATargetIsNotKnownByAWatchThatIsGivenUp(t *testing.T) {
	w := newTargetWatch(&Targets{}, watchKey{"a", "configmaps"})
	w.scope = scope{known: true, namespaced: true}
	of, err := check(cmTarget("x", "one"))
	require.NoError(t, err)
	w.add("o", of)
	p, ok := w.schedule.Next()
	require.True(t, ok)
	w.schedule.Start(p)
	w.schedule.Shown()
	shown := &following{}
	w.following = shown
	_, _, err = w.read(of.target)
	require.NoError(t, err)
	_, idle := w.idle()
	require.False(t, idle, "somebody needs it")

	w.drop("o", of.target)
	w.expire()
	former, idle := w.idle()
	require.True(t, idle)
	assert.Same(t, shown, former, "it is to be closed")
	of, err = check(of.target)
	require.NoError(t, err)
	w.add("o", of)
	_, news, err := w.read(of.target)
	assert.ErrorIs(t, err, ErrNotKnown)
	assert.NotNil(t, news)
}

func TestEnsureEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k, targets := newTargets(t, TargetOptions{})
		hung := hang(k)
		defer close(hung)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := targets.Ensure(ctx, "o", Target{Cluster: "a", Kind: "secrets"})
		assert.ErrorIs(t, err, ErrNotKnown)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = r.List()
		assert.ErrorIs(t, err, ErrNotKnown)
	})
}

func TestWhatTheTargetsHaveEndsWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, k, targets := newTargets(t, TargetOptions{}, targetMap("x", "one"))
		again := f.Targets(TargetOptions{})
		r, o := ensure(t, targets, "o", cmTarget("x", "one")), ensure(t, again, "o", cmTarget("x", "one"))
		targets.Close()
		_, err := r.Get()
		assert.ErrorIs(t, err, kates.ErrClosed)
		_, err = targets.Want("o", cmTarget("x", "two"))
		assert.ErrorIs(t, err, kates.ErrClosed)
		_, err = o.Get()
		assert.NoError(t, err, "those of others go on")
		f.Close()
		assert.Empty(t, k.Client.Status().Queries)
		_, err = o.Get()
		assert.ErrorIs(t, err, kates.ErrClosed)
		_, err = f.Targets(TargetOptions{}).Keep("o", cmTarget("x", "two"))
		assert.ErrorIs(t, err, kates.ErrClosed)
		targets.Close()
	})
}
