package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/kates-go/kates/kates"
)

// TestWhoLosesTouchAndComesBackDoesNotWaitOutItsOwnLease: the lease is longer than the test has
// patience, so a new identity would not lead.
func TestWhoLosesTouchAndComesBackDoesNotWaitOutItsOwnLease(t *testing.T) {
	t.Parallel()
	r := newReplica(t, namespace(t))
	admin, err := kubernetes.NewForConfig(testCluster.Config)
	require.NoError(t, err)
	spec := func() coordinationv1.LeaseSpec {
		l, err := admin.CoordinationV1().Leases(r.ns).Get(t.Context(), leaseName, metav1.GetOptions{})
		require.NoError(t, err)
		return l.Spec
	}
	states := make(chan kates.LeaderStatus, 100)
	election := kates.LeaderElection{
		Namespace: r.ns, Name: leaseName, OnChange: func(s kates.LeaderStatus) { states <- s },
		LeaseDuration: 4 * patience, RenewDeadline: 5 * time.Second, RetryPeriod: 200 * time.Millisecond,
	}
	contexts := make(chan context.Context, 1)
	f := func(ctx context.Context, _ *inputs) error {
		contexts <- context.WithoutCancel(ctx)
		<-ctx.Done()
		return nil
	}
	r.run(f, election)
	former := receive(t, contexts)
	first := receive(t, states)
	assert.True(t, first.Leading)
	require.NoError(t, r.client.Create(former, object(configMaps, r.ns, "a", nil), nil))
	heal := r.network.Blackhole()
	err = r.ended()
	require.ErrorIs(t, err, kates.ErrLeadershipLost)
	r.run(f, election)
	heal()
	latter := receive(t, contexts)
	assert.Equal(t, first.Identity, *spec().HolderIdentity)
	assert.Equal(t, int32(1), *spec().LeaseTransitions, "a term of its own")
	require.ErrorIs(t, r.client.Create(former, object(configMaps, r.ns, "b", nil), nil), kates.ErrLeadershipLost)
	require.NoError(t, r.client.Create(latter, object(configMaps, r.ns, "c", nil), nil))
	assert.True(t, r.client.Status().Leaders[0].Leading)
	r.stop()
}

// TestALeaderWhoseLeaseACopyOfItsProcessRenewsHasLostAndFollows: the copy has the same identity.
func TestALeaderWhoseLeaseACopyOfItsProcessRenewsHasLostAndFollows(t *testing.T) {
	t.Parallel()
	r := newReplica(t, namespace(t))
	admin, err := kubernetes.NewForConfig(testCluster.Config)
	require.NoError(t, err)
	states := make(chan kates.LeaderStatus, 100)
	election := kates.LeaderElection{
		Namespace: r.ns, Name: leaseName, OnChange: func(s kates.LeaderStatus) { states <- s },
		LeaseDuration: 4 * patience, RenewDeadline: 5 * time.Second, RetryPeriod: 200 * time.Millisecond,
	}
	contexts := make(chan context.Context, 1)
	f := func(ctx context.Context, _ *inputs) error {
		contexts <- context.WithoutCancel(ctx)
		<-ctx.Done()
		return nil
	}
	r.run(f, election)
	former := receive(t, contexts)
	require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		l, err := admin.CoordinationV1().Leases(r.ns).Get(t.Context(), leaseName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		l.Spec.RenewTime = &metav1.MicroTime{Time: l.Spec.RenewTime.Add(time.Second)}
		_, err = admin.CoordinationV1().Leases(r.ns).Update(t.Context(), l, metav1.UpdateOptions{})
		return err
	}))
	err = r.ended()
	require.ErrorIs(t, err, kates.ErrLeadershipLost)
	require.ErrorContains(t, err, "another process with the same identity")
	require.ErrorIs(t, r.client.Create(former, object(configMaps, r.ns, "a", nil), nil), kates.ErrLeadershipLost)
	for len(states) > 0 {
		<-states
	}
	r.run(f, election)
	s := receive(t, states)
	assert.False(t, s.Leading)
	assert.Equal(t, s.Identity, s.Holder)
	assert.NoError(t, r.client.Ready())
	r.stop()
}

// TestAShardWhoseLeaseACopyOfItsProcessRenewsLosesItsKeysAndWaits: the copy has the same Lease.
func TestAShardWhoseLeaseACopyOfItsProcessRenewsLosesItsKeysAndWaits(t *testing.T) {
	t.Parallel()
	r := newReplica(t, namespace(t))
	admin, err := kubernetes.NewForConfig(testCluster.Config)
	require.NoError(t, err)
	require.NoError(t, r.client.Create(t.Context(), object(configMaps, r.ns, "key", nil), nil))
	calls := make(chan context.Context, 10)
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel, r.done = cancel, make(chan error, 1)
	group := kates.Sharding{Namespace: r.ns, Name: "group", LeaseDuration: 4 * patience, RenewDeadline: 5 * time.Second, RetryPeriod: 200 * time.Millisecond}
	go func() {
		r.done <- kates.RunEach(ctx, r.client, func(ctx context.Context, _ string, _ *inputs) error {
			calls <- ctx
			<-ctx.Done()
			return ctx.Err()
		}, kates.Query{Name: "ConfigMaps", Namespace: r.ns, Key: kates.ByName}, group)
	}()
	call := receive(t, calls)
	copied := func() {
		require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			all, err := admin.CoordinationV1().Leases(r.ns).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			require.Len(t, all.Items, 1)
			l := &all.Items[0]
			l.Spec.RenewTime = &metav1.MicroTime{Time: l.Spec.RenewTime.Add(time.Second)}
			_, err = admin.CoordinationV1().Leases(r.ns).Update(t.Context(), l, metav1.UpdateOptions{})
			return err
		}))
	}
	copied()
	select {
	case <-call.Done():
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	assert.ErrorIs(t, context.Cause(call), kates.ErrKeyLost)
	assert.ErrorContains(t, context.Cause(call), "another process with the same identity has renewed its lease")
	poll(t, patience, func() bool {
		shards := r.client.Status().Shards
		return len(shards) == 1 && !shards[0].Member && shards[0].Error != ""
	})
	copied()
	assert.ErrorContains(t, r.client.Status().Err(), "that of a copy of its process")
	assert.Empty(t, calls)
	r.stop()
}
