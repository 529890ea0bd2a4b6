package query

import (
	"slices"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
)

// members are the streams of a query. The lock of the query guards them. A part counts once it has
// its whole first list. A part that the query no longer wants counts until the parts that replace
// it do, so there is neither a gap nor a duplicate. But objects in a namespace that is no longer
// wanted leave at once.
type members struct {
	parts  []*part          // replaced, never changed
	spaces *stream.Listener // lists the selected namespaces; nil selects all
	// regroup: the parts have changed, so the next batch has all objects.
	regroup bool
	// leftRV is the newest position of the parts that have left. Until the other parts have
	// reached it, they may deliver objects older than those shown. newHistory: the parts that have
	// left belonged to another resource.
	leftRV     string
	newHistory bool
	// taken: a batch has been taken. reshaped: the query was replaced since by one with another
	// form or transform.
	taken, reshaped bool
}

// part is one stream of a query.
type part struct {
	listener *stream.Listener
	// outgoing: the query no longer wants the part. It leaves when no part is incoming. Guarded by
	// the lock of the query.
	outgoing bool
	// merged: the reader has its first list. Belongs to the reader's turn.
	merged bool
}

// ready reports whether the part has its whole first list.
func (p *part) ready() bool { return p.listener.State().Ready() }

// settled reports whether an optional query need not wait for the part.
func (p *part) settled(optional bool) bool { return p.listener.State().Settled(optional) }

// wanted returns the parts that the query wants.
func (m *members) wanted() []*part {
	if !slices.ContainsFunc(m.parts, (*part).leaves) {
		return m.parts
	}
	return slices.DeleteFunc(slices.Clone(m.parts), (*part).leaves)
}

func (p *part) leaves() bool { return p.outgoing }

// listeners returns those of all parts, and that of the namespaces.
func (m *members) listeners() (all []*stream.Listener) {
	all = listenersOf(m.parts)
	if m.spaces != nil {
		all = append(all, m.spaces)
	}
	return all
}

// retire removes the parts that are no longer wanted, once no part is incoming. It returns their
// listeners, for the caller to close without the lock. Called with the lock held.
func (m *members) retire(q Query, r stream.Resource) (left []*stream.Listener) {
	outgoing, incoming := false, false
	for _, p := range m.parts {
		outgoing = outgoing || p.outgoing
		incoming = incoming || !p.outgoing && !p.settled(q.Optional)
	}
	if !outgoing || incoming {
		return nil
	}
	kept := m.parts[:0:0]
	for _, p := range m.parts {
		switch {
		case !p.outgoing:
			kept = append(kept, p)
			continue
		case p.listener.Storage() != r.Storage:
			m.newHistory = true
		default:
			m.leftRV = coherence.Newest(m.leftRV, p.listener.State().PositionRV)
		}
		left = append(left, p.listener)
	}
	m.parts, m.regroup = kept, true
	return left
}

// swap replaces the parts. It returns the listeners that leave at once: old ones in namespaces
// that are not wanted, and new ones that the query already has. Called with the lock held.
func (m *members) swap(fresh []*part, wanted []stream.Spec, r stream.Resource) (leaving []*stream.Listener) {
	namespaces := make(map[string]bool)
	for _, w := range wanted {
		namespaces[w.Namespace] = true
	}
	kept := m.parts[:0:0]
	had := make(map[stream.ID]bool)
	isFresh := make(map[stream.ID]bool)
	for _, p := range fresh {
		isFresh[p.listener.Stream()] = true
	}
	for _, p := range m.parts {
		ns := p.listener.Namespace()
		p.outgoing = !isFresh[p.listener.Stream()]
		if p.outgoing && ns != "" && r.Namespaced && !namespaces[ns] && !namespaces[""] {
			leaving = append(leaving, p.listener)
			continue
		}
		kept = append(kept, p)
		had[p.listener.Stream()] = true
	}
	m.regroup = m.regroup || m.taken || m.parts != nil
	for _, p := range fresh {
		if had[p.listener.Stream()] {
			leaving = append(leaving, p.listener)
			continue
		}
		had[p.listener.Stream()] = true // a query may say one thing twice
		kept = append(kept, p)
	}
	m.parts = kept
	return leaving
}

// behind reports whether a stream has not reached the position of the streams that have left.
// Until then it may deliver objects older than those shown (U3). Called with the lock held.
func (m *members) behind(p *part) bool {
	if m.leftRV != "" && !coherence.Newer(m.leftRV, p.listener.State().PositionRV) {
		m.leftRV = ""
	}
	return m.leftRV != ""
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
