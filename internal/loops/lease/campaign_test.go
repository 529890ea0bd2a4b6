package lease

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// spec returns the spec of the Lease on the server.
func (l *leases) spec(t *testing.T) coordinationv1.LeaseSpec {
	t.Helper()
	var lease coordinationv1.Lease
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(l.read(t).Object, &lease))
	return lease.Spec
}

// verbs returns the verbs of the requests since the last call.
func (l *leases) verbs() (all []string) {
	for _, a := range l.Actions() {
		all = append(all, a.GetVerb())
	}
	l.ClearActions()
	return all
}

// held writes a Lease that another candidate holds, renewed at a time by that candidate's clock.
func (l *leases) held(t *testing.T, renewed time.Time) {
	t.Helper()
	fields, err := record{holder: "other", seconds: 15, acquired: renewed, renewed: renewed, transitions: 3}.fields()
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	u.SetGroupVersionKind(Resource.GroupVersion().WithKind("Lease"))
	u.SetName("lease")
	_, err = l.Resource(Resource).Namespace("ns").Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestTheLeaseOfALeaderIsAsClientGoWritesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := newLeases(), time.Now()
		a := l.stand(t, "a")
		<-a.Elected()
		<-time.After(7 * time.Second)
		synctest.Wait()
		got := l.spec(t)
		assert.Equal(t, "a", *got.HolderIdentity)
		assert.Equal(t, int32(15), *got.LeaseDurationSeconds)
		assert.Equal(t, int32(0), *got.LeaseTransitions)
		assert.True(t, got.AcquireTime.Equal(&metav1.MicroTime{Time: start}), "%v", got.AcquireTime)
		assert.True(t, got.RenewTime.Equal(&metav1.MicroTime{Time: start.Add(6 * time.Second)}), "%v", got.RenewTime)
		assert.Equal(t, []string{"get", "create", "update", "update", "update", "update"}, l.verbs(), "at once, and every 2 s")
		a.Resign()
		assert.Equal(t, []string{"get", "update"}, l.verbs())
		got = l.spec(t)
		assert.Equal(t, "", *got.HolderIdentity)
		assert.Equal(t, int32(1), *got.LeaseDurationSeconds)
		assert.Equal(t, int32(0), *got.LeaseTransitions)
	})
}

func TestALeaseExpiresByWhenItWasSeenUnchangedAndNotByItsHoldersClock(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"an hour behind": -time.Hour, "an hour ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLeases()
				l.held(t, time.Now().Add(ahead))
				start, a := time.Now(), l.stand(t, "a")
				<-a.Elected()
				assert.GreaterOrEqual(t, time.Since(start), 15*time.Second)
				assert.Less(t, time.Since(start), 20*time.Second)
				assert.Equal(t, int32(4), *l.spec(t).LeaseTransitions)
				a.Resign()
			})
		})
	}
}

// TestALeaseExpiresAfterTheDurationOfItsHolder: that of a candidate may be another one.
// TestALeaseOfAForeignProgramIsLedWhateverItsNumbersAre: the server takes no number of terms below
// zero.
func TestALeaseOfAForeignProgramIsLedWhateverItsNumbersAre(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*record)
		want   int32
	}{
		"the last term":              {func(r *record) { r.transitions = math.MaxInt32 }, math.MaxInt32},
		"the one before":             {func(r *record) { r.transitions = math.MaxInt32 - 1 }, math.MaxInt32},
		"a negative term":            {func(r *record) { r.transitions = -7 }, 0},
		"the smallest term":          {func(r *record) { r.transitions = math.MinInt32 }, 0},
		"no duration":                {func(r *record) { r.seconds = 0 }, 4},
		"a negative duration":        {func(r *record) { r.seconds = math.MinInt32 }, 4},
		"renewed in the far future":  {func(r *record) { r.renewed = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }, 4},
		"never renewed nor acquired": {func(r *record) { r.renewed, r.acquired = time.Time{}, time.Time{} }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLeases()
				l.held(t, time.Now())
				l.copied(t, c.change)
				a := l.stand(t, "a")
				<-a.Elected()
				assert.Equal(t, c.want, *l.spec(t).LeaseTransitions)
				<-time.After(time.Minute)
				require.False(t, isClosed(a.Lost()), "and it goes on")
				a.Resign()
				b := l.stand(t, "b")
				<-b.Elected()
				assert.GreaterOrEqual(t, *l.spec(t).LeaseTransitions, c.want)
				b.Resign()
			})
		})
	}
}

func TestALeaseDurationThatALeaseCannotHaveIsAnError(t *testing.T) {
	s := Settings{Namespace: "ns", LeaseDuration: (math.MaxInt32 + 1) * time.Second}
	assert.ErrorContains(t, s.Complete(), "a Lease has 2147483647 seconds at most")
}

func TestALeaseExpiresAfterTheDurationOfItsHolder(t *testing.T) {
	for _, own := range []time.Duration{4 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			l := newLeases()
			l.held(t, time.Now())
			config := l.config("a")
			config.LeaseDuration, config.RenewDeadline, config.RetryPeriod = own, own/2, time.Second
			start := time.Now()
			a, err := Stand(t.Context(), config)
			require.NoError(t, err)
			<-a.Elected()
			assert.GreaterOrEqual(t, time.Since(start), 15*time.Second, "its own is %s", own)
			assert.Less(t, time.Since(start), 18*time.Second, "its own is %s", own)
			a.Resign()
		})
	}
}

func TestWhoComesBackUnderTheIdentityOfTheHolderLeadsAtOnceAndGoesOnWithItsTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		then := time.Now()
		l.held(t, then)
		<-time.After(time.Second)
		a := l.stand(t, "other")
		assert.True(t, isClosed(a.Elected()))
		got := l.spec(t)
		assert.True(t, got.AcquireTime.Equal(&metav1.MicroTime{Time: then}), "%v", got.AcquireTime)
		assert.Equal(t, int32(3), *got.LeaseTransitions)
		a.Resign()
	})
}

func TestALeaderWhoseUpdateConflictsReadsTheLeaseAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.stand(t, "a")
		<-a.Elected()
		<-time.After(3 * time.Second)
		l.give(t, "a") // a new version with the same holder
		l.verbs()
		<-time.After(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"update", "get", "update"}, l.verbs())
		assert.False(t, isClosed(a.Lost()))
		a.Resign()
	})
}

func TestACandidateTriesLaterThanTheRetryPeriodAndNotMuchLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.stand(t, "a")
		<-a.Elected()
		b := l.stand(t, "b")
		synctest.Wait()
		l.verbs()
		<-time.After(44 * time.Minute)
		gets := 0
		for _, verb := range l.verbs() {
			if verb == "get" {
				gets++
			}
		}
		assert.Greater(t, gets, 600, "every 4.4 s at least")
		assert.Less(t, gets, 1320, "every 2 s at most")
		b.Resign()
		a.Resign()
	})
}
