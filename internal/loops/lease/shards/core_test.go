package shards

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/internal/loops/lease"
)

var start = time.Unix(1000, 0)

// scripted is a core whose requests the test answers.
type scripted struct {
	*core
	t     *testing.T
	lease peer // as the server has it
	next  int
}

func newScripted(t *testing.T) *scripted {
	t.Helper()
	config := Config{Group: "g", Settings: lease.Settings{Namespace: "ns", Identity: "one"}}
	require.NoError(t, config.Complete())
	return &scripted{core: newCore(config), t: t}
}

// ask expects a request, which the server answers after a while.
func (s *scripted) ask(at time.Time, want verb, after time.Duration) {
	s.t.Helper()
	w, _ := s.todo(at)
	require.Equal(s.t, want, w.verb)
	s.sends(w, at)
	s.next++
	s.lease = peer{member: s.self, uid: "own", renewed: at, version: string(rune('0' + s.next)), claim: w.claim, duration: s.config.LeaseDuration}
	s.answered(w, s.lease, at, at.Add(after), nil)
}

// joined returns a replica that has all keys, alone.
func joined(t *testing.T) *scripted {
	t.Helper()
	s := newScripted(t)
	s.observe(nil, start)
	s.ask(start, create, 0)
	s.ask(start, update, 0) // its claim
	s.observe([]peer{s.lease}, start)
	s.keys.caughtUp(s.keys.current())
	require.True(t, s.mine(named("key"), start))
	return s
}

// named is a key of a name, and of no hash that matters.
func named(name string) Key { return Key{Name: name} }

// other returns another member, which claims nothing yet.
func other() peer {
	return peer{member: "other", uid: "other", version: "100", duration: 15 * time.Second}
}

// of returns a key of one of two members.
func of(t *testing.T, member string, both set) string {
	t.Helper()
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"} {
		if owner("g", key, both) == member {
			return key
		}
	}
	t.Fatal("it has no key")
	return ""
}

func TestALeaseCountsFromWhenItsRenewalWasSent(t *testing.T) {
	s := joined(t)
	require.True(t, s.take(named("key"), start))
	held := s.running["key"]
	at := start.Add(2 * time.Second)
	s.ask(at, update, 4*time.Second)
	require.NoError(t, s.held(held, at.Add(15*time.Second-1)))
	require.ErrorIs(t, s.held(held, at.Add(15*time.Second)), ErrLost)
}

// TestAMembershipCountsFromWhenItsLeaseWasSent: the answer may have been late.
func TestAMembershipCountsFromWhenItsLeaseWasSent(t *testing.T) {
	s := newScripted(t)
	s.observe(nil, start)
	s.ask(start, create, 4*time.Second)
	s.todo(start.Add(s.config.RenewDeadline - 1))
	assert.True(t, s.own.joined())
	s.todo(start.Add(s.config.RenewDeadline))
	assert.False(t, s.own.joined())
}

// TestALeaseOfAnotherUIDIsNotTheReplicas: others have deleted its own, and one of its name came.
func TestALeaseOfAnotherUIDIsNotTheReplicas(t *testing.T) {
	s := joined(t)
	require.True(t, s.take(named("key"), start))
	held, at := s.running["key"], start.Add(2*time.Second)
	w, _ := s.todo(at)
	require.Equal(t, update, w.verb)
	s.sends(w, at)
	s.answered(w, peer{}, at, at, apierrors.NewConflict(lease.Resource.GroupResource(), "g-one", nil))
	w, _ = s.todo(at)
	require.Equal(t, read, w.verb)
	found := s.lease
	found.uid = "another"
	s.answered(w, found, at, at, nil)
	assert.False(t, s.own.joined())
	assert.ErrorIs(t, s.held(held, at), ErrLost)
	assert.ErrorContains(t, s.lost, "its lease was deleted")
}

