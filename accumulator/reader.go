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

// Reader looks objects up in the streams of one query, without a snapshot: each answer is the newest
// state that a watch or an own write has shown (G4, G5). It shares the streams with everybody who asks for
// the same. It holds nothing per object, but for a union a pointer to each; it makes no request, and is safe for concurrent use.
type Reader struct {
	a *Accumulator
	f *field

	mu    lockorder.Mutex[lockorder.UnionReader]
	union map[Key]Object // what is true of a union, as of the last look
}

// Open opens a reader of a query, until ctx ends or Close. Errors are those of [stream.Set.New].
func Open(ctx context.Context, s *stream.Set, q Query) (*Reader, error) {
	a, err := New(ctx, s, []Query{q}, Options{Pace: Pace{Interval: never}})
	if err != nil {
		return nil, err
	}
	return &Reader{a: a, f: a.fieldsNow()[0]}, nil
}

// never is between the signals of an accumulator that nobody listens to.
const never = 1 << 62

// Wait returns when the first list is in, or with an error that says what is missing, when ctx or the reader ends.
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

// Get returns the object of that name, nil if there is none in the query. It is shared: not to be written to.
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

// List returns the objects in a namespace, or, with "", in all, that the selector selects (nil: all of them), ordered by
// namespace and name. The objects are shared, the slice is the caller's. It takes time in the number of
// objects that the query has.
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

// merges reports whether the query is a union that is complete: what its streams show is not simply what is true.
func (r *Reader) merges() bool { return r.a.queryOf(r.f).union() && r.a.complete() }

// merge takes in what is new of a union. Called with mu held.
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

// found returns, of a namespace at least, what there is.
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

// Ready is nil once the first list is in, and never turns back.
func (r *Reader) Ready() error { return r.a.Ready() }

// Status says how the query stands.
func (r *Reader) Status() QueryStatus { return r.a.statusOf(r.f) }

// Close ends the reader. Streams that nobody else uses end with it.
func (r *Reader) Close() { r.a.Close() }
