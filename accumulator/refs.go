package accumulator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/guard"
	"github.com/kates-go/kates/internal/lockorder"
)

// Ref says that objects of another query name objects of this one.
type Ref struct {
	// Query is the name of the other query.
	Query string
	// Names returns the keys that an object names. A key without a namespace is in the object's
	// namespace. Names is called once per version of an object, as the stream holds it, without
	// locks, by one goroutine at a time. It must not write to the object. If it fails or panics,
	// the names of the version before count.
	Names func(Object) ([]Key, error)
}

// refPatience is how long, after the first snapshot, an object waits for the objects that it
// names.
const refPatience = 10 * time.Second

// manyRefs is the number of references from which a log entry says that each costs a watch.
const manyRefs = 1000

// references are what a query with Refs watches: one stream for each named object.
type references struct {
	from  []*field    // the fields whose objects name them
	known atomic.Bool // those fields have been taken once

	mu    lockorder.Mutex[lockorder.References] // comes before the accumulator's lock
	named map[Key]*reference
	// What the reader has not taken yet: streams with changes, and keys that nothing names any more.
	fresh   freshReferences
	dropped map[Key]bool
	stale   bool // the field's parts must be replaced
	serving int  // how often the kind was served in another way
	warned  bool
}

// reference is an object that is named.
type reference struct {
	key   Key
	by    int   // how many objects name it: those shown, and those that wait
	part  *part // nil if the kind is unknown, or no such object can exist
	since time.Time
	gone  bool // nothing names it any more. Guarded by freshReferences.mu
}

// freshReferences are the references whose streams may have changes. A stream notes each change here
// at once, whether it is worth a signal or not, so the reader need not ask the other streams.
type freshReferences struct {
	mu  lockorder.Mutex[lockorder.FreshReference] // comes after a stream's lock; no lock comes after it
	all map[*reference]bool
}

func (f *freshReferences) note(ref *reference) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ref.gone {
		return
	}
	if f.all == nil {
		f.all = make(map[*reference]bool)
	}
	f.all[ref] = true
}

// forget removes a reference for good.
func (f *freshReferences) forget(ref *reference) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ref.gone = true
	delete(f.all, ref)
}

func (f *freshReferences) take() map[*reference]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.all
	f.all = nil
	return all
}

// now returns the references, and keeps them.
func (f *freshReferences) now() []*reference {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.all))
}

// source is what a field whose objects name others knows of the names. It belongs to the reader's
// turn.
type source struct {
	to []naming
	// shown are the objects of this snapshot and of the next one; waiting are those that wait for
	// the objects that they name.
	shown   map[Key]released
	waiting held[waiting]
	taken   bool
	// anew and reshaped belong to the batches of waiting objects, see taken.
	anew, reshaped bool
	kept           atomic.Bool // the next snapshot has a change that is worth a signal
}

// naming is one way in which objects name those of another query.
type naming struct {
	to    *field
	names func(Object) ([]Key, error)
	// wide: the names have no namespace, since the kind has none. A kind that is unknown counts
	// as namespaced.
	wide bool
}

// named are the names in an object, for each naming.
type named [][]Key

type released struct {
	object Object
	names  named
}

type waiting struct {
	object Object // nil: it is gone
	names  named
}

// link connects the fields whose objects name others with the named fields.
func link(all []*field) error {
	byName := make(map[string]*field)
	for _, f := range all {
		byName[f.name] = f
	}
	for _, f := range all {
		q := f.query
		if q.Refs == nil {
			continue
		}
		if q.Namespace != "" || q.Namespaces != nil || q.Spaces != nil || q.AnyOf != nil {
			return queryError(q, errors.New("its Refs say which objects are watched: it goes with neither namespaces nor AnyOf"))
		}
		f.refs = &references{named: make(map[Key]*reference)}
		for _, r := range q.Refs {
			from := byName[r.Query]
			if from == nil {
				return queryError(q, fmt.Errorf("its Refs are of %q: %w", r.Query, ErrUnknownQuery))
			}
			if from.source == nil {
				from.source = &source{shown: make(map[Key]released)}
			}
			from.source.to = append(from.source.to, naming{to: f, names: r.Names})
			f.refs.from = append(f.refs.from, from)
		}
	}
	return rank(all)
}

// rank gives each field a rank higher than those of the fields that name its objects.
func rank(all []*field) error {
	for range len(all) + 1 {
		done := true
		for _, f := range all {
			if f.source == nil {
				continue
			}
			for _, n := range f.source.to {
				if n.to.rank <= f.rank {
					n.to.rank, done = f.rank+1, false
				}
			}
		}
		if done {
			return nil
		}
	}
	return errors.New("the Refs of queries go in a circle")
}

// refers reports whether the field has references, or others refer to its names.
func (f *field) refers() bool { return f.refs != nil || f.source != nil }

// namesIn calls the user's functions. If one fails, the names from before count.
func (a *Accumulator) namesIn(f *field, o Object, before named) named {
	all := make(named, len(f.source.to))
	if o == nil {
		return all
	}
	if stream.Fault(o) != nil {
		return orNone(before, all)
	}
	for i, n := range f.source.to {
		keys, err := namesOf(n.names, o)
		if err != nil {
			a.streams.Logger().Error(err, "what an object refers to is not known, what it did before counts",
				"query", n.to.name, "object", fmt.Sprint(f.name, " ", o.GetNamespace(), "/", o.GetName()))
			all[i] = orNone(before, all)[i]
			continue
		}
		for _, key := range keys {
			if key.Name != "" {
				all[i] = append(all[i], n.complete(key, o))
			}
		}
	}
	return all
}

