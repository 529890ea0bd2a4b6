package kates_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func shardNamed(identity string) kates.Sharding {
	return kates.Sharding{Name: "group", Identity: identity}
}

// keyed records the keys that a function was called for, since the last time.
type keyed struct {
	mu   sync.Mutex
	keys []string
}

func (k *keyed) add(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys = append(k.keys, key)
}

func (k *keyed) taken() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.Sorted(slices.Values(k.keys))
	k.keys = nil
	return all
}

// once returns them without the key that the one worker may have had in its turn when the key
// became the replica's: that key has two calls.
func (k *keyed) once(t *testing.T) []string {
	t.Helper()
	all := k.taken()
	once := slices.Compact(slices.Clone(all))
	assert.LessOrEqual(t, len(all), len(once)+1)
	return once
}

// shared runs a test with 40 keys and two clients of one fake.
func shared(t *testing.T, f func(t *testing.T, one, two *kates.Client, keys []string)) {
	tenants(t, func(t *testing.T, fake *katestest.Fake) {
		keys := []string{"a", "b"}
		for i := range 38 {
			keys = append(keys, fmt.Sprintf("key-%02d", i))
			putFor(t, fake, keys[len(keys)-1], fmt.Sprint("cm-", i), "1")
		}
		f(t, fake.Client, another(t, fake), keys)
	})
}

func TestTheKeysOfRunEachAreDividedAmongShards(t *testing.T) {
	shared(t, func(t *testing.T, one, two *kates.Client, keys []string) {
		var a, b keyed
		call := func(k *keyed) func(context.Context, string, *maps) error {
			return func(_ context.Context, key string, _ *maps) error {
				k.add(key)
				return nil
			}
		}
		first := runEach(t, one, call(&a), byTenant, shardNamed("a"))
		<-time.After(time.Minute)
		assert.Equal(t, keys, a.once(t), "alone it has all")
		second := runEach(t, two, call(&b), byTenant, shardNamed("b"))
		<-time.After(time.Minute)
		moved := b.once(t)
		assert.Greater(t, len(moved), 10)
		assert.Less(t, len(moved), 30)
		assert.Empty(t, a.once(t), "what stays is not called for again")
		second.stop()
		<-time.After(time.Second)
		assert.Equal(t, moved, a.once(t), "at once, and no others")
		first.stop()
	})
}

type rooted struct {
	Root *corev1.ConfigMap `kates:",root"`
}

func TestTheRootsOfAControllerAreDividedAmongShards(t *testing.T) {
	shared(t, func(t *testing.T, one, two *kates.Client, keys []string) {
		start := func(c *kates.Client, identity string, k *keyed) (stop func()) {
			r, err := controller.New(c, "test", func(_ context.Context, p *rooted) (controller.Result, error) {
				k.add(p.Root.Name)
				return controller.Done, nil
			}, shardNamed(identity))
			require.NoError(t, err)
			assert.False(t, r.NeedLeaderElection())
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- r.Run(ctx) }()
			return func() {
				cancel()
				require.NoError(t, <-done)
			}
		}
		var a, b keyed
		first := start(one, "a", &a)
		<-time.After(time.Minute)
		assert.Len(t, a.once(t), len(keys)+1)
		second := start(two, "b", &b)
		<-time.After(time.Minute)
		moved := b.once(t)
		assert.Greater(t, len(moved), 10)
		assert.Empty(t, a.once(t))
		second()
		<-time.After(time.Second)
		assert.Equal(t, moved, a.once(t))
		first()
	})
}

// TestAnErrorForAKeyThatIsAnothersNowIsForgotten: and the key has a turn when it comes back.
func TestAnErrorForAKeyThatIsAnothersNowIsForgotten(t *testing.T) {
	shared(t, func(t *testing.T, one, two *kates.Client, _ []string) {
		var a, b keyed
		first := runEach(t, one, func(_ context.Context, key string, _ *maps) error {
			a.add(key)
			return errors.New("oops")
		}, byTenant, shardNamed("a"), kates.WithBackoff(time.Second, time.Second))
		<-time.After(5 * time.Second)
		second := runEach(t, two, func(_ context.Context, key string, _ *maps) error {
			b.add(key)
			return nil
		}, byTenant, shardNamed("b"))
		<-time.After(time.Minute)
		a.taken()
		<-time.After(10 * time.Second)
		still := slices.Compact(a.taken())
		for _, key := range b.taken() {
			assert.NotContains(t, still, key)
		}
		second.stop()
		first.stop()
	})
}

