package accumulator

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/lockorder"
	"github.com/kates-go/kates/internal/object"
)

// Reader looks objects up in the streams of one query, without a snapshot. Each answer is the
// newest state that a watch or an own write has shown (G4, G5). It shares its streams with other
// listeners. It holds nothing per object, except a pointer for each object of a union. It sends
// no request, and is safe for concurrent use.
type Reader struct {
	a *Accumulator
	f *field

	mu    lockorder.Mutex[lockorder.UnionReader]
	union map[Key]Object // the objects of a union at the last look
}

// Open opens a reader of a query, until ctx ends or Close. The errors are those of [New].
func Open(ctx context.Context, s *stream.Set, q Query) (*Reader, error) {
	a, err := New(ctx, s, []Query{q}, Options{Pace: Pace{Interval: never}})
	if err != nil {
		return nil, err
	}
	return &Reader{a: a, f: a.fieldsNow()[0]}, nil
}

// never is the signal interval of an accumulator without a listener.
const never = 1 << 62

// Wait returns when the first list is complete. If ctx or the reader ends first, the error says
// what is missing.
func (r *Reader) Wait(ctx context.Context) error {
	select {
	case <-r.a.readied:
		return nil
	default:
	}
	select {
	case <-r.a.readied:
		return nil
	case <-r.a.Done():
		return r.a.Err()
	case <-ctx.Done():
		return fmt.Errorf("%w (%w)", causeOf(ctx), r.a.Ready())
	}
}

// Get returns the object of that name, or nil if the query has none. It is shared: do not write
// to it.
func (r *Reader) Get(key Key) Object {
	if r.merges() {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.merge()[key]
	}
	parts, spaces, _ := r.a.of(r.f)
	if !within(spaces, key.Namespace) {
		return nil
	}
	var best Object
	for _, p := range parts {
		if p.sub.Covers(key) {
			best = stream.Newer(best, p.sub.Get(key))
		}
	}
	return best
}

// List returns the objects in a namespace ("": in all) that the selector selects (nil: all of
// them), ordered by namespace and name. The objects are shared, the caller owns the slice. The
// time depends on the number of the query's objects.
func (r *Reader) List(namespace string, selector labels.Selector) []Object {
	var all []Object
	for key, o := range r.found(namespace) {
		if (namespace == "" || key.Namespace == namespace) && (selector == nil || selector.Matches(labels.Set(o.GetLabels()))) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b Object) int {
		return object.Compare(object.KeyOf(a), object.KeyOf(b))
	})
	return all
}

// merges reports whether the query is a complete union: its streams alone do not say what it
// shows.
func (r *Reader) merges() bool { return r.a.queryOf(r.f).union() && r.a.complete() }

// merge takes the changes of a union. Called with mu held.
func (r *Reader) merge() map[Key]Object {
	r.f.last = r.union
	t := r.a.takeField(r.f)
	if t.ok && (t.whole || r.union == nil) {
		r.union = make(map[Key]Object, len(t.changes))
	}
	for _, c := range t.changes {
		if c.Object != nil {
			r.union[c.Key] = c.Object
		} else {
			delete(r.union, c.Key)
		}
	}
	return r.union
}

// found returns the objects of a namespace, and perhaps others.
func (r *Reader) found(namespace string) map[Key]Object {
	if r.merges() {
		r.mu.Lock()
		defer r.mu.Unlock()
		return maps.Clone(r.merge())
	}
	parts, spaces, _ := r.a.of(r.f)
	found := make(map[Key]Object)
	namespaces := make(map[string]bool)
	for _, p := range parts {
		ns := p.sub.Namespace()
		if ns != "" && namespace != "" && ns != namespace {
			continue
		}
		p.sub.Each(namespace, func(key Key, o Object) { found[key] = stream.Newer(found[key], o) })
	}
	maps.DeleteFunc(found, func(key Key, _ Object) bool {
		in, known := namespaces[key.Namespace]
		if !known {
			in = within(spaces, key.Namespace)
			namespaces[key.Namespace] = in
		}
		return !in
	})
	return found
}

// within reports whether a namespace counts.
func within(spaces *stream.Listener, namespace string) bool {
	if spaces == nil {
		return true
	}
	return spaces.Get(Key{Name: namespace}) != nil
}

// Ready is nil once the first list is complete, and stays nil.
func (r *Reader) Ready() error { return r.a.Ready() }

// Status returns the state of the query.
func (r *Reader) Status() QueryStatus { return r.a.statusOf(r.f) }

// Close ends the reader. Streams that have no other listener end too.
func (r *Reader) Close() { r.a.Close() }
