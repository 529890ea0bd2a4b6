package accumulator

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/collect"
	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/lockorder"
	"github.com/kates-go/kates/internal/object"
)

// Reader looks objects up in the streams of one query, without a snapshot. Each answer is the
// newest state that a watch or an own write has shown (G4, G5). It shares its streams with other
// listeners. It holds nothing per object, except a pointer for each object of a union. It sends
// no request, and is safe for concurrent use.
type Reader struct {
	collector *collect.Collector[objects]
	query     query.Running
	name      string // of the query

	mu    lockorder.Mutex[lockorder.UnionReader]
	union objects // the objects of a union at the last look
}

// objects are the objects that a reader has been handed.
type objects map[stream.Key]stream.Object

func (os objects) Get(key stream.Key) (stream.Object, bool) {
	o, had := os[key]
	return o, had
}

func (os objects) Keys(yield func(stream.Key) bool) { maps.Keys(os)(yield) }

// Present is false: each look is a first one.
func (os objects) Present() bool { return false }

// Open opens a reader of a query, until ctx ends or Close. The errors are those of [New]. Of the
// options, a reader has the witness alone.
func Open(ctx context.Context, s *stream.Set, q query.Query, o collect.Options) (*Reader, error) {
	r := &Reader{}
	c, err := collect.New(ctx, s, []query.Query{q}, collect.Options{Witness: o.Witness}, collect.Reader[objects]{
		User: r, Shown: func() objects { return nil }, Invalid: func(objects) int { return 0 }, Silent: true,
	})
	if err != nil {
		return nil, err
	}
	r.collector, r.query, r.name = c, c.Fields()[0].Query, q.Name
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// Wait returns when the first list is complete. If ctx or the reader ends first, the error says
// what is missing.
func (r *Reader) Wait(ctx context.Context) error {
	if r.collector.Complete() {
		return nil
	}
	select {
	case <-r.collector.Readied():
		return nil
	case <-r.collector.Done():
		return r.collector.Err()
	case <-ctx.Done():
		return fmt.Errorf("%w (%w)", collect.CauseOf(ctx), r.Ready())
	}
}

// Get returns the object of that name, or nil if the query has none. It is shared: do not write
// to it.
func (r *Reader) Get(key stream.Key) stream.Object {
	o := r.get(key)
	if o != nil {
		r.answered(o)
	}
	return o
}

// Has reports whether the query has an object of that name.
func (r *Reader) Has(key stream.Key) bool { return r.get(key) != nil }

func (r *Reader) get(key stream.Key) stream.Object {
	if r.merges() {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.merge()[key]
	}
	return r.query.Get(key)
}

// answered tells the witness which objects the caller gets.
func (r *Reader) answered(all ...stream.Object) {
	if !r.collector.Witnessed() {
		return
	}
	for _, o := range all {
		if stream.Fault(o) == nil {
			r.collector.Show(r.name, o, o)
		}
	}
	r.collector.Hand(collect.Delivery{Moment: collect.Answered})
}

// List returns the objects in a namespace ("": in all) that the selector selects (nil: all of
// them), ordered by namespace and name. The objects are shared, the caller owns the slice. The
// time depends on the number of the query's objects.
func (r *Reader) List(namespace string, selector labels.Selector) []stream.Object {
	var all []stream.Object
	for key, o := range r.found(namespace) {
		if (namespace == "" || key.Namespace == namespace) && (selector == nil || selector.Matches(labels.Set(o.GetLabels()))) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b stream.Object) int {
		return object.Compare(object.KeyOf(a), object.KeyOf(b))
	})
	r.answered(all...)
	return all
}

// merges reports whether the query is a complete union: its streams alone do not say what it
// shows.
func (r *Reader) merges() bool { return r.query.Query().Union() && r.collector.Complete() }

// merge takes the changes of a union. Called with mu held.
func (r *Reader) merge() objects {
	b := r.query.Take(r.union)
	if b.OK && (b.Whole || r.union == nil) {
		r.union = make(objects, len(b.Changes))
	}
	for _, c := range b.Changes {
		if c.Object != nil {
			r.union[c.Key] = c.Object
		} else {
			delete(r.union, c.Key)
		}
	}
	return r.union
}

// found returns the objects of a namespace, and perhaps others.
func (r *Reader) found(namespace string) objects {
	if r.merges() {
		r.mu.Lock()
		defer r.mu.Unlock()
		return maps.Clone(r.merge())
	}
	found := make(objects)
	r.query.Each(namespace, func(key stream.Key, o stream.Object) { found[key] = stream.Newer(found[key], o) })
	return found
}

// Ready is nil once the first list is complete, and stays nil.
func (r *Reader) Ready() error { return r.collector.Ready() }

// Err is nil until the end, and then its cause. What Get and List have returned is complete if
// Err, called after them, returns nil.
func (r *Reader) Err() error { return r.collector.Err() }

// Status returns the state of the query.
func (r *Reader) Status() []query.Status { return r.collector.Status() }

// Shares is false: whether a stream has an object is for the streams to say.
func (r *Reader) Shares(any) bool { return false }

// Close ends the reader. Streams that have no other listener end too.
func (r *Reader) Close() { r.collector.Close() }
