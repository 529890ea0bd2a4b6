package controller

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/loops/keyed"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// half is a shard that has some of the keys.
type half struct {
	mu      sync.Mutex
	mine    map[string]bool
	left    int
	changed func()
	err     chan error
}

type ctxKey struct{}

func (g *half) Gains() uint64 { return 0 }

func (g *half) Enter(ctx context.Context, key string, _ uint64) (context.Context, func(), keyed.Whose) {
	g.mu.Lock()
	defer g.mu.Unlock()
	whose := keyed.Theirs
	if g.mine[key] {
		whose = keyed.Ours
	}
	return context.WithValue(ctx, ctxKey{}, "of "+key), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.left++
	}, whose
}

func (g *half) Run(ctx context.Context, keys keyed.Keys, _ func(error)) error {
	g.mu.Lock()
	g.changed = func() { keys.Trigger(keys.Keys()...) }
	g.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-g.err:
		return err
	}
}

type part struct {
	Root *corev1.ConfigMap `kates:",root"`
	Info Info
}

// halved runs a controller that has some of the keys, with roots a and b.
func halved(t *testing.T, f func(t *testing.T, g *half, c *kates.Client, run func() (seen func() []string, end func(), done <-chan error))) {
	synctest.Test(t, func(t *testing.T) {
		g := &half{mine: map[string]bool{"default/a": true}, err: make(chan error, 1)}
		client := katestest.New(t, katestest.WithClientOptions(kates.WithLogger(slog.New(slog.DiscardHandler)))).Client
		for _, name := range []string{"a", "b"} {
			require.NoError(t, client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, nil))
		}
		f(t, g, client, func() (func() []string, func(), <-chan error) {
			var mu sync.Mutex
			var seen []string
			c, err := New(client, "test", func(ctx context.Context, p *part) (Result, error) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, ctx.Value(ctxKey{}).(string)+" "+string(p.Info.Departure))
				return Done, nil
			})
			require.NoError(t, err)
			c.plan.Shards = g
			assert.False(t, c.NeedLeaderElection())
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- c.Run(ctx) }()
			synctest.Wait()
			return func() []string {
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				all := seen
				seen = nil
				return all
			}, cancel, done
		})
	})
}

func TestKeysOfOtherReplicasWaitUntilTheyAreThisOnes(t *testing.T) {
	halved(t, func(t *testing.T, g *half, c *kates.Client, run func() (func() []string, func(), <-chan error)) {
		seen, end, done := run()
		assert.Equal(t, []string{"of default/a "}, seen())
		g.mu.Lock()
		assert.Equal(t, 1, g.left)
		g.mine = map[string]bool{"default/b": true}
		g.mu.Unlock()
		assert.Empty(t, seen())
		g.changed()
		assert.Equal(t, []string{"of default/b "}, seen())
		for _, name := range []string{"a", "b"} {
			require.NoError(t, c.Delete(t.Context(), &corev1.ConfigMap{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			}, nil))
		}
		assert.Equal(t, []string{"of default/b deleted"}, seen(), "also who had it first time elsewhere is told")
		end()
		assert.NoError(t, <-done)
	})
}

func TestTheErrorOfShardsEndsTheController(t *testing.T) {
	halved(t, func(t *testing.T, g *half, _ *kates.Client, run func() (func() []string, func(), <-chan error)) {
		_, end, done := run()
		defer end()
		oops := errors.New("oops")
		g.err <- oops
		assert.ErrorIs(t, <-done, oops)
	})
}
