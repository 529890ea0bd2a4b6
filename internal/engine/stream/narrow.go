package stream

import (
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/object"
)

// narrowMost is how many narrow listeners a stream serves: each costs it something at each event.
const narrowMost = 64

// narrow is the part of a stream that one listener sees. A stream of all objects of a resource, in
// one namespace or in all, can serve a query that selects some of them, or wants their metadata
// alone ([Config].Share). A nil narrow sees everything. The stream's lock guards it.
//
// The rule: the stream runs without trouble, nothing transforms its objects, and what the listener
// selects can be judged here for certain, by labels, name and namespace. Objects that others name
// have streams of their own: they may be many, and each listener costs the stream something.
type narrow struct {
	as       intake.Key // the stream that the listener would have of its own
	name     string     // the only name that is selected; "" for all
	selector object.Judge
	kind     schema.GroupVersionKind
	// short, if not nil, has the metadata of each object as it was handed out last: one version is
	// one pointer.
	short map[object.Key]shortened
}

// shortened is an object and its metadata.
type shortened struct{ of, as object.Object }

// wider returns a stream that can serve what a key's own stream would, and how; nil if there is
// none. Called with mu held.
func (s *Set) wider(r object.Resource, spec object.Spec, key intake.Key, o ListenOptions) (*stream, *narrow) {
	if !s.config.Share || o.Apart || spec.Transform != nil || !judges(spec) {
		return nil, nil
	}
	for _, st := range s.over(r.Storage) {
		if !st.contains(key) || !st.serves() {
			continue
		}
		n := &narrow{as: key, name: spec.OnlyName(), selector: object.NewJudge(r, spec), kind: r.Kind}
		if key.Form != st.Key.Form {
			n.short = make(map[object.Key]shortened)
		}
		return st, n
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
		if l.narrow != nil {
			narrow++
		}
	}
	return narrow < narrowMost && s.progress.synced && !s.progress.ended && s.health.state == Synced
}

// in reports whether the listener's query has an object. Of one that does not decode the labels
// may be unknown: it is in, so that somebody hears of it.
func (n *narrow) in(o object.Object) bool {
	o = object.Bare(o)
	switch {
	case n == nil || o == nil:
		return o != nil
	case n.as.Namespace != "" && o.GetNamespace() != n.as.Namespace:
		return false
	}
	return n.selector.ByMetadata(o)
}

// sees returns what the listener sees of an object that the stream shows: nil if its query does
// not have it.
func (n *narrow) sees(key object.Key, o object.Object) object.Object {
	switch {
	case n == nil:
		return o
	case !n.in(o):
		delete(n.short, key)
		return nil
	case n.short == nil:
		return o
	}
	last := n.short[key]
	if last.of == o {
		return last.as
	}
	as := n.shorten(o)
	if last.of != nil && last.of.GetResourceVersion() == o.GetResourceVersion() && object.Alike(last.as, as) {
		as = last.as // a list shows the version otherwise, but not its metadata
	}
	n.short[key] = shortened{of: o, as: as}
	return as
}

// shorten returns an object's metadata. It shares memory with the object.
func (n *narrow) shorten(o object.Object) object.Object {
	if object.Fault(o) != nil {
		known := object.FaultMetadata(o)
		if known == nil {
			return o
		}
		o = known
	}
	short, err := object.Shorten(o, n.kind)
	if err != nil {
		return object.Reject(object.IDAs(o, n.kind), nil, err)
	}
	return short
}

// read returns what the listener sees of a key. Called with the stream's lock held.
func (l *Listener) read(key object.Key) object.Object { return l.sees(key, l.stream.store.read(key)) }

// sees returns what the listener sees of an object that the stream shows, without a stamp. Called
// with the stream's lock held.
func (l *Listener) sees(key object.Key, o object.Object) object.Object {
	return l.narrow.sees(key, object.Bare(o))
}

// everything returns all objects that the listener sees. Called with the stream's lock held.
func (l *Listener) everything() []Change {
	all := l.stream.store.everything()
	seen := all[:0]
	for _, c := range all {
		if c.Object = l.sees(c.Key, c.Object); c.Object != nil {
			seen = append(seen, c)
		}
	}
	clear(all[len(seen):])
	return seen
}

// count returns how many objects of the server the listener sees. Called with the stream's lock
// held.
func (l *Listener) count() (n int) {
	if l.narrow == nil {
		return l.stream.store.size()
	}
	for _, o := range l.stream.store.objects {
		if l.narrow.in(o) {
			n++
		}
	}
	return n
}
