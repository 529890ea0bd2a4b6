package shards

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/kates-go/kates/internal/base/asjson"
	"github.com/kates-go/kates/internal/base/shardrange"
)

// planning is a core that divides by plans, and has a Lease.
func planning(t *testing.T) *scripted {
	t.Helper()
	s := newScripted(t)
	s.config.By = string(shardrange.Namespace)
	s.observe(nil, start)
	s.ask(start, create, 0)
	return s
}

// planner is another member that divides by plans. Its name is higher than that of any other.
func planner() peer {
	p := other()
	p.member, p.by = "zzz", string(shardrange.Namespace)
	return p
}

// writes returns the Lease of a claim.
func writes(t *testing.T, w write) *coordinationv1.Lease {
	t.Helper()
	c := &Config{Group: "g", By: string(shardrange.Namespace)}
	c.Namespace, c.Identity, c.LeaseDuration = "ns", "one", 15*time.Second
	u, err := c.object(w, []shardrange.Load{{Hash: 7, Objects: 3}}, start)
	require.NoError(t, err)
	var l coordinationv1.Lease
	require.NoError(t, asjson.Decode(u.Object, &l))
	return &l
}

func TestALeaseIsReadWithThePlansThatWereWritten(t *testing.T) {
	claimed := (*plan)(nil).next("a", []string{"a", "b"}, nil)
	next := claimed.next("a", []string{"a", "b", "c"}, nil)
	p, ok := peerOf("g", writes(t, write{claim: claimed, next: next}))
	require.True(t, ok)
	assert.Equal(t, claimed, p.claim)
	assert.Equal(t, next, p.next)
	assert.Equal(t, string(shardrange.Namespace), p.by)
	assert.Equal(t, []shardrange.Load{{Hash: 7, Objects: 3}}, p.loads)
	for _, text := range []string{"", "1 a a", "1 a a 1:0", "1 a a 0:1", "1 a b,a 0:0", "x a a 0:0", "1 a a 0:0,0:0", "01 a a 0:0", "1  a 0:0",
		"18446744073709551615 a a 0:0", "9223372036854775807 a a 0:0"} { // no plan could follow them
		assert.Nil(t, parsePlan(text), text)
	}
}

// TestALeaseWithAPlanIsAllOfItsHoldersForAFormerVersion, which reads the members alone.
func TestALeaseWithAPlanIsAllOfItsHoldersForAFormerVersion(t *testing.T) {
	l := writes(t, write{claim: (*plan)(nil).next("a", []string{"a", "b"}, nil)})
	delete(l.Annotations, planAnnotation)
	p, _ := peerOf("g", l)
	require.Equal(t, set{member("one")}, p.claim)
	g := &grant{group: "g", self: "former", by: claims{set{"former", member("one")}}, others: map[string]claim{member("one"): p.claim}}
	for i := range 100 {
		assert.False(t, g.has(named(fmt.Sprint("key-", i))))
	}
}

func TestAPlanWaitsForMembersThatComeAndNotForKeysWithoutAnOwner(t *testing.T) {
	s := planning(t)
	retry := s.config.RetryPeriod
	s.observe([]peer{s.lease}, start)
	assert.Nil(t, s.goal.plan, "others may come")
	s.observe([]peer{s.lease}, start.Add(retry))
	require.NotNil(t, s.goal.plan)
	assert.Equal(t, []string{s.self}, s.goal.plan.members)
	came := start.Add(10 * retry)
	s.observe([]peer{s.lease, planner()}, came)
	assert.Len(t, s.goal.plan.members, 1)
	s.observe([]peer{s.lease, planner()}, came.Add(retry))
	assert.Len(t, s.goal.plan.members, 2)
	s.observe([]peer{s.lease}, came.Add(retry))
	assert.Len(t, s.goal.plan.members, 1, "at once: the keys of who is gone have no owner")
}

