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

// longLeader is a replica that leads with a lease that is longer than a test has patience.
type longLeader struct {
	*replica
	admin    kubernetes.Interface
	states   chan kates.LeaderStatus // what OnChange is told
	contexts chan context.Context    // of each call; they do not end
}

func newLongLeader(t *testing.T) *longLeader {
	t.Helper()
	admin, err := kubernetes.NewForConfig(serverOf(t))
	require.NoError(t, err)
	return &longLeader{
		replica: newReplica(t, namespace(t)), admin: admin,
		states: make(chan kates.LeaderStatus, 100), contexts: make(chan context.Context, 1),
	}
}

// lead runs a function that ends with its context.
func (l *longLeader) lead() {
	l.t.Helper()
	f := func(ctx context.Context, _ *inputs) error {
		l.contexts <- context.WithoutCancel(ctx)
		<-ctx.Done()
		return nil
	}
	l.run(f, kates.LeaderElection{
		Namespace: l.ns, Name: leaseName, OnChange: func(s kates.LeaderStatus) { l.states <- s },
		LeaseDuration: 4 * patience, RenewDeadline: 5 * time.Second, RetryPeriod: 200 * time.Millisecond,
	})
}

// TestWhoLosesTouchAndComesBackDoesNotWaitOutItsOwnLease: the lease is longer than the test has
// patience, so a new identity would not lead.
func TestWhoLosesTouchAndComesBackDoesNotWaitOutItsOwnLease(t *testing.T) {
	t.Parallel()
	r := newLongLeader(t)
	spec := func() coordinationv1.LeaseSpec {
		l, err := r.admin.CoordinationV1().Leases(r.ns).Get(t.Context(), leaseName, metav1.GetOptions{})
		require.NoError(t, err)
		return l.Spec
	}
	r.lead()
	former := receive(t, r.contexts)
	first := receive(t, r.states)
	assert.True(t, first.Leading)
	require.NoError(t, r.client.Create(former, object(configMaps, r.ns, "a", nil), nil))
	heal := r.network.Blackhole()
	err := r.ended()
	require.ErrorIs(t, err, kates.ErrLeadershipLost)
	r.lead()
	heal()
	latter := receive(t, r.contexts)
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
	r := newLongLeader(t)
	r.lead()
	former := receive(t, r.contexts)
	require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		l, err := r.admin.CoordinationV1().Leases(r.ns).Get(t.Context(), leaseName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		l.Spec.RenewTime = &metav1.MicroTime{Time: l.Spec.RenewTime.Add(time.Second)}
		_, err = r.admin.CoordinationV1().Leases(r.ns).Update(t.Context(), l, metav1.UpdateOptions{})
		return err
	}))
	err := r.ended()
	require.ErrorIs(t, err, kates.ErrLeadershipLost)
	require.ErrorContains(t, err, "another process with the same identity")
	require.ErrorIs(t, r.client.Create(former, object(configMaps, r.ns, "a", nil), nil), kates.ErrLeadershipLost)
	for len(r.states) > 0 {
		<-r.states
	}
	r.lead()
	s := receive(t, r.states)
	assert.False(t, s.Leading)
	assert.Equal(t, s.Identity, s.Holder)
	assert.NoError(t, r.client.Ready())
	r.stop()
}

// TestAShardWhoseLeaseACopyOfItsProcessRenewsLosesItsKeysAndWaits: the copy has the same Lease.
func TestAShardWhoseLeaseACopyOfItsProcessRenewsLosesItsKeysAndWaits(t *testing.T) {
	t.Parallel()
	r := newReplica(t, namespace(t))
	admin, err := kubernetes.NewForConfig(serverOf(t))
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
	poll(t, func() bool {
		shards := r.client.Status().Shards
		return len(shards) == 1 && !shards[0].Member && shards[0].Error != ""
	}, "it is no member, and says why", func() any { return r.client.Status().Shards })
	copied()
	assert.ErrorContains(t, r.client.Status().Err(), "that of a copy of its process")
	assert.Empty(t, calls)
	r.stop()
}