// TestALateRenewalIsReported: whoever was refused a key meanwhile has to be told to try again.
func TestALateRenewalIsReported(t *testing.T) {
	s := joined(t)
	before := s.keys.standing()
	at := start.Add(9 * time.Second)
	s.ask(at, update, 6*time.Second-1)
	assert.Equal(t, before, s.keys.standing(), "the lease did not run out")
	at = at.Add(9 * time.Second)
	w, _ := s.todo(at)
	require.Equal(t, update, w.verb)
	s.sends(w, at)
	late := at.Add(6 * time.Second)
	assert.False(t, s.mine(named("key"), late), "it has")
	s.answered(w, s.lease, at, late, nil)
	assert.True(t, s.mine(named("key"), late))
	assert.NotEqual(t, before, s.keys.standing())
	assert.False(t, s.keys.standing().behind(), "no other had the keys: nothing has to catch up")
}

func TestAClaimCountsWhenItHasComeBack(t *testing.T) {
	s := newScripted(t)
	s.observe(nil, start)
	s.ask(start, create, 0)
	before := s.lease
	s.ask(start, update, 0)
	s.observe([]peer{before}, start) // the watch is late
	assert.Nil(t, s.keys.current(), "who knows what others have claimed before")
	s.observe([]peer{s.lease}, start)
	assert.NotNil(t, s.keys.current())
}

// TestNoKeyIsOwnedBeforeTheWatchesAreAsNewAsTheFirstClaim: another replica may have worked at it a
// moment ago.
func TestNoKeyIsOwnedBeforeTheWatchesAreAsNewAsTheFirstClaim(t *testing.T) {
	s := newScripted(t)
	s.observe(nil, start)
	s.ask(start, create, 0)
	s.ask(start, update, 0)
	s.observe([]peer{s.lease}, start)
	assert.True(t, s.keys.standing().behind())
	assert.False(t, s.mine(named("key"), start))
	assert.False(t, s.take(named("key"), start))
	s.keys.caughtUp(nil)
	assert.False(t, s.mine(named("key"), start), "that was for no claim")
	s.keys.caughtUp(s.keys.current())
	assert.False(t, s.keys.standing().behind())
	assert.True(t, s.mine(named("key"), start))
}

func TestAKeyThatWasAnothersMeanwhileWaitsForTheWatches(t *testing.T) {
	for name, catching := range map[string]func(*scripted) *grant{
		"that have not begun":    func(*scripted) *grant { return nil },
		"that had begun earlier": func(s *scripted) *grant { return s.keys.current() },
	} {
		t.Run(name, func(t *testing.T) {
			s := joined(t)
			with := catching(s)
			moves := of(t, "other", set{"other", s.self})
			s.observe([]peer{s.lease, other()}, start)
			assert.False(t, s.mine(named(moves), start))
			s.observe([]peer{s.lease}, start)
			s.keys.caughtUp(with)
			assert.False(t, s.mine(named(moves), start), "it may have been worked at")
			s.keys.caughtUp(s.keys.current())
			assert.True(t, s.mine(named(moves), start))
		})
	}
}

func TestAKeyIsNotTakenWhileAnotherClaimsIt(t *testing.T) {
	s := joined(t)
	both := set{"other", s.self}
	there := other()
	there.claim = set{"other"} // it decides by itself alone
	s.observe([]peer{s.lease, there}, start)
	stays := of(t, s.self, both)
	assert.False(t, s.mine(named(stays), start))
	there.claim, there.version = both, "101"
	s.observe([]peer{s.lease, there}, start)
	s.keys.caughtUp(s.keys.current())
	assert.True(t, s.mine(named(stays), start))
}

