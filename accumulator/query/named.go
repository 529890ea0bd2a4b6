package query

import (
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/kates-go/kates/accumulator/stream"
)

// count notes that an object names another, or, with -1, that it no longer does. ahead is of
// objects that nobody has yet: what they alone name is watched, and not shown.
func (r *references) count(key stream.Key, by, ahead int) {
	r.mu.Lock()
	ref, first := r.named[key], false
	if ref == nil {
		ref, first = &reference{key: key, since: time.Now()}, true
		r.named[key] = ref
	}
	had := ref.by > 0
	ref.by += by
	ref.ahead += ahead
	left, has := ref.by <= 0 && ref.ahead <= 0, ref.by > 0
	if left {
		delete(r.named, key)
		r.fresh.forget(ref)
	}
	if left || had && !has {
		if r.dropped == nil {
			r.dropped = make(map[stream.Key]bool)
		}
		r.dropped[key] = true
	}
	old := ref.watch
	r.mu.Unlock()
	switch {
	case left && old != nil:
		old.Close()
	case first && !left:
		r.join(ref)
	case !had && has && old != nil:
		old.Untake() // the reader may have had it before
		r.fresh.note(ref)
	}
}

// join watches an object that is named, if its kind is known and such an object can exist. It is
// called without locks, since a stream may ask for its source. If the kind is served in another
// way meanwhile, or nothing names the object any more, it does nothing.
func (r *references) join(ref *reference) {
	r.mu.Lock()
	serving, k := r.serving, r.kind
	r.mu.Unlock()
	if !k.known() || nowhere(ref.key, !k.resource.Namespaced) {
		return
	}
	q, l := k.query, r.host.listen(k.query)
	l.Apart = true // there may be many
	l.Noted = func() { r.fresh.note(ref) }
	l.Wake = func() {
		r.fresh.note(ref)
		r.host.Follow()
		r.host.Wake()
	}
	name := stream.Selection{Fields: fields.OneTermEqualSelector("metadata.name", ref.key.Name)}
	watch, err := r.host.Streams.Join(k.resource, stream.Spec{
		Namespace: ref.key.Namespace, Selection: stream.Selection{Labels: q.Labels, Fields: q.Fields}.And(name),
		Form: q.Form, Transform: q.Transform,
	}, l)
	if err != nil {
		return // the streams have ended
	}
	r.mu.Lock()
	wanted := !r.closed && r.named[ref.key] == ref && r.serving == serving && ref.watch == nil
	if wanted {
		ref.watch = watch
	}
	warn := wanted && !r.warned && len(r.named) >= manyRefs
	r.warned = r.warned || warn
	r.mu.Unlock()
	if !wanted {
		watch.Close()
		return
	}
	r.fresh.note(ref) // it may already have objects
	if warn {
		r.host.Streams.Logger().Info("each object that is referred to has a watch of its own: a query without Refs may cost less",
			"query", q.Name, "objects", manyRefs)
	}
}
