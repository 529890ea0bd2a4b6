package lease

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// known returns the configuration of a candidate whose API server is known by a name.
func (l *leases) known(identity string) Config {
	config := l.config(identity)
	config.Server = "https://server"
	return config
}

func (l *leases) standKnown(t *testing.T) *Candidate {
	t.Helper()
	c, err := Stand(t.Context(), l.known(""))
	require.NoError(t, err)
	return c
}

// TestWhoLosesTouchForLongerThanItsLeaseLeadsAtOnceWhenItComesBack: in a term of its own, and what
// the former candidate has left running may not write.
func TestWhoLosesTouchForLongerThanItsLeaseLeadsAtOnceWhenItComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.standKnown(t)
		<-a.Elected()
		<-time.After(time.Minute)
		l.set(func() { l.err = errors.New("down") })
		<-a.Lost()
		a.Resign()
		b := l.standKnown(t)
		assert.Equal(t, a.config.Identity, b.config.Identity)
		<-time.After(25 * time.Second)
		assert.False(t, isClosed(b.Elected()))
		require.ErrorIs(t, a.Held(), ErrLost)
		back := time.Now()
		l.set(func() { l.err = nil })
		<-b.Elected()
		assert.Less(t, time.Since(back), 5*time.Second, "at its next try")
		require.NoError(t, b.Held())
		require.ErrorIs(t, a.Held(), ErrLost, "the identity is no fence")
		got := l.spec(t)
		assert.Equal(t, int32(1), *got.LeaseTransitions, "a term of its own")
		assert.False(t, got.AcquireTime.Time.Before(back.Truncate(time.Microsecond)))
		<-time.After(time.Minute)
		assert.Equal(t, int32(1), *l.spec(t).LeaseTransitions)
		assert.True(t, got.AcquireTime.Equal(l.spec(t).AcquireTime))
		require.ErrorIs(t, a.Held(), ErrLost)
		b.Resign()
		require.ErrorIs(t, b.Held(), ErrLost)
	})
}

// TestWhoComesBackAfterAnotherHasLedFollows: its identity is that of a former term.
func TestWhoComesBackAfterAnotherHasLedFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.standKnown(t)
		<-a.Elected()
		l.give(t, "other")
		<-a.Lost()
		a.Resign()
		b, start := l.standKnown(t), time.Now()
		<-time.After(14 * time.Second)
		assert.False(t, isClosed(b.Elected()))
		assert.Equal(t, "other", b.Status().Holder)
		<-b.Elected()
		assert.GreaterOrEqual(t, time.Since(start), 15*time.Second)
		require.ErrorIs(t, a.Held(), ErrLost)
		b.Resign()
	})
}

func TestTwoCandidatesOfOneProcessHaveTwoIdentitiesAndOneLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.standKnown(t)
		<-a.Elected()
		b := l.standKnown(t)
		assert.NotEqual(t, a.config.Identity, b.config.Identity)
		<-time.After(time.Hour)
		assert.False(t, isClosed(b.Elected()))
		assert.Equal(t, a.config.Identity, l.holder(t))

		// The lowest is free again, and its lease has not expired.
		l.set(func() { l.err = errors.New("down") })
		<-a.Lost()
		a.Resign()
		l.set(func() { l.err = nil })
		c := l.standKnown(t)
		assert.Equal(t, a.config.Identity, c.config.Identity)
		assert.True(t, isClosed(c.Elected()))
		c.Resign()
		<-b.Elected()
		b.Resign()
		b.Resign()

		one := l.known("one")
		d, err := Stand(t.Context(), one)
		require.NoError(t, err)
		_, err = Stand(t.Context(), one)
		require.ErrorContains(t, err, `lease ns/lease: this program stands for it already under the identity "one"`)
		one.Server = "https://another"
		e, err := Stand(t.Context(), one)
		require.NoError(t, err)
		e.Resign()
		d.Resign()
		d, err = Stand(t.Context(), l.known("one"))
		require.NoError(t, err)
		d.Resign()
	})
	assert.Empty(t, ofProcess.taken)
}

func TestADefaultIdentityIsThatOfOneLeaseOnOneServer(t *testing.T) {
	of := func(server, namespace, name string) string {
		s := Settings{Server: server, Namespace: namespace}
		giveBack, err := s.TakeIdentity(name)
		require.NoError(t, err)
		giveBack()
		return s.Identity
	}
	mine := of("a", "b", "c")
	assert.Equal(t, mine, of("a", "b", "c"))
	for _, other := range []string{of("x", "b", "c"), of("a", "x", "c"), of("a", "b", "x"), of("ab", "", "c"), of("", "b", "c"), of("", "b", "c")} {
		assert.NotEqual(t, mine, other)
	}
	assert.NotEqual(t, of("", "b", "c"), of("", "b", "c"), "the server is not known")
}

// TestAReleaseUnderWayTakesNothingFromTheNextCandidate of the same identity.
func TestAReleaseUnderWayTakesNothingFromTheNextCandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeases()
		a := l.standKnown(t)
		<-a.Elected()
		synctest.Wait()
		late := l.read(t).DeepCopy() // what a's release would write
		l.set(func() { l.writeErr = errors.New("no answer") })
		a.Resign()
		l.set(func() { l.writeErr = nil })
		b := l.standKnown(t)
		<-b.Elected()
		late.Object["spec"].(map[string]any)["holderIdentity"] = ""
		_, err := l.Resource(Resource).Namespace("ns").Update(t.Context(), late, metav1.UpdateOptions{})
		require.Error(t, err, "a conflict")
		<-time.After(time.Minute)
		require.NoError(t, b.Held())
		b.Resign()
	})
}
