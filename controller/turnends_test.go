package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// ending is a turn that notes how it ends.
type ending struct {
	keyed.RootTurn
	ends []string
}

func (*ending) Name() string            { return "default/a" }
func (e *ending) Done(err error)        { e.ends = append(e.ends, fmt.Sprintf("done %v", err)) }
func (e *ending) Again(d time.Duration) { e.ends = append(e.ends, "again after "+d.String()) }
func (e *ending) Keep()                 { e.ends = append(e.ends, "keep") }
func (e *ending) Drop()                 { e.ends = append(e.ends, "drop") }
func (e *ending) Yield()                { e.ends = append(e.ends, "yield") }

// TestEachOutcomeOfAReconcileEndsItsTurnInOneWay: a turn that ends in a wrong way may come again at
// once, for ever.
func TestEachOutcomeOfAReconcileEndsItsTurnInOneWay(t *testing.T) {
	oops := errors.New("oops")
	failed := fmt.Errorf("default/a: %w", oops)
	for name, c := range map[string]struct {
		outcome            keyed.Outcome
		end                string
		attempt            int // of the failure that is shown; 0: none is
		reconciles, errors int64
	}{
		"success":           {keyed.Outcome{}, "done <nil>", 0, 1, 0},
		"a requeue":         {keyed.Outcome{Requeue: true, Again: time.Hour}, "keep", 0, 1, 0},
		"an error":          {keyed.Outcome{Err: failed, Attempt: 2, Again: time.Second}, "again after 1s", 2, 1, 1},
		"a permanent error": {keyed.Outcome{Err: failed, Attempt: 3, Final: true}, "done <nil>", 3, 1, 1},
		"cut short":         {keyed.Outcome{Cut: true, Attempt: 1}, "yield", 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := &corev1.ConfigMap{}
			k := &held{root: root}
			r := &run{control: &control{}, keys: map[string]*held{"default/a": k}}
			turn := &ending{}
			require.NoError(t, r.End(&keyed.Root{RootTurn: turn, Object: root}, c.outcome))
			assert.Equal(t, []string{c.end}, turn.ends)
			if c.attempt == 0 {
				assert.Nil(t, k.failure)
			} else {
				assert.Equal(t, &Failure{Key: "default/a", Attempt: c.attempt, Err: oops}, k.failure)
			}
			assert.Equal(t, c.reconciles, r.counts.reconciles.Load())
			assert.Equal(t, c.errors, r.counts.errors.Load())
		})
	}
}

// attempted runs a controller whose reconciles all fail for good, and returns which attempts they
// were. f changes what there is meanwhile.
func attempted(t *testing.T, s keyed.Shards, f func(client *kates.Client, root *corev1.ConfigMap)) (attempts []int) {
	t.Helper()
	client := katestest.New(t).Client
	root := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	require.NoError(t, client.Create(t.Context(), root, nil))
	var mu sync.Mutex
	c, err := New(client, "test", func(_ context.Context, p *part) (Result, error) {
		mu.Lock()
		defer mu.Unlock()
		attempts = append(attempts, p.Info.Attempt)
		return Done, kates.Permanent(errors.New("oops"))
	})
	require.NoError(t, err)
	c.plan.Shards = s
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	synctest.Wait()
	f(client, root)
	time.Sleep(time.Minute)
	synctest.Wait()
	cancel()
	require.NoError(t, <-done)
	return attempts
}

func TestTheFailuresOfARootThatHasDepartedAreNotThoseOfTheNextOneOfItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := attempted(t, nil, func(client *kates.Client, root *corev1.ConfigMap) {
			require.NoError(t, client.Delete(t.Context(), root, nil))
			time.Sleep(time.Minute)
			next := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
			require.NoError(t, client.Create(t.Context(), next, nil))
		})
		assert.Equal(t, []int{1, 2, 1}, attempts, "of the root, of its departure, of the next one")
	})
}

func TestAKeyThatAnotherReplicaHadMeanwhileComesBackWithoutItsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &single{taken: map[string]context.CancelFunc{}, owed: map[string]bool{}}
		attempts := attempted(t, s, func(*kates.Client, *corev1.ConfigMap) {
			for _, others := range []bool{true, false} {
				s.mu.Lock()
				s.others = others
				delete(s.owed, "default/a")
				s.keys.Trigger("default/a")
				s.mu.Unlock()
				synctest.Wait()
			}
		})
		assert.Equal(t, []int{1, 1}, attempts)
	})
}

// late is a shard for which the first turn is of before the key was its own.
type late struct {
	*single
	once sync.Once
}

func (l *late) Enter(ctx context.Context, key string, moment uint64) (inner context.Context, leave func(), whose keyed.Whose) {
	whose = keyed.Ours
	l.once.Do(func() { whose = keyed.Stale })
	if whose == keyed.Stale {
		return ctx, func() {}, whose
	}
	return l.single.Enter(ctx, key, moment)
}

func TestATurnFromBeforeAKeyWasThisReplicasIsMadeAnewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &late{single: &single{taken: map[string]context.CancelFunc{}, owed: map[string]bool{}}}
		assert.Equal(t, []int{1}, attempted(t, s, func(*kates.Client, *corev1.ConfigMap) {}))
	})
}

// ended is a shard whose membership ends when the test says so.
type ended struct {
	*single
	end chan error
}

func (e *ended) Run(context.Context, keyed.Keys, func(error)) error { return <-e.end }

func TestTheEndOfTheShardsCutsTheReconcilesUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := katestest.New(t).Client
		root := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		require.NoError(t, client.Create(t.Context(), root, nil))
		began, oops := time.Now(), errors.New("oops")
		c, err := New(client, "test", func(ctx context.Context, _ *part) (Result, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			return Done, nil
		})
		require.NoError(t, err)
		s := &ended{&single{taken: map[string]context.CancelFunc{}, owed: map[string]bool{}}, make(chan error, 1)}
		c.plan.Shards = s
		done := make(chan error, 1)
		go func() { done <- c.Run(t.Context()) }()
		synctest.Wait()
		s.end <- oops
		require.ErrorIs(t, <-done, oops)
		assert.Less(t, time.Since(began), time.Minute, "of the bubble")
	})
}
