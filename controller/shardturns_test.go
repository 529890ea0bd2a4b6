package controller

import (
	"context"
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

// single is a shard that has all keys, each for one worker at a time, until the test says that
// another replica has them.
type single struct {
	slow time.Duration // how long leaving takes

	mu     sync.Mutex
	taken  map[string]context.CancelFunc
	others bool
	owed   map[string]bool
	keys   keyed.Keys
}

func (s *single) Gains() uint64 { return 0 }

func (s *single) Enter(ctx context.Context, key string, _ uint64) (context.Context, func(), keyed.Whose) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.others || s.taken[key] != nil {
		s.owed[key] = true
		return ctx, func() {}, keyed.Theirs
	}
	ctx, cancel := context.WithCancel(ctx)
	s.taken[key] = cancel
	return ctx, func() {
		time.Sleep(s.slow)
		s.mu.Lock()
		defer s.mu.Unlock()
		cancel()
		delete(s.taken, key)
		if s.owed[key] {
			delete(s.owed, key)
			s.keys.Trigger(key)
		}
	}, keyed.Ours
}

func (s *single) Run(ctx context.Context, keys keyed.Keys, _ func(error)) error {
	s.mu.Lock()
	s.keys = keys
	s.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

// lose cancels the running calls. The argument says whether another replica has the keys then.
func (s *single) lose(others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others = others
	for _, cancel := range s.taken {
		cancel()
	}
}

// departing runs a controller of one root, with two workers, on s. Then f removes the root, and
// it compares the calls with those wanted.
func departing(t *testing.T, s *single, reconcile func(ctx context.Context, call int) error, f func(remove func()), want ...string) {
	synctest.Test(t, func(t *testing.T) {
		s.taken, s.owed = map[string]context.CancelFunc{}, map[string]bool{}
		client := katestest.New(t).Client
		root := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		require.NoError(t, client.Create(t.Context(), root, nil))
		var mu sync.Mutex
		var calls []string
		c, err := New(client, "test", func(ctx context.Context, p *part) (Result, error) {
			mu.Lock()
			calls = append(calls, p.Root.Name+" "+string(p.Info.Departure))
			n := len(calls)
			mu.Unlock()
			return Done, reconcile(ctx, n)
		}, kates.WithWorkers(2))
		require.NoError(t, err)
		c.plan.Shards = s
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		f(func() {
			require.NoError(t, client.Delete(t.Context(), root, nil))
			synctest.Wait()
		})
		time.Sleep(time.Minute)
		mu.Lock()
		assert.Equal(t, want, calls)
		mu.Unlock()
		assert.Empty(t, c.Keys(), "nothing is kept of a root that is gone")
		cancel()
		assert.NoError(t, <-done)
	})
}

func TestAShardTellsOfADepartureThatComesWhileAnotherWorkerEndsTheKeysTurn(t *testing.T) {
	departing(t, &single{slow: time.Millisecond}, func(_ context.Context, call int) error {
		if call == 1 {
			time.Sleep(time.Second)
		}
		return nil
	}, func(remove func()) { remove() }, "a ", "a deleted")
}

func TestADepartureThatIsCutShortIsToldAgainByWhoHasTheKeyStill(t *testing.T) {
	cut := func(ctx context.Context, call int) error {
		if call == 2 {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	s := &single{}
	departing(t, s, cut, func(remove func()) {
		remove()
		s.lose(false)
	}, "a ", "a deleted", "a deleted")
	s = &single{}
	departing(t, s, cut, func(remove func()) {
		remove()
		s.lose(true)
	}, "a ", "a deleted")
}

func TestG7TheDeltasOfTurnsThatAreAnothersAreToldByTheKeysNextOne(t *testing.T) {
	type changing struct {
		Root   *corev1.ConfigMap `kates:",root"`
		Deltas []*kates.Delta
	}
	synctest.Test(t, func(t *testing.T) {
		s := &single{taken: map[string]context.CancelFunc{}, owed: map[string]bool{}, others: true}
		client := katestest.New(t).Client
		root := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		require.NoError(t, client.Create(t.Context(), root, nil))
		var calls [][]*kates.Delta
		c, err := New(client, "test", func(_ context.Context, p *changing) (Result, error) {
			calls = append(calls, p.Deltas)
			return Done, nil
		})
		require.NoError(t, err)
		c.plan.Shards = s
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		s.mu.Lock()
		s.others = false
		delete(s.owed, "default/a")
		s.keys.Trigger("default/a")
		s.mu.Unlock()
		synctest.Wait()
		require.Len(t, calls, 1)
		require.Len(t, calls[0], 1)
		assert.Equal(t, kates.ObjectAdd, calls[0][0].DeltaType)
		cancel()
		assert.NoError(t, <-done)
	})
}
