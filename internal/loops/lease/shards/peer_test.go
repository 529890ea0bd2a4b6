package shards

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/base/shardrange"
)

// leaseOf is the Lease of a member of the group g.
func leaseOf(change func(*coordinationv1.Lease)) *coordinationv1.Lease {
	seconds, renewed := int32(15), metav1.NewMicroTime(start)
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: "g-other", UID: "u", ResourceVersion: "7", Labels: map[string]string{Label: "g"},
			Annotations: map[string]string{claimAnnotation: "other,self"},
		},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	}
	if change != nil {
		change(l)
	}
	return l
}

func TestALeaseIsThatOfAMemberOfTheGroupUnlessItIsLeaving(t *testing.T) {
	now := metav1.Now()
	for what, change := range map[string]func(*coordinationv1.Lease){
		"another label":    func(l *coordinationv1.Lease) { l.Labels[Label] = "h" },
		"no label":         func(l *coordinationv1.Lease) { l.Labels = nil },
		"another name":     func(l *coordinationv1.Lease) { l.Name = "h-other" },
		"it is deleted":    func(l *coordinationv1.Lease) { l.DeletionTimestamp = &now },
		"a leader's lease": func(l *coordinationv1.Lease) { l.Name = "g" },
	} {
		_, is := peerOf("g", leaseOf(change))
		assert.False(t, is, what)
	}
	got, is := peerOf("g", leaseOf(nil))
	assert.True(t, is)
	assert.Equal(t, "other u 7 15s", got.member+" "+got.uid+" "+got.version+" "+got.duration.String())
	assert.True(t, got.renewed.Equal(start))
	assert.Equal(t, set{"other", "self"}, got.claim)
}

// TestAMemberIsGoneWhenNothingOfItsLeaseHasChangedForItsDuration: each renewal counts, whatever
// shows it, and so does another Lease of the name.
func TestAMemberIsGoneWhenNothingOfItsLeaseHasChangedForItsDuration(t *testing.T) {
	was := peer{member: "other", uid: "u", version: "7", renewed: start, duration: 15 * time.Second}
	later := start.Add(10 * time.Second)
	for what, test := range map[string]struct {
		change func(*peer)
		seen   time.Time
	}{
		"nothing":     {func(*peer) {}, start},
		"its version": {func(p *peer) { p.version = "8" }, later},
		"its renewal": {func(p *peer) { p.renewed = later }, later},
		"a new one":   {func(p *peer) { p.uid = "v" }, later},
	} {
		m := newMembers("self")
		m.observe([]peer{was}, start)
		now := was
		test.change(&now)
		m.observe([]peer{now}, later)
		assert.Equal(t, test.seen.Add(15*time.Second), m.peers["other"].expiry(), what)
	}
}

// TestALeaseThatTheReplicaHasDeletedIsNoMemberThoughTheWatchIsLate: a new one of its name is.
func TestALeaseThatTheReplicaHasDeletedIsNoMemberThoughTheWatchIsLate(t *testing.T) {
	m, old := newMembers("self"), peer{member: "other", uid: "u", version: "7"}
	m.observe([]peer{old}, start)
	m.removed(write{verb: remove, member: "other", uid: "u"}, start, nil)
	m.observe([]peer{old}, start)
	assert.Empty(t, m.peers, "the watch is late")
	m.observe([]peer{{member: "other", uid: "v", version: "9"}}, start)
	assert.Contains(t, m.peers, "other")
	m.removed(write{verb: remove, member: "other", uid: "u"}, start, nil)
	assert.Contains(t, m.peers, "other", "that was about the former one")
}

// TestOfTwoPlansEachReplicaTakesTheSameOne: whoever proposes, and in whatever order they come.
func TestOfTwoPlansEachReplicaTakesTheSameOne(t *testing.T) {
	inOrder := []*plan{
		nil, parsePlan("1 z a,b 0:0"), parsePlan("2 a a,b 0:0"), parsePlan("2 b a,b 0:0"), parsePlan("2 b a,b 0:1"), parsePlan("10 a a,b 0:0"),
	}
	for i, older := range inOrder {
		for j, other := range inOrder {
			want := inOrder[max(i, j)]
			assert.Same(t, want, newer(older, other), "%v and %v", older, other)
			assert.Equal(t, older != nil && i == j, older != nil && other != nil && older.equal(other))
		}
	}
}

func TestLoadsThatMakeNoSenseAreLeftOut(t *testing.T) {
	assert.Equal(t, []shardrange.Load{{Hash: 1, Objects: 2}, {Hash: 255, Objects: 3}},
		parseLoads("1:2,x:1,3:y,4:0,5:-1,6:4294967296,7,ff:3,,10000000000000000:1"))
	many := make([]shardrange.Load, 2*loadsMost)
	for i := range many {
		many[i] = shardrange.Load{Hash: uint64(i), Objects: 1}
	}
	assert.Equal(t, many[:loadsMost], parseLoads(loadsText(many)), "a Lease of another version may have more")
	assert.Empty(t, parseLoads(""))
}
