package query

import (
	"slices"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/object"
)

// streams are those of a query as its kind is served in one way. The set never changes. No two of
// them have one object, see boxes.go.
type streams struct {
	resource object.Resource
	parts    []*part
	spaces   *stream.Listener // lists the selected namespaces; nil selects all

	// The lock of the query guards these.
	taken  bool   // the reader has all objects; if not, the next batch has
	breaks Breaks // of the next batch
}

// part is one stream of a query.
type part struct {
	listener *stream.Listener
	// excusedRV: up to this version the stream does not count as late. The server was asked, and
	// the stream was as new as the server then. Guarded by the lock of the query.
	excusedRV string
	// excusedDeletion is the same for deletions, by their number, see Listener.Newest.
	excusedDeletion int64
	// helped is how often the server was asked on behalf of the stream. Guarded by the lock of the
	// query.
	helped int
}

// Position is a version of a stored resource.
type Position struct {
	Storage, RV string
	Deletion    int64 // the number of the latest one that may be newer than RV, see Listener.Newest
}

// Include makes the position no older than what a stream shows.
func (p *Position) Include(l *stream.Listener) {
	rv, deletion := l.Newest()
	p.RV, p.Deletion = coherence.Newest(p.RV, rv), max(p.Deletion, deletion)
}

// ready reports whether the part has its whole first list.
func (p *part) ready() bool { return p.listener.State().Ready() }

// anyReady reports whether one of the parts has its whole first list.
func (s *streams) anyReady() bool { return slices.ContainsFunc(s.parts, (*part).ready) }

// listeners returns those of the parts, and that of the namespaces.
func (s *streams) listeners() []*stream.Listener {
	all := listenersOf(s.parts)
	if s.spaces != nil {
		all = append(all, s.spaces)
	}
	return all
}

func listenersOf(parts []*part) []*stream.Listener {
	all := make([]*stream.Listener, len(parts))
	for i, p := range parts {
		all[i] = p.listener
	}
	return all
}

// CloseAll closes listeners.
func CloseAll(listeners []*stream.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

// part returns the part of a listener, nil if there is none.
func (s *streams) part(l *stream.Listener) *part {
	for _, p := range s.parts {
		if p.listener == l {
			return p
		}
	}
	return nil
}

// settled reports whether none of the streams holds up a first snapshot.
func (s *streams) settled(optional bool) bool {
	return (s.spaces == nil || s.spaces.State().Settled(optional)) &&
		!slices.ContainsFunc(s.parts, func(p *part) bool { return !p.listener.State().Settled(optional) })
}

// phase returns the phase of a query. moving: its kind is served in another way by now.
func (s *streams) phase(optional, moving bool) Phase {
	switch {
	case moving || !s.settled(optional):
		return PhaseOf(listenersOf(s.parts))
	case optional && s.spaces != nil && s.spaces.State().First >= stream.Refused:
		return Empty // the selected namespaces cannot be known
	case slices.ContainsFunc(s.parts, func(p *part) bool { return !optional || p.listener.State().First == stream.NotRefused }):
		return Complete
	}
	return Empty
}

// PhaseOf returns the phase of streams some of which are incomplete.
func PhaseOf(all []*stream.Listener) Phase {
	phase := Incomplete
	for _, l := range all {
		switch st := l.State(); {
		case st.Ready():
			phase = Partial
		case st.Phase == audience.Dropped:
			return Incomplete
		}
	}
	return phase
}

// news reports whether a stream has a change that is worth a signal.
func (s *streams) news() bool {
	return s.spaces != nil && s.spaces.State().News ||
		slices.ContainsFunc(s.parts, func(p *part) bool { return p.listener.State().News })
}

// gone reports whether the kind is gone again.
func (s *streams) gone() bool {
	return !slices.ContainsFunc(s.parts, func(p *part) bool { return !p.listener.State().Gone })
}

// misplaced reports whether an answer was one that a server gives if the kind is served in another
// way.
func (s *streams) misplaced() bool {
	return slices.ContainsFunc(s.parts, func(p *part) bool { return p.listener.State().Misplaced })
}

// lacks reports whether the server refuses, for not very long yet, to list what other streams of
// the kind have.
func (s *streams) lacks(other *streams) bool {
	pending := func(l *stream.Listener) bool { return l.State().First == stream.Refused }
	if s.spaces != nil && other.spaces != nil && pending(s.spaces) && other.spaces.State().Ready() {
		return true
	}
	return slices.ContainsFunc(s.parts, func(p *part) bool {
		return pending(p.listener) && slices.ContainsFunc(other.parts, func(had *part) bool {
			ns := had.listener.Namespace()
			return (ns == "" || ns == p.listener.Namespace()) && had.ready()
		})
	})
}

// position returns the newest version that the streams show, and of what: that of the newest
// event, bookmark, list, or own write that one of them has.
func (s *streams) position() Position {
	at := Position{Storage: s.resource.Storage}
	for _, p := range s.parts {
		at.Include(p.listener)
	}
	return at
}

// behind returns the streams that are late: their position is older than at. A stream that the
// server was asked for is not late once it was as new as the server, whatever its version: the
// server may have been restored. If at has the number of a deletion, each stream has to be as new
// as the server after that deletion. Called with the lock of the query held.
func (s *streams) behind(at Position) (late []*stream.Listener) {
	if s.resource.Storage != at.Storage {
		return nil
	}
	for _, p := range s.parts {
		older := coherence.Newer(at.RV, p.listener.State().PositionRV) && coherence.Newer(at.RV, p.excusedRV)
		if p.ready() && (older || at.Deletion > p.excusedDeletion) {
			late = append(late, p.listener)
		}
	}
	return late
}

// get returns the state of an object that its stream shows, nil if it shows none.
func (s *streams) get(key object.Key) object.Object {
	p := covering(s.parts, key)
	if p == nil || !s.within(key.Namespace) {
		return nil
	}
	return p.listener.Get(key)
}

// covering returns the part whose stream can have an object of that name, nil if none can.
func covering(parts []*part, key object.Key) *part {
	i := slices.IndexFunc(parts, func(p *part) bool { return p.listener.Covers(key) })
	if i < 0 {
		return nil
	}
	return parts[i]
}

// each calls f with the objects in a namespace ("" for all), without locks.
func (s *streams) each(namespace string, f func(object.Key, object.Object)) {
	namespaces := make(map[string]bool)
	for _, p := range s.parts {
		if ns := p.listener.Namespace(); ns != "" && namespace != "" && ns != namespace {
			continue
		}
		p.listener.Each(namespace, func(key object.Key, o object.Object) {
			in, known := namespaces[key.Namespace]
			if !known {
				in = s.within(key.Namespace)
				namespaces[key.Namespace] = in
			}
			if in {
				f(key, o)
			}
		})
	}
}

// within reports whether a namespace is selected.
func (s *streams) within(namespace string) bool {
	return s.spaces == nil || s.spaces.Get(object.Key{Name: namespace}) != nil
}
