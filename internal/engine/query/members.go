package query

import (
	"slices"
	"sync/atomic"

	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// members are the streams of a query. The lock of the query guards them. If the kind is served in
// another way, other parts replace the old ones, all at once, see union.turn. So there is neither
// a gap nor a duplicate, and nothing that was shown is taken back.
type members struct {
	parts  []*part          // replaced, never changed
	spaces *stream.Listener // lists the selected namespaces; nil selects all
	// regroup: the parts have changed, so the next batch has all objects.
	regroup bool
	// newHistory: what was shown is of another resource, or of another history of the cluster.
	newHistory bool
	// moving: some part does not count yet. It is read without the lock.
	moving atomic.Bool
}

// standing is whether a part counts: whether the query shows what it has.
//
//	counts ──▶ leaves ──▶ closed
//	               comes ──▶ counts
type standing uint8

const (
	partCounts standing = iota
	partLeaves          // it counts until the parts that come take over
	partComes           // it does not count yet: it may be behind what was shown
)

// part is one stream of a query.
type part struct {
	listener *stream.Listener
	standing standing // guarded by the lock of the query
	// wentBack: the server's history went back while the part was to come. Guarded by the lock of
	// the query.
	wentBack bool
	// caughtRV is the version that the stream was asked to reach. When it was as new as the server,
	// it counted as having done so. Guarded by the lock of the query.
	caughtRV string
	// caught is the number of the latest deletion before that, see Listener.Newest.
	caught int64
	// helped is how often the server was asked on behalf of the stream. Guarded by the lock of the
	// query.
	helped int
}

// ready reports whether the part has its whole first list.
func (p *part) ready() bool { return p.listener.State().Ready() }

// settled reports whether an optional query need not wait for the part.
func (p *part) settled(optional bool) bool { return p.listener.State().Settled(optional) }

// wanted returns the parts that the query wants.
func (m *members) wanted() []*part { return m.but(partLeaves) }

// counting returns the parts whose objects the query shows.
func (m *members) counting() []*part { return m.but(partComes) }

// but returns the parts of any other standing.
func (m *members) but(s standing) []*part {
	if !m.moving.Load() {
		return m.parts
	}
	return slices.DeleteFunc(slices.Clone(m.parts), func(p *part) bool { return p.standing == s })
}

// coming returns the parts that do not count yet.
func (m *members) coming() []*part {
	return slices.DeleteFunc(slices.Clone(m.parts), func(p *part) bool { return p.standing != partComes })
}

// listeners returns those of all parts, and that of the namespaces.
func (m *members) listeners() (all []*stream.Listener) {
	all = listenersOf(m.parts)
	if m.spaces != nil {
		all = append(all, m.spaces)
	}
	return all
}

// swap has other parts come, and the present ones leave. It returns listeners that nobody needs:
// new ones that the query already has, and those of parts that were to come. Called with the lock
// held.
func (m *members) swap(fresh []*part) (unneeded []*stream.Listener) {
	kept := m.parts[:0:0]
	had := make(map[stream.ID]bool)
	wanted := make(map[stream.ID]bool)
	for _, p := range fresh {
		wanted[p.listener.Stream()] = true
	}
	moving := false
	for _, p := range m.parts {
		switch stays := wanted[p.listener.Stream()]; {
		case !stays && p.standing == partComes:
			unneeded = append(unneeded, p.listener)
			continue
		case !stays:
			p.standing = partLeaves
		case p.standing == partLeaves:
			p.standing = partCounts
		}
		moving = moving || p.standing != partCounts
		kept = append(kept, p)
		had[p.listener.Stream()] = true
	}
	for _, p := range fresh {
		if had[p.listener.Stream()] {
			unneeded = append(unneeded, p.listener)
			continue
		}
		had[p.listener.Stream()] = true // a query may say one thing twice
		if m.parts != nil {
			p.standing, moving = partComes, true
		}
		kept = append(kept, p)
	}
	m.parts = kept
	m.moving.Store(moving)
	return unneeded
}

// takeOver has the parts count that have come, in place of those that leave. It returns the
// listeners of these. Called with the lock held.
func (m *members) takeOver(r object.Resource) (left []*stream.Listener) {
	kept := m.parts[:0:0]
	for _, p := range m.parts {
		if p.standing != partLeaves {
			m.newHistory = m.newHistory || p.wentBack
			p.standing, p.wentBack = partCounts, false
			kept = append(kept, p)
			continue
		}
		m.newHistory = m.newHistory || p.listener.Storage() != r.Storage
		left = append(left, p.listener)
	}
	m.parts, m.regroup = kept, true
	m.moving.Store(false)
	return left
}

func closeAll(listeners []*stream.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

func listenersOf(parts []*part) []*stream.Listener {
	all := make([]*stream.Listener, len(parts))
	for i, p := range parts {
		all[i] = p.listener
	}
	return all
}
