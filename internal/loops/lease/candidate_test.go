package lease

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOneCandidateLeadsAndAnotherWhenItResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.stand(t, "a")
		require.True(t, isClosed(a.Elected()))
		b := l.stand(t, "b")
		<-time.After(time.Hour)
		assert.False(t, isClosed(b.Elected()))
		assert.Equal(t, "a", l.holder(t))
		a.Resign()
		assert.Equal(t, "", l.holder(t))
		assert.False(t, isClosed(a.Lost()), "it gave it up")
		start := time.Now()
		<-b.Elected()
		assert.Less(t, time.Since(start), 5*time.Second, "at its next try")
		assert.Equal(t, "b", l.holder(t))
		transitions, _, _ := unstructured.NestedInt64(l.read(t).Object, "spec", "leaseTransitions")
		assert.Equal(t, int64(1), transitions)
		b.Resign()
		b.Resign()
	})
}

func TestALeaseThatIsNotReleasedIsWonWhenItHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		config := l.config("a")
		config.Release = false
		a, err := Stand(t.Context(), config)
		require.NoError(t, err)
		<-a.Elected()
		a.Resign()
		assert.Equal(t, "a", l.holder(t))
		b, start := l.stand(t, "b"), time.Now()
		<-b.Elected()
		assert.GreaterOrEqual(t, time.Since(start), 15*time.Second)
		assert.Less(t, time.Since(start), 20*time.Second)
		b.Resign()
	})
}

func TestALeaderWhoCannotRenewHasLostBeforeAnyoneElseCanHaveTheLease(t *testing.T) {
	for name, fail := range map[string]func(*leases){
		"errors": func(l *leases) { l.err = errors.New("down") },
		"refused": func(l *leases) {
			l.writeErr = apierrors.NewForbidden(Resource.GroupResource(), "lease", errors.New("no"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLeases()
				a := l.stand(t, "a")
				<-a.Elected()
				<-time.After(time.Minute + time.Second)
				synctest.Wait()
				l.set(func() { fail(l) })
				start := time.Now()
				<-a.Lost()
				assert.Less(t, time.Since(start), 15*time.Second)
				assert.Greater(t, time.Since(start), 7*time.Second)
				assert.ErrorContains(t, a.Err(), "lease ns/lease: ")
				l.set(func() { l.err, l.writeErr = nil, nil })
				<-time.After(time.Minute)
				assert.Equal(t, "a", l.holder(t), "nothing is released that was lost")
				a.Resign()
				assert.Equal(t, "a", l.holder(t))
				assert.Equal(t, 1, bytes.Count(l.out.Bytes(), []byte("cannot write")), "%s", l.out.String())
				assert.LessOrEqual(t, bytes.Count(l.out.Bytes(), []byte("cannot read")), 1)
				assert.Equal(t, 1, bytes.Count(l.out.Bytes(), []byte("leading no more")))
			})
		})
	}
}

// TestALeaseThatHasExpiredIsLostWhateverTheLoopDoes, even if the loop waits for an answer.
func TestALeaseThatHasExpiredIsLostWhateverTheLoopDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		config := l.config("a")
		config.RenewDeadline = 14900 * time.Millisecond // it begins to count at the next try
		a, err := Stand(t.Context(), config)
		require.NoError(t, err)
		<-a.Elected()
		<-time.After(time.Minute)
		synctest.Wait() // it has just been renewed
		start := time.Now()
		l.set(func() { l.err = errors.New("down") })
		<-a.Lost()
		assert.Equal(t, 15*time.Second, time.Since(start))
		assert.ErrorContains(t, a.Err(), "it has not been renewed for 15s")
		a.Resign()
	})
}

// TestALeaseCountsFromWhenItsRenewalWasSent: others count from when the server had it, which is
// earlier than the answer.
func TestALeaseCountsFromWhenItsRenewalWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		l.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			<-time.After(4 * time.Second)
			l.set(func() { l.err = errors.New("down") }) // for the next ones
			return true, lateLease(), nil
		})
		config := l.config("a")
		config.RenewDeadline = 14900 * time.Millisecond
		start := time.Now()
		a, err := Stand(t.Context(), config)
		require.NoError(t, err)
		<-a.Elected()
		assert.Equal(t, 4*time.Second, time.Since(start))
		require.NoError(t, a.Held())
		<-a.Lost()
		assert.Equal(t, 15*time.Second, time.Since(start))
		assert.ErrorIs(t, a.Held(), ErrLost)
		a.Resign()
	})
}