func orNone(before, none named) named {
	if before == nil {
		return none
	}
	return before
}

func namesOf(f func(Object) ([]Key, error), o Object) (keys []Key, err error) {
	err = guard.Named("the function for references panicked", func() (err error) {
		keys, err = f(o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// complete completes a name: without a namespace it is in the object's namespace, unless the kind
// has none.
func (n naming) complete(key Key, by Object) Key {
	switch {
	case n.wide:
		key.Namespace = ""
	case key.Namespace == "":
		key.Namespace = by.GetNamespace()
	}
	return key
}

// wide reports whether the field's kind has no namespaces, as far as it is known.
func (a *Accumulator) wide(f *field) (wide, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return f.known && !f.resource.Namespaced, f.known
}

// nowhere reports whether no object can have that name: it is invalid, or lacks the namespace
// that the kind requires. The path of such a name would be the path of another object.
func nowhere(key Key, wide bool) bool {
	return wide != (key.Namespace == "") || len(content.IsPathSegmentName(key.Name)) > 0 ||
		!wide && len(content.IsPathSegmentName(key.Namespace)) > 0
}

// count notes that objects name others, or, with -1, that they no longer do.
func (a *Accumulator) count(s *source, names named, by int) {
	for i, keys := range names {
		for _, key := range keys {
			a.countOne(s.to[i].to, key, by)
		}
	}
}

func (a *Accumulator) countOne(f *field, key Key, by int) {
	r := f.refs
	r.mu.Lock()
	ref, fresh := r.named[key], false
	if ref == nil {
		ref, fresh = &reference{key: key, since: time.Now()}, true
		r.named[key] = ref
	}
	ref.by += by
	left := ref.by <= 0
	if left {
		delete(r.named, key)
		r.fresh.forget(ref)
		if r.dropped == nil {
			r.dropped = make(map[Key]bool)
		}
		r.dropped[key], r.stale = true, true
	}
	old := ref.part
	r.mu.Unlock()
	switch {
	case left && old != nil:
		old.sub.Close()
	case fresh && !left:
		a.join(f, ref)
	}
}

// join watches an object that is named, if its kind is known and such an object can exist. It is
// called without locks, since a stream may ask for its source. If the kind is served in another
// way meanwhile, or nothing names the object any more, it does nothing.
func (a *Accumulator) join(f *field, ref *reference) {
	r := f.refs
	r.mu.Lock()
	serving := r.serving
	r.mu.Unlock()
	a.mu.Lock()
	q, resource, known := f.query, f.resource, f.known
	a.mu.Unlock()
	if !known || nowhere(ref.key, !resource.Namespaced) {
		return
	}
	l := a.hears()
	l.Optional, l.Signal = q.Optional, q.Signal
	l.Noted = func() { r.fresh.note(ref) }
	l.Wake = func() {
		r.fresh.note(ref)
		a.follows.kick()
		a.pacer.poke()
	}
	name := Selection{Fields: fields.OneTermEqualSelector("metadata.name", ref.key.Name)}
	sub, err := a.streams.Join(resource, stream.Spec{Namespace: ref.key.Namespace, Selection: Selection{Labels: q.Labels, Fields: q.Fields}.And(name), Form: q.Form, Transform: q.Transform}, l)
	if err != nil {
		return // the accumulator has ended
	}
	r.mu.Lock()
	wanted := r.named[ref.key] == ref && r.serving == serving && ref.part == nil
	if wanted {
		ref.part, r.stale = &part{sub: sub}, true
	}
	r.mu.Unlock()
	if !wanted {
		sub.Close()
		return
	}
	r.fresh.note(ref) // it may already have objects
}

// wakeAll notes that every reference may have changes.
func (r *references) wakeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ref := range r.named {
		r.fresh.note(ref)
	}
}

// news reports whether there is a change that is worth a signal.
func (r *references) news() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ref := range r.fresh.now() {
		if ref.part != nil && ref.part.sub.State().News {
			return true
		}
	}
	return len(r.dropped) > 0
}

// settle replaces the parts of a field by those of its present references. If the accumulator has
// ended meanwhile, these end too.
func (a *Accumulator) settle(f *field) {
	r := f.refs
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stale {
		return
	}
	r.stale = false
	parts := make([]*part, 0, len(r.named))
	for _, ref := range r.named {
		if ref.part != nil {
			parts = append(parts, ref.part)
		}
	}
	a.mu.Lock()
	ended := a.err != nil
	f.parts = parts
	a.mu.Unlock()
	if ended {
		closeAll(parts)
	}
	if len(parts) >= manyRefs && !r.warned {
		r.warned = true
		a.streams.Logger().Info("each object that is referred to has a watch of its own: a query without Refs may cost less",
			"query", f.name, "objects", len(parts))
	}
}

// rejoin watches every named object again, as the resource is served now.
func (a *Accumulator) rejoin(f *field) {
	r := f.refs
	r.mu.Lock()
	r.serving++
	refs, old := make([]*reference, 0, len(r.named)), make([]*part, 0, len(r.named))
	for _, ref := range r.named {
		if ref.part != nil {
			old = append(old, ref.part)
		}
		ref.since, ref.part = time.Now(), nil
		refs = append(refs, ref)
	}
	r.stale = true
	r.mu.Unlock()
	for _, ref := range refs {
		a.join(f, ref)
	}
	a.settle(f)
	closeAll(old)
	a.follows.kick()
}
