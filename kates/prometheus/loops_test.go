package prometheus_test

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

// TestCallsOfALoopAreMeasured has a key that succeeds, one that fails, one that hangs, and one
// that waits for the only worker.
func TestCallsOfALoopAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, katestest.WithObjects(
			configMap("bad", "a"), configMap("good", "a"), configMap("hangs", "a"), configMap("late", "a")))
		ctx, cancel := context.WithCancel(t.Context())
		ended, release := make(chan error, 1), make(chan struct{})
		go func() {
			ended <- kates.RunEach(ctx, w.client, func(ctx context.Context, key string, _ *maps) error {
				switch key {
				case "bad":
					return errors.New("it fails")
				case "hangs", "late":
					select {
					case <-release:
					case <-ctx.Done():
					}
				}
				return nil
			}, kates.Query{Name: "ConfigMaps", Key: kates.ByNamespace, LabelSelector: "!kubernetes.io/none"},
				kates.WithWorkers(1), kates.WithBackoff(time.Second, time.Second))
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		const loop = "loop=prometheus_test.maps"
		assert.Equal(t, 1.0, w.value("kates_reconciles_total", loop, "result=success"))
		assert.Equal(t, 1.0, w.value("kates_reconciles_total", loop, "result=error"))
		assert.Equal(t, 1.0, w.value("kates_reconciles_running", loop))
		assert.Equal(t, 1.0, w.value("kates_reconcile_workers", loop))
		assert.InDelta(t, 60, w.value("kates_reconcile_longest_running_seconds", loop), 2)
		assert.Equal(t, 1.0, w.value("kates_reconcile_failing_keys", loop))
		assert.Equal(t, 1.0, w.value("kates_reconcile_failing_attempts", loop))
		assert.Equal(t, 4.0, w.value("kates_partitions"))
		assert.Equal(t, 1.0, w.value("kates_partitions", "state=running"))
		assert.Equal(t, 1.0, w.value("kates_partitions", "state=ready"))
		assert.Equal(t, 1.0, w.value("kates_partitions", "state=resting"), "until there is a worker")
		assert.InDelta(t, 60, w.value("kates_partition_queue_age_seconds"), 3)
		assert.Zero(t, w.value("kates_query_untaken_age_seconds"), "the changes are taken, though no call has seen them")

		close(release)
		time.Sleep(time.Minute)
		assert.Equal(t, 3.0, w.value("kates_reconciles_total", loop, "result=success"))
		assert.Greater(t, w.value("kates_reconcile_failing_attempts", loop), 5.0)
		assert.Equal(t, w.value("kates_reconciles_total", loop, "result=error")-1, w.value("kates_reconcile_retries_total", loop))
		calls := w.value("kates_reconciles_total", loop)
		assert.Equal(t, calls, w.value("kates_reconcile_duration_seconds", loop))
		assert.Equal(t, calls, w.value("kates_reconcile_queue_duration_seconds", loop))
		assert.Zero(t, w.value("kates_partition_queue_age_seconds"))
		assert.Zero(t, w.value("kates_reconciles_running", loop))
		cancel()
		require.NoError(t, <-ended)
		assert.Zero(t, w.value("kates_reconcile_workers", loop), "it has ended")
	})
}

func TestALeaderAndAShardAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, katestest.WithObjects(configMap("default", "a")))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() {
			ended <- kates.Run(ctx, w.client, func(context.Context, *maps) error { return nil },
				kates.LeaderElection{Namespace: "default", Name: "lease"})
		}()
		go func() {
			ended <- kates.RunEach(ctx, w.client, func(context.Context, string, *maps) error { return nil },
				kates.Query{Name: "ConfigMaps", Key: kates.ByNamespace}, kates.Sharding{Namespace: "default", Name: "group"})
		}()
		time.Sleep(time.Minute)
		for name, want := range map[string]float64{
			"kates_leader_elections": 1, "kates_leader_leading": 1, "kates_leader_errors": 0,
			"kates_shard_groups": 1, "kates_shard_memberships": 1, "kates_shard_members": 1, "kates_shard_errors": 0,
		} {
			assert.Equal(t, want, w.value(name), name)
		}
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
		assert.Zero(t, w.value("kates_leader_elections"))
		assert.Zero(t, w.value("kates_shard_groups"))
	})
}
