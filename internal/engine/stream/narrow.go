package stream

import (
	"slices"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/kates-go/kates/internal/engine/audience"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/object"
)

// narrowMost is how many narrow listeners a stream serves: each costs it something at each event.
const narrowMost = 64

// A stream of all objects of a resource, in one namespace or in all, can serve a query that selects
// some of them, or wants their metadata alone ([Config].Share). The listener of such a query is
// narrow: it has an [audience.Part].
//
// The rule: the stream runs without trouble, nothing transforms its objects, and what the listener
// selects can be judged here for certain, by labels, name and namespace. Objects that others name
// have streams of their own: they may be many, and each listener costs the stream something.

// wider returns a stream that can serve what a key's own stream would, and the part of it; nil if
// there is none. Called with mu held.
func (s *Set) wider(r object.Resource, spec object.Spec, key intake.Key, o ListenOptions) (*stream, *audience.Part) {
	if !s.config.Share || o.From == Own || spec.Transform != nil || !judges(spec) {
		return nil, nil
	}
	for _, st := range s.over(r.Storage) {
		if !st.contains(key) || !st.serves() {
			continue
		}
		return st, audience.NewPart(r, spec, key.Namespace, key.Form != st.Key.Form)
	}
	return nil, nil
}

// judges reports whether it can be judged here for certain what a query selects, whatever the
// object.
func judges(spec object.Spec) bool {
	for _, q := range append(slices.Clip(spec.AnyOf), spec.Selection) {
		if q.Fields != nil && slices.ContainsFunc(q.Fields.Requirements(), func(r fields.Requirement) bool { return !ofMetadata(r) }) {
			return false
		}
	}
	return true
}

func ofMetadata(r fields.Requirement) bool {
	return r.Field == "metadata.name" || r.Field == "metadata.namespace"
}

// contains reports whether the stream has every object of another one, with as much of it.
func (s *stream) contains(key intake.Key) bool {
	return s.Whole() && s.Transform == nil && s.Keep == nil && s.Key.Resource == key.Resource &&
		s.Key.Kind == key.Kind && s.Key.Namespaced == key.Namespaced &&
		(s.Key.Namespace == "" || s.Key.Namespace == key.Namespace) &&
		(s.Key.Form == key.Form || key.Form == object.Metadata && !s.Key.Form.Projects())
}

// serves reports whether the stream can take another narrow listener: it has its objects, and no
// trouble.
func (s *stream) serves() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	narrow := 0
	for l := range s.listeners {
		if l.part != nil {
			narrow++
		}
	}
	return narrow < narrowMost && s.progress.phase.listed() && !s.progress.ended && s.health.state == Synced
}

// read returns what the listener sees of a key. Called with the stream's lock held.
func (l *Listener) read(key object.Key) object.Object {
	return l.part.Sees(key, l.stream.store.Read(key))
}

// everything returns all objects that the listener sees. Called with the stream's lock held.
func (l *Listener) everything() []audience.Change { return l.part.Filter(l.stream.store.Everything()) }

// count returns how many objects of the server the listener sees. Called with the stream's lock
// held.
func (l *Listener) count() (n int) {
	if l.part == nil {
		return l.stream.store.Size()
	}
	for _, o := range l.stream.store.Objects {
		if l.part.Has(o) {
			n++
		}
	}
	return n
}