func TestWhatShardingCannotDoIsAnErrorBeforeItBegins(t *testing.T) {
	fake := katestest.New(t)
	f := func(context.Context, string, *maps) error { return nil }
	for text, options := range map[string][]kates.RunOption{
		"a group of shards: it has no Name":    {kates.Sharding{}},
		`the Name of a group of shards, "a.b"`: {kates.Sharding{Name: "a.b"}},
		`the Namespace of a lease, "."`:        {kates.Sharding{Name: "a", Namespace: "."}},
		"not of several":                       {shardNamed("a"), shardNamed("b")},
		"both a leader and shards":             {shardNamed("a"), election},
		"LeaseDuration is 1.5s":                {kates.Sharding{Name: "a", LeaseDuration: 1500 * time.Millisecond}},
	} {
		assert.ErrorContains(t, kates.RunEach(t.Context(), fake.Client, f, append(options, byTenant)...), text)
	}
	err := kates.Run(t.Context(), fake.Client, func(context.Context, *maps) error { return nil }, shardNamed("a"))
	assert.ErrorContains(t, err, "Sharding is an option of RunEach")
	assert.Empty(t, fake.Dynamic.Actions(), "nothing was asked")
}

// TestG7AShardsDeltasLeadFromItsLastCallToThisOne, whatever changed while another replica had the
// key, or none.
func TestG7AShardsDeltasLeadFromItsLastCallToThisOne(t *testing.T) {
	shared(t, func(t *testing.T, one, two *kates.Client, keys []string) {
		type snapshot struct {
			ConfigMaps []*corev1.ConfigMap
			Deltas     []*kates.Delta
		}
		var mu sync.Mutex
		last, calls := map[string][]string{}, map[string]int{}
		check := func(_ context.Context, key string, s *snapshot) error {
			mu.Lock()
			defer mu.Unlock()
			calls[key]++
			for _, d := range s.Deltas {
				assert.Equal(t, kates.ObjectAdd, d.DeltaType)
				last[key] = append(last[key], d.Name)
			}
			var now []string
			for _, m := range s.ConfigMaps {
				now = append(now, m.Name)
			}
			assert.ElementsMatch(t, now, last[key], key)
			return nil
		}
		first := runEach(t, one, check, byTenant, shardNamed("a"))
		<-time.After(time.Minute)
		second := runEach(t, two, func(context.Context, string, *maps) error { return nil }, byTenant, shardNamed("b"))
		<-time.After(time.Minute)
		for i, key := range keys[2:] {
			require.NoError(t, two.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprint("more-", i), Labels: map[string]string{"tenant": key},
			}}, nil))
		}
		<-time.After(time.Minute)
		second.stop()
		<-time.After(time.Minute)
		first.stop()
		again := 0
		for _, key := range keys[2:] {
			assert.GreaterOrEqual(t, calls[key], 2, key)
			again += calls[key] - 2
		}
		assert.LessOrEqual(t, again, 2, "what a worker has at hand when it becomes the replica's is called for again: once in each of two moves")
	})
}

// TestAKeyStaysAShardsWhileItsCallRunsThoughTheWatchHasEnded: the client is closed, and the call
// takes longer than the lease.
func TestAKeyStaysAShardsWhileItsCallRunsThoughTheWatchHasEnded(t *testing.T) {
	shared(t, func(t *testing.T, one, two *kates.Client, keys []string) {
		var a, b keyed
		var mu sync.Mutex
		held := ""
		working, goOn := make(chan context.Context, 1), make(chan struct{})
		first := runEach(t, one, func(ctx context.Context, key string, _ *maps) error {
			a.add(key)
			mu.Lock()
			hold := key == held
			mu.Unlock()
			if hold {
				working <- context.WithoutCancel(ctx)
				<-goOn
			}
			return nil
		}, byTenant, shardNamed("a"), kates.WithWorkers(3))
		<-time.After(time.Minute)
		second := runEach(t, two, func(_ context.Context, key string, _ *maps) error {
			b.add(key)
			return nil
		}, byTenant, shardNamed("b"))
		<-time.After(time.Minute)
		others := b.taken()
		a.taken()
		i := slices.IndexFunc(keys, func(key string) bool { return key > "c" && !slices.Contains(others, key) })
		mu.Lock()
		held = keys[i]
		mu.Unlock()
		require.NoError(t, two.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "more", Labels: map[string]string{"tenant": keys[i]},
		}}, nil))
		ctx := <-working
		one.Close()
		<-time.After(time.Minute)
		assert.Empty(t, b.taken(), "no key of the other's before its work has ended")
		require.NoError(t, one.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "late"}}, nil))
		close(goOn)
		require.Error(t, <-first.done)
		<-time.After(time.Second)
		assert.Contains(t, b.taken(), keys[i], "at once")
		second.stop()
	})
}