// TestAWriteThatOutlivesItsWorkIsBoundToTheKeyAndTheMembership, also when the replica joins again
// under its identity. TestAClaimThatTheServerMayStillStoreCounts: the answer to an update is
// missing, and the Lease that is read then has not got it. The server may carry the update out
// later.
func TestAClaimThatTheServerMayStillStoreCounts(t *testing.T) {
	s := joined(t)
	moves := named(of(t, "other", set{"other", s.self}))
	s.observe([]peer{s.lease, other()}, start)
	at := start.Add(2 * time.Second)
	w, _ := s.todo(at)
	require.Equal(t, update, w.verb)
	require.Equal(t, set{s.self, "other"}, w.claim)
	s.sends(w, at)
	at = at.Add(5 * time.Second)
	s.answered(w, peer{}, at.Add(-5*time.Second), at, apierrors.NewTimeoutError("no answer", 0))
	s.observe([]peer{s.lease}, at) // the other one has left
	at = at.Add(2 * time.Second)
	w, _ = s.todo(at)
	require.Equal(t, read, w.verb)
	s.answered(w, s.lease, at, at, nil)
	s.observe([]peer{s.lease}, at)
	s.keys.caughtUp(s.keys.current())
	assert.False(t, s.mine(moves, at), "by the claim that is late it is not")
	s.ask(at, update, 0) // it names the version before: the late one fails
	s.observe([]peer{s.lease}, at)
	s.keys.caughtUp(s.keys.current())
	assert.True(t, s.mine(moves, at))
}

func TestATurnFromBeforeAMembershipWasLostIsNoneOfTheNext(t *testing.T) {
	s := joined(t)
	before := s.keys.gains
	s.lose(errDeleted)
	s.observe(nil, start)
	at := start.Add(2 * time.Second)
	s.ask(at, create, 0)
	s.ask(at, update, 0)
	s.observe([]peer{s.lease}, at)
	s.keys.caughtUp(s.keys.current())
	require.True(t, s.mine(named("key"), at))
	assert.Greater(t, s.keys.gains, before)
}

func TestAWriteThatOutlivesItsWorkIsBoundToTheKeyAndTheMembership(t *testing.T) {
	s := joined(t)
	require.True(t, s.take(named("busy"), start))
	busy := s.running["busy"]
	require.True(t, s.take(named("key"), start))
	held := s.running["key"]
	s.give("key")
	require.NoError(t, s.held(held, start), "the key is the replica's")
	theirs := of(t, "other", set{s.self, "other"})
	require.True(t, s.take(named(theirs), start))
	moving := s.running[theirs]
	s.observe([]peer{s.lease, other()}, start)
	require.NoError(t, s.held(moving, start), "the other waits for it")
	s.give(theirs)
	require.ErrorIs(t, s.held(moving, start), ErrLost)
	s.lose(errDeleted)
	require.ErrorIs(t, s.held(held, start), ErrLost)
	s.own.presence, s.own.uid, s.own.sent = present, "own again", start
	s.keys = ownership{shown: true, caught: true, grants: []*grant{{group: "g", self: s.self, by: claims{set{s.self}}}}}
	require.True(t, s.mine(named("key"), start))
	require.ErrorIs(t, s.held(held, start), ErrLost)
	require.ErrorIs(t, s.held(busy, start), ErrLost, "it has not ended, and the membership has")
}

// TestAWriteThatOutlivesItsWorkStaysRefusedWhenItsKeyComesBack: another shard has worked at it.
func TestAWriteThatOutlivesItsWorkStaysRefusedWhenItsKeyComesBack(t *testing.T) {
	s := joined(t)
	key := of(t, "other", set{"other", s.self})
	require.True(t, s.take(named(key), start))
	outlives := s.running[key]
	s.give(key)
	require.NoError(t, s.held(outlives, start))
	s.observe([]peer{s.lease, other()}, start)
	require.ErrorIs(t, s.held(outlives, start), ErrLost)
	s.observe([]peer{s.lease}, start)
	s.keys.caughtUp(s.keys.current())
	require.True(t, s.mine(named(key), start), "it is back")
	require.ErrorIs(t, s.held(outlives, start), ErrLost)
}

