package kates_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

// TestATurnOfRunEachWhoseKeyIsLostEndsAndIsNoFailure, whatever its function returns then. The key
// belongs to another replica. When it comes back, it has a turn without a backoff.
func TestATurnOfRunEachWhoseKeyIsLostEndsAndIsNoFailure(t *testing.T) {
	write := func(ctx context.Context, c *kates.Client) error {
		return c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "late"}}, nil)
	}
	for name, answer := range map[string]func(context.Context, *kates.Client) error{
		"nothing":                     func(context.Context, *kates.Client) error { return nil },
		"the context's error":         func(ctx context.Context, _ *kates.Client) error { return ctx.Err() },
		"the same, as permanent":      func(ctx context.Context, _ *kates.Client) error { return kates.Permanent(ctx.Err()) },
		"its cause":                   func(ctx context.Context, _ *kates.Client) error { return context.Cause(ctx) },
		"the error of a write":        write,
		"what came of it, without it": func(context.Context, *kates.Client) error { return errOops },
	} {
		t.Run(name, func(t *testing.T) {
			shared(t, func(t *testing.T, one, two *kates.Client, keys []string) {
				var a, b keyed
				var waits atomic.Pointer[string]
				lost := make(chan error, 1)
				first := runEach(t, one, func(ctx context.Context, key string, _ *maps) error {
					a.add(key)
					if wanted := waits.Load(); wanted == nil || *wanted != key || !waits.CompareAndSwap(wanted, nil) {
						return nil
					}
					<-ctx.Done()
					lost <- context.Cause(ctx)
					assert.ErrorIs(t, write(ctx, one), kates.ErrKeyLost)
					return answer(ctx, one)
				}, byTenant, shardNamed("a"), kates.WithWorkers(2), kates.WithBackoff(time.Hour, time.Hour),
					kates.WithOnError(func(err error, attempt int) { t.Errorf("attempt %d has failed: %v", attempt, err) }))
				<-time.After(time.Minute)
				others := func() *running {
					return runEach(t, two, func(_ context.Context, key string, _ *maps) error {
						b.add(key)
						return nil
					}, byTenant, shardNamed("b"))
				}
				second := others()
				<-time.After(time.Minute)
				moving := b.taken()[0]
				second.stop()
				<-time.After(time.Minute)
				a.taken()

				waits.Store(&moving)
				i := slices.Index(keys[2:], moving)
				require.NoError(t, two.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Namespace: "default", Name: fmt.Sprint("more-", i), Labels: map[string]string{"tenant": moving},
				}}, nil))
				<-time.After(time.Second)
				assert.Equal(t, []string{moving}, a.taken(), "its function runs")
				second = others()
				<-time.After(time.Minute)
				assert.ErrorIs(t, <-lost, kates.ErrKeyLost)
				first.runs()
				assert.Contains(t, b.taken(), moving)
				assert.Empty(t, a.taken())
				second.stop()
				<-time.After(time.Second)
				assert.Contains(t, a.taken(), moving, "at once")
				first.stop()
			})
		})
	}
}