// lateLease is an answer to a creation.
func lateLease() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(Resource.GroupVersion().WithKind("Lease"))
	u.SetNamespace("ns")
	u.SetName("lease")
	u.SetResourceVersion("1")
	return u
}

// TestALeaseThatWasLostOrGivenUpIsNotHeldAgain: a renewal may be answered later, and others may
// have written meanwhile.
func TestALeaseThatWasLostOrGivenUpIsNotHeldAgain(t *testing.T) {
	for name, end := range map[string]func(*Candidate){
		"lost": func(c *Candidate) { c.lose(errors.New("somebody else has it")) }, "given up": (*Candidate).Resign,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newLeases().stand(t, "a")
				<-a.Elected()
				require.NoError(t, a.Held())
				end(a)
				require.ErrorIs(t, a.Held(), ErrLost)
				assert.False(t, a.extends(time.Now(), record{holder: "a"}))
				assert.ErrorIs(t, a.Held(), ErrLost)
				assert.False(t, a.Status().Holds)
				a.Resign()
			})
		})
	}
}

func TestWhoReadsThatAnotherHoldsTheLeaseHasLostAtOnce(t *testing.T) {
	for _, other := range []string{"b", ""} {
		synctest.Test(t, func(t *testing.T) {
			l := newLeases()
			a := l.stand(t, "a")
			<-a.Elected()
			<-time.After(3 * time.Second)
			l.give(t, other)
			start := time.Now()
			<-a.Lost()
			assert.LessOrEqual(t, time.Since(start), 2*time.Second, "at its next try")
			assert.ErrorContains(t, a.Err(), strconv.Quote(other)+" holds it")
			<-time.After(time.Minute)
			a.Resign()
			assert.Equal(t, other, l.holder(t), "it is not taken back")
		})
	}
}

func TestARenewalWithinTheSameSecondIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		config := l.config("a")
		config.LeaseDuration, config.RenewDeadline, config.RetryPeriod = time.Second, 900*time.Millisecond, 700*time.Millisecond
		a, err := Stand(t.Context(), config)
		require.NoError(t, err)
		<-a.Elected()
		config.Identity = "b"
		b, err := Stand(t.Context(), config)
		require.NoError(t, err)
		<-time.After(time.Minute)
		assert.False(t, isClosed(b.Elected()))
		assert.False(t, isClosed(a.Lost()))
		a.Resign()
		b.Resign()
	})
}

func TestACandidateWhoCannotHaveTheLeaseGoesOnTryingAndSaysSoOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		l.err = apierrors.NewForbidden(Resource.GroupResource(), "lease", errors.New("no"))
		a := l.stand(t, "a")
		<-time.After(time.Hour)
		assert.False(t, isClosed(a.Elected()))
		assert.False(t, isClosed(a.Lost()), "it never led")
		assert.Equal(t, 1, bytes.Count(l.out.Bytes(), []byte("\n")), "%s", l.out.String())
		l.set(func() { l.err = nil })
		<-a.Elected()
		a.Resign()
		never := l.stand(t, "never")
		l.set(func() { l.err = errors.New("down") })
		<-time.After(time.Hour)
		never.Resign()
	})
}

// TestResigningReleasesWhatWasUnderWay: the server has accepted a renewal, but its answer is
// missing.
func TestResigningReleasesWhatWasUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.stand(t, "a")
		<-a.Elected()
		synctest.Wait()
		l.give(t, "a") // its version is another now
		a.Resign()
		assert.Equal(t, "", l.holder(t))
	})
}

func TestFieldsOfTheLeaseThatAreNotTheElectionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.stand(t, "a")
		<-a.Elected()
		a.Resign()
		u := l.read(t).DeepCopy()
		u.SetLabels(map[string]string{"a": "b"})
		require.NoError(t, unstructured.SetNestedField(u.Object, "new", "spec", "fieldOfTheFuture"))
		_, err := l.Resource(Resource).Namespace("ns").Update(t.Context(), u, metav1.UpdateOptions{})
		require.NoError(t, err)
		b := l.stand(t, "b")
		<-b.Elected()
		<-time.After(time.Minute)
		assert.Equal(t, map[string]string{"a": "b"}, l.read(t).GetLabels())
		kept, _, _ := unstructured.NestedString(l.read(t).Object, "spec", "fieldOfTheFuture")
		assert.Equal(t, "new", kept)
		b.Resign()
	})
}