func TestWorkForAKeyOfAnotherIsCancelledAfterALeaseDurationAndLaterNotWaitedFor(t *testing.T) {
	s := joined(t)
	theirs := of(t, "other", set{s.self, "other"})
	require.True(t, s.take(named(theirs), start))
	require.True(t, s.take(named(of(t, s.self, set{s.self, "other"})), start))
	work := s.running[theirs]
	s.observe([]peer{s.lease, other()}, start)
	patience := s.config.LeaseDuration
	drained, again := s.drained(start.Add(patience - 1))
	assert.False(t, drained)
	assert.Equal(t, start.Add(patience), again)
	require.NoError(t, work.revoked)
	drained, again = s.drained(start.Add(patience))
	assert.False(t, drained)
	assert.Equal(t, start.Add(2*patience), again)
	require.ErrorIs(t, work.revoked, ErrLost)
	for key, other := range s.running {
		assert.Equal(t, key == theirs, other.revoked != nil, "only that of the other")
	}
	drained, _ = s.drained(start.Add(2 * patience))
	assert.True(t, drained)
}

func TestItsOwnFormerLeaseIsDeletedAtOnceWhenNoWorkIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		own, busy, copied bool
		want              verb
	}{
		"it is this process's":               {own: true, want: remove},
		"work has not ended":                 {own: true, busy: true, want: none},
		"a copy of this process renewed it":  {own: true, copied: true, want: none},
		"it may be that of another process":  {want: none},
		"of another, and work has not ended": {busy: true, want: none},
	} {
		t.Run(name, func(t *testing.T) {
			s := joined(t)
			s.config.OwnIdentity = c.own
			require.True(t, s.take(named("key"), start))
			s.lose(errDeleted)
			if !c.busy {
				s.give("key")
			}
			at := start.Add(12 * time.Second)
			if c.copied {
				s.lease.renewed, s.lease.version = at, "copied"
			}
			s.observe([]peer{s.lease}, at)
			w, _ := s.todo(at)
			require.Equal(t, c.want, w.verb)
			if w.verb == remove {
				s.answered(w, peer{}, at, at, apierrors.NewConflict(lease.Resource.GroupResource(), "x", nil))
				w, again := s.todo(at)
				require.Equal(t, none, w.verb, "not in a hot loop")
				w, _ = s.todo(again)
				require.Equal(t, remove, w.verb)
				return
			}
			require.ErrorIs(t, s.hindrance(nil), errFormer)
			w, _ = s.todo(at.Add(15 * time.Second))
			require.Equal(t, remove, w.verb)
		})
	}
}

// TestAMemberWhoseLeaseACopyOfItsProcessRenewsHasLost: the copy has the same Lease. A renewal
// whose answer was lost is its own, and so is a Lease in which others have changed something else.
func TestAMemberWhoseLeaseACopyOfItsProcessRenewsHasLost(t *testing.T) {
	at := start.Add(2 * time.Second)
	for name, c := range map[string]struct {
		found func(*peer)
		want  error
	}{
		"the copy has renewed it":       {func(p *peer) { p.renewed = at.Add(time.Microsecond) }, ErrLost},
		"its own renewal was stored":    {func(p *peer) { p.renewed = at }, nil},
		"something else was changed":    {func(*peer) {}, nil},
		"somebody has made it anew":     {func(p *peer) { p.uid, p.renewed = "another", at.Add(time.Second) }, ErrLost},
		"the copy has renewed it again": {func(p *peer) { p.renewed = at.Add(time.Second) }, ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			s := joined(t)
			s.config.OwnIdentity = true
			require.True(t, s.take(named("key"), start))
			tenure := s.running["key"]
			w, _ := s.todo(at)
			require.Equal(t, update, w.verb)
			s.sends(w, at)
			s.answered(w, peer{}, at, at, apierrors.NewConflict(lease.Resource.GroupResource(), "x", nil))
			w, _ = s.todo(at)
			require.Equal(t, read, w.verb)
			found := s.lease
			found.version = "later"
			c.found(&found)
			s.answered(w, found, at, at, nil)
			require.ErrorIs(t, s.held(tenure, at), c.want)
			if c.want == nil {
				w, _ = s.todo(at)
				require.Equal(t, update, w.verb)
				return
			}
			s.give("key")
			s.observe([]peer{found}, at)
			w, _ = s.todo(at)
			require.Equal(t, none, w.verb, "it waits for the other one")
			require.ErrorIs(t, s.hindrance(nil), errFormer)
		})
	}
}