// TestAPlanIsProposedBeforeItIsClaimed: the others need not wait until this replica's work for
// keys that move has ended.
func TestAPlanIsProposedBeforeItIsClaimed(t *testing.T) {
	s := planning(t)
	at := start.Add(s.config.RetryPeriod)
	s.observe([]peer{s.lease}, at)
	s.ask(at, update, 0)
	s.observe([]peer{s.lease}, at)
	s.keys.caughtUp(s.keys.current())
	moving := Key{"moving", 1 << 63}
	require.True(t, s.take(moving, at))
	s.observe([]peer{s.lease, planner()}, at)
	at = at.Add(s.config.RetryPeriod)
	s.observe([]peer{s.lease, planner()}, at)
	require.Equal(t, "zzz", s.goal.claim.owner("g", moving))
	w, _ := s.todo(at)
	require.Equal(t, update, w.verb)
	assert.True(t, w.next.equal(s.goal.claim), "it is proposed")
	assert.Equal(t, s.keys.claim, w.claim, "and not claimed")
	assert.False(t, s.mine(moving, at))
	need, _ := s.need()
	assert.True(t, need.Has(moving.Hash), "its work goes on")
	s.give("moving")
	w, _ = s.todo(at)
	assert.True(t, same(w.claim, s.goal.claim))
}

// TestAPlanFollowsTheObjects: it is made anew when one member has far more than its part, and not
// for less.
func TestAPlanFollowsTheObjects(t *testing.T) {
	loads := func(n int, each uint64) (all []shardrange.Load) {
		for i := range n {
			all = append(all, shardrange.Load{Hash: uint64(i) * each, Objects: 1})
		}
		return all
	}
	p := (*plan)(nil).next("a", []string{"a", "b"}, nil)
	better := p.better("a", loads(100, 1<<50))
	require.NotNil(t, better, "all are in the first half")
	most, _, _ := better.most(loads(100, 1<<50))
	assert.Equal(t, 50, most)
	assert.Nil(t, better.better("a", loads(110, 1<<50)))
	assert.Nil(t, p.better("a", loads(100, 1<<63/50)), "they are even")
	assert.Nil(t, p.better("a", []shardrange.Load{{Hash: 7, Objects: 100}}), "one hash cannot be divided")
}

// TestATakeFromBeforeAGainIsRefused: what the caller has seen may be from before the work of
// another replica.
func TestATakeFromBeforeAGainIsRefused(t *testing.T) {
	s := joined(t)
	r := &Replica{core: s.core}
	before := r.Gains()
	key := of(t, "other", set{"other", s.self})
	s.own.sent = time.Now()
	require.True(t, r.Take(key, before))
	s.give(key)
	s.observe([]peer{s.lease, other()}, start)
	s.observe([]peer{s.lease}, start)
	s.keys.caughtUp(s.keys.current())
	require.True(t, r.Mine(key), "it is back")
	assert.False(t, r.Take(key, before))
	assert.True(t, r.Take(key, r.Gains()))
}

// TestAReplicaBringsWhatItGoesForAndOwnsItOnceThatIsClaimed: another member has gone.
func TestAReplicaBringsWhatItGoesForAndOwnsItOnceThatIsClaimed(t *testing.T) {
	s := planning(t)
	at := start.Add(s.config.RetryPeriod)
	s.observe([]peer{s.lease, planner()}, at)
	at = at.Add(s.config.RetryPeriod)
	s.observe([]peer{s.lease, planner()}, at)
	s.ask(at, update, 0)
	s.observe([]peer{s.lease, planner()}, at)
	s.keys.caughtUp(s.keys.current())
	stays, comes := Key{"stays", 1}, Key{"comes", 1 << 63}
	require.True(t, s.mine(stays, at))
	require.False(t, s.mine(comes, at))
	need, _ := s.need()
	require.False(t, need.Has(comes.Hash))
	s.observe([]peer{s.lease}, at)
	need, _ = s.need()
	assert.True(t, need.Has(comes.Hash), "its streams bring it early")
	s.keys.caughtUp(s.keys.current())
	assert.False(t, s.mine(comes, at), "and it is not claimed yet")
	s.ask(at, update, 0)
	s.observe([]peer{s.lease}, at)
	s.keys.caughtUp(s.keys.current())
	assert.True(t, s.mine(comes, at))
}
