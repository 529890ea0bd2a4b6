package controller_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
)

// as returns the option to stand for one lease under a name.
func as(identity string) kates.LeaderElection {
	return kates.LeaderElection{Name: "the-lease", Identity: identity}
}

// holder returns the holder of the lease.
func (w *world) holder() string {
	w.Helper()
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	u, err := w.Dynamic.Resource(leases).Namespace("default").Get(context.Background(), "the-lease", metav1.GetOptions{})
	require.NoError(w, err)
	spec, _ := u.Object["spec"].(map[string]any)
	name, _ := spec["holderIdentity"].(string)
	return name
}

// replica returns the same world through another client.
func (w *world) replica() *world {
	w.Helper()
	c, err := kates.NewClientFromDynamic(w.Dynamic, w.Mapper, silent)
	require.NoError(w, err)
	w.Cleanup(c.Close)
	other := *w.Fake
	other.Client = c
	return &world{w.T, &other}
}

func TestOnlyTheLeaderReconcilesAndAFollowerTakesOverWithAllKeys(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		one, two := &calls{}, &calls{}
		a := run(w, one.reconcile, bySecret, as("a"))
		b := run(w.replica(), two.reconcile, bySecret, as("b"))
		assert.False(t, a.NeedLeaderElection(), "it has its own")
		<-after(time.Minute)
		w.root("a", "u1", "2")
		b.runs()
		assert.Equal(t, []string{"ns/a u1=1", "ns/a u1=2"}, one.taken())
		assert.Empty(t, two.taken())
		assert.NoError(t, b.Ready())
		a.stop()
		<-after(time.Minute)
		b.runs()
		assert.Equal(t, []string{"ns/a u1=2"}, two.taken())
		assert.Equal(t, "b", w.holder())
		b.stop()
		assert.Equal(t, "", w.holder())
	})
}

func TestTheLeaseIsHeldUntilTheLastReconcileHasReturned(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		one, two := newJournal(), newJournal()
		a := run(w, slow(one, 5*time.Minute), bySecret, as("a"), kates.WithShutdownTimeout(hour))
		b := run(w.replica(), slow(two, second), bySecret, as("b"))
		a.end()
		<-after(time.Minute)
		assert.Equal(t, "a", w.holder(), "renewed")
		assert.NoError(t, <-a.done)
		assert.Equal(t, []string{"begin ns/a 0s", "done ns/a 5m0s"}, one.taken())
		<-after(time.Minute)
		assert.Equal(t, "b", w.holder())
		b.stop()
	})
}

func TestWhoLosesTheLeaseHasItsReconcilesCancelledAtOnceAlsoWithinTheGracePeriod(t *testing.T) {
	for name, shutDown := range map[string]bool{"at work": false, "in the grace period": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.root("a", "u1", "1")
				down := w.outage("*", "leases", errors.New("down"))
				j := newJournal()
				r := run(w, slow(j, 24*hour), bySecret, as("a"), kates.WithShutdownTimeout(10*hour))
				j.taken()
				if shutDown {
					r.end()
				}
				<-after(hour)
				down.Store(true)
				err := <-r.done
				assert.Equal(t, shutDown, err == nil, "a shutdown is no loss: %v", err)
				if !shutDown {
					assert.ErrorIs(t, err, kates.ErrLeadershipLost)
				}
				cut := j.taken()
				require.Len(t, cut, 1)
				assert.Contains(t, cut[0], "cut ns/a: leadership lost: ")
				assert.Less(t, time.Since(j.start), hour+20*second)
			})
		})
	}
}
