package lease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// copied writes the Lease as a copy of this process does, which has the same identity.
func (l *leases) copied(t *testing.T, change func(*record)) {
	t.Helper()
	spec := l.spec(t)
	r := recordOf(&spec)
	change(&r)
	fields, err := r.fields()
	require.NoError(t, err)
	u := l.read(t).DeepCopy()
	require.NoError(t, unstructured.SetNestedMap(u.Object, fields, "spec"))
	_, err = l.Resource(Resource).Namespace("ns").Update(context.Background(), u, metav1.UpdateOptions{})
	require.NoError(t, err)
}

var byACopy = map[string]func(*record){
	"renewed":           func(r *record) { r.renewed = r.renewed.Add(time.Microsecond) },
	"acquired":          func(r *record) { r.acquired = r.acquired.Add(time.Microsecond) },
	"with another term": func(r *record) { r.transitions++ },
}

func TestALeaderThatReadsItsOwnNameInAWriteThatIsNotItsOwnHasLostAtOnce(t *testing.T) {
	for name, change := range byACopy {
		for _, identity := range []string{"", "said"} {
			t.Run(fmt.Sprintf("%s, identity %q", name, identity), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLeases()
					a, err := Stand(t.Context(), l.known(identity))
					require.NoError(t, err)
					<-a.Elected()
					<-time.After(3 * time.Second)
					l.copied(t, change)
					theirs := l.spec(t)
					<-time.After(2 * time.Second)
					require.True(t, isClosed(a.Lost()), "at its next try")
					assert.ErrorContains(t, a.Err(), fmt.Sprintf("another process with the same identity, %q, holds it", a.config.Identity))
					require.ErrorIs(t, a.Held(), ErrLost)
					a.Resign()
					assert.Equal(t, theirs, l.spec(t), "it does not renew what is another's")
				})
			})
		}
	}
}

func TestWhoResignsReleasesNothingThatACopyHasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.standKnown(t)
		<-a.Elected()
		<-time.After(3 * time.Second)
		l.copied(t, byACopy["renewed"])
		theirs := l.spec(t)
		a.Resign()
		assert.Equal(t, theirs, l.spec(t))
	})
}

// TestTwoClientsThatKnowOneServerByTwoNamesUnderOneIdentityDoNotBothGoOn: the second one is taken
// for a process that comes back, and the first one learns of it when it renews.
func TestTwoClientsThatKnowOneServerByTwoNamesUnderOneIdentityDoNotBothGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a, err := Stand(t.Context(), l.known("one"))
		require.NoError(t, err)
		<-a.Elected()
		<-time.After(3 * time.Second)
		other := l.known("one")
		other.Server = "https://the.same.server"
		b, err := Stand(t.Context(), other)
		require.NoError(t, err)
		<-b.Elected()
		<-time.After(2 * time.Second)
		require.True(t, isClosed(a.Lost()))
		<-time.After(time.Minute)
		require.NoError(t, b.Held())
		a.Resign()
		<-time.After(time.Minute)
		require.NoError(t, b.Held())
		assert.Equal(t, "one", l.holder(t), "the first one has released nothing")
		b.Resign()
	})
}

// TestACandidateWaitsForACopyOfItsProcessAsForAnyOther, whose identity is its own.
func TestACandidateWaitsForACopyOfItsProcessAsForAnyOther(t *testing.T) {
	for name, change := range byACopy {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLeases()
				a := l.standKnown(t)
				<-a.Elected()
				<-time.After(3 * time.Second)
				l.copied(t, change)
				<-time.After(2 * time.Second)
				require.True(t, isClosed(a.Lost()))
				a.Resign()
				theirs, start := l.spec(t), time.Now()
				b := l.standKnown(t)
				require.Equal(t, a.config.Identity, b.config.Identity)
				<-time.After(14 * time.Second)
				assert.False(t, isClosed(b.Elected()))
				assert.ErrorContains(t, b.Status().reason(), "another process holds it under the same identity")
				l.set(func() { assert.Contains(t, l.out.String(), `"following"`) })
				l.set(func() { assert.Contains(t, l.out.String(), fmt.Sprintf(`"leader"=%q`, a.config.Identity)) })
				<-b.Elected()
				assert.GreaterOrEqual(t, time.Since(start), 15*time.Second)
				assert.Equal(t, *theirs.LeaseTransitions+1, *l.spec(t).LeaseTransitions, "a term of its own")
				b.Resign()
			})
		})
	}
}

// TestAWriteWhoseAnswerIsMissingIsItsOwn: the server has stored it, and the candidate goes on.
func TestAWriteWhoseAnswerIsMissingIsItsOwn(t *testing.T) {
	for name, c := range map[string]struct{ before, lost time.Duration }{
		"the creation":     {0, 5 * time.Second},
		"one renewal":      {7 * time.Second, 2 * time.Second},
		"several renewals": {7 * time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLeases()
				lose := func(err error) { l.set(func() { l.lost = err }) }
				if c.before == 0 {
					lose(errors.New("no answer"))
				}
				a := l.standKnown(t)
				<-time.After(c.before)
				lose(errors.New("no answer"))
				<-time.After(c.lost)
				lose(nil)
				<-a.Elected()
				<-time.After(time.Minute)
				require.NoError(t, a.Held())
				assert.False(t, isClosed(a.Lost()))
				if c.before > 0 { // else each try is for a new term
					assert.Equal(t, int32(0), *l.spec(t).LeaseTransitions, "one term")
				}

				// Nor does the next candidate of the process wait for it.
				lose(errors.New("no answer"))
				<-a.Lost()
				a.Resign()
				lose(nil)
				b := l.standKnown(t)
				assert.True(t, isClosed(b.Elected()))
				b.Resign()
			})
		})
	}
}

// TestWritesThatFailForEverTakeNoMemoryForEver, and what was stored last is not forgotten.
func TestWritesThatFailForEverTakeNoMemoryForEver(t *testing.T) {
	at := func(n int) Stamp { return StampOf(time.Unix(int64(n), 0)) }
	var w Written
	w.Sends(at(0))
	w.Stored(at(0))
	for n := range 1000 {
		w.Sends(at(n + 1))
	}
	assert.True(t, w.Has(at(0)))
	assert.True(t, w.Has(at(1000)))
	assert.False(t, w.Has(at(1)))
	assert.Len(t, w.maybe, maxMaybe)
	w.Stored(at(1000))
	assert.Empty(t, w.maybe)
	assert.False(t, w.Has(at(999)), "it began with an older version")
}