func TestADefaultIdentityIsNobodyElses(t *testing.T) {
	a, b := Config{Name: "x", Settings: Settings{Namespace: "ns"}}, Config{Name: "x", Settings: Settings{Namespace: "ns"}}
	for _, c := range []*Config{&a, &b} {
		require.NoError(t, c.Complete())
		giveBack, err := c.TakeIdentity(c.Name)
		require.NoError(t, err)
		defer giveBack()
	}
	assert.NotEqual(t, a.Identity, b.Identity)
	assert.Equal(t, []time.Duration{15 * time.Second, 10 * time.Second, 2 * time.Second}, []time.Duration{a.LeaseDuration, a.RenewDeadline, a.RetryPeriod})
}

// TestWhoWasStoppedLongerThanItsLeaseKnowsThatItIsLost, before any timer of its process has run.
func TestWhoWasStoppedLongerThanItsLeaseKnowsThatItIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		l.set(func() { l.writeErr = errors.New("not now") })
		a := l.stand(t, "a")
		require.ErrorIs(t, a.Held(), ErrLost, "it is not elected yet")
		l.set(func() { l.writeErr = nil })
		<-a.Elected()
		synctest.Wait() // it renews at once
		require.NoError(t, a.Held())
		a.mu.Lock()
		a.sent = a.sent.Add(-a.config.LeaseDuration)
		a.mu.Unlock()
		assert.False(t, a.Status().Holds, "in the status, too")
		require.ErrorIs(t, a.Held(), ErrLost)
		assert.ErrorContains(t, a.Held(), "it has not been renewed for 15s")
		assert.True(t, isClosed(a.Lost()))
		a.Resign()
		b := l.stand(t, "b")
		<-b.Elected()
		b.Resign()
		require.ErrorIs(t, b.Held(), ErrLost)
		assert.ErrorContains(t, b.Held(), "it was given up")
	})
}

// TestALeaseWhoseNamespaceIsMissingIsSaidOnceAndLedWhenThereIsOne: the server answers "not found",
// for the Lease, and for the namespace where one is to be created.
func TestALeaseWhoseNamespaceIsMissingIsSaidOnceAndLedWhenThereIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		missing := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns")
		l.writeErr = missing
		a := l.stand(t, "a")
		<-time.After(time.Hour)
		assert.False(t, isClosed(a.Elected()))
		said := func() (text string) { l.set(func() { text = l.out.String() }); return text }
		assert.Equal(t, 1, strings.Count(said(), `cannot write the lease`), said())
		assert.Equal(t, 1, strings.Count(said(), `namespaces \"ns\" not found`), said())
		l.set(func() { l.writeErr = nil })
		<-a.Elected()
		l.set(func() { l.writeErr = missing }) // it was deleted, with what is in it
		require.NoError(t, l.Tracker().Delete(Resource, "ns", "lease"))
		<-a.Lost()
		assert.ErrorContains(t, a.Err(), `namespaces "ns" not found`)
		a.Resign()
		b := l.stand(t, "b")
		<-time.After(time.Hour)
		assert.Equal(t, 3, strings.Count(said(), `cannot write the lease`), "once for each: %s", said())
		l.set(func() { l.writeErr = nil })
		<-b.Elected()
		b.Resign()
	})
}

// TestAFollowerIsInNoTroubleThoughItCouldNotWrite: it has nothing to write while another leads.
func TestAFollowerIsInNoTroubleThoughItCouldNotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		l.writeErr = apierrors.NewForbidden(Resource.GroupResource(), "lease", errors.New("no"))
		a := l.stand(t, "a")
		<-time.After(time.Minute)
		assert.ErrorContains(t, a.Status().Err, "cannot write it: ")
		assert.False(t, a.Status().Reached)
		l.set(func() { l.writeErr = nil })
		l.held(t, time.Now())
		<-time.After(6 * time.Second)
		s := a.Status()
		assert.NoError(t, s.Err)
		assert.True(t, s.Reached)
		assert.False(t, s.Holds || s.Held)
		assert.Equal(t, "other", s.Holder)
		l.set(func() { l.err = errors.New("down") })
		<-time.After(6 * time.Second)
		assert.ErrorContains(t, a.Status().Err, "cannot read it: down")
		assert.Equal(t, "other", a.Status().Holder, "as it was read last")
		a.Resign()
	})
}
