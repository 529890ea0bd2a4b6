package shards

import (
	"maps"
	"slices"
	"time"
)

// members are the replicas of the group, as the watch shows their Leases.
type members struct {
	self  string
	peers map[string]*observed // the others, and an older Lease of this replica's name
	gone  map[string]bool      // UIDs that were deleted, though the watch shows them
	all   []string             // all members that are seen, with this one, in order
	since time.Time            // when all changed last
}

// observed is a peer, and since when it has not changed.
type observed struct {
	peer
	since time.Time
}

func newMembers(self string) members {
	return members{self: self, peers: map[string]*observed{}, gone: map[string]bool{}}
}

// observe takes in all Leases but the replica's own.
func (m *members) observe(others []peer, now time.Time) {
	there, gone := make(map[string]bool, len(others)), make(map[string]bool)
	for _, p := range others {
		if m.gone[p.uid] {
			gone[p.uid] = true
			continue
		}
		there[p.member] = true
		if o := m.peers[p.member]; o == nil || o.uid != p.uid || o.version != p.version || !o.renewed.Equal(p.renewed) {
			m.peers[p.member] = &observed{p, now}
		}
	}
	m.gone = gone
	maps.DeleteFunc(m.peers, func(name string, _ *observed) bool { return !there[name] })
}

// count notes who the members are.
func (m *members) count(now time.Time) {
	all := []string{m.self}
	for name := range m.peers {
		if name != m.self {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	if !slices.Equal(all, m.all) {
		m.all, m.since = all, now
	}
}

// others are the claims of the other members. Those that equal the replica's own are left out,
// if it goes by no other.
func (m *members) others(by claims, own claim) map[string]claim {
	others := make(map[string]claim)
	for name, o := range m.peers {
		if name != m.self && o.claim != nil && !(len(by) == 1 && same(o.claim, own)) {
			others[name] = o.claim
		}
	}
	return others
}

// expiry returns when a Lease has expired that does not change.
func (o *observed) expiry() time.Time { return o.since.Add(o.duration) }
