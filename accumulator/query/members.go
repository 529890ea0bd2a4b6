package query

import (
	"slices"
	"sync/atomic"

	"github.com/kates-go/kates/accumulator/stream"
)

// members are the streams of a query. The lock of the query guards them. A part counts once it has
// its whole first list. If the kind is served in another way, other parts replace the old ones. A
// part that the query no longer wants counts until those that replace it do, so there is neither a
// gap nor a duplicate.
type members struct {
	parts  []*part          // replaced, never changed
	spaces *stream.Listener // lists the selected namespaces; nil selects all
	// regroup: the parts have changed, so the next batch has all objects.
	regroup bool
	// newHistory: parts that have left belonged to another resource.
	newHistory bool
	// leaving: parts that the query no longer wants wait for those that replace them, see retire.
	// It is read without the lock.
	leaving atomic.Bool
}

// part is one stream of a query.
type part struct {
	listener *stream.Listener
	// outgoing: the query no longer wants the part. It leaves when no part is incoming. Guarded by
	// the lock of the query.
	outgoing bool
	// caughtRV is the version that the stream was asked to reach. When it was as new as the server,
	// it counted as having done so. Guarded by the lock of the query.
	caughtRV string
	// caught is the number of the latest deletion before that, see Listener.Newest.
	caught int64
	// helped is how often the server was asked on behalf of the stream. Guarded by the lock of the
	// query.
	helped int
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

// noteLeaving notes whether there are parts that the query no longer wants.
func (m *members) noteLeaving() { m.leaving.Store(slices.ContainsFunc(m.parts, (*part).leaves)) }

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
		if !p.outgoing {
			kept = append(kept, p)
			continue
		}
		m.newHistory = m.newHistory || p.listener.Storage() != r.Storage
		left = append(left, p.listener)
	}
	m.parts, m.regroup = kept, true
	return left
}

// swap replaces the parts. It returns new listeners that the query already has. Called with the
// lock held.
func (m *members) swap(fresh []*part) (leaving []*stream.Listener) {
	kept := m.parts[:0:0]
	had := make(map[stream.ID]bool)
	isFresh := make(map[stream.ID]bool)
	for _, p := range fresh {
		isFresh[p.listener.Stream()] = true
	}
	for _, p := range m.parts {
		p.outgoing = !isFresh[p.listener.Stream()]
		kept = append(kept, p)
		had[p.listener.Stream()] = true
	}
	m.regroup = m.regroup || m.parts != nil
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
