// Package lister looks objects of one query up, without a snapshot. Start at [Open], which makes a
// [Reader]. A Reader takes no batches: each answer comes from the streams of the query.
package lister

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

// Reader looks objects up in the streams of one query, without a snapshot. Each answer is the
// newest state that a watch or an own write has shown (G4, G5). It shares its streams with other
// listeners. It holds nothing per object, sends no request, and is safe for concurrent use.
type Reader struct {
	collector *collect.Collector[none]
	query     query.Running
	name      string // of the query
}

// none is what a reader has been handed: it takes no batches.
type none struct{}

// Open opens a reader of a query, until ctx ends or Close. The errors are those of
// [collect.New]. Of the options, a reader has the witness alone.
func Open(ctx context.Context, s *streamset.Set, q query.Query, o collect.Options) (*Reader, error) {
	r := &Reader{}
	c, err := collect.New(ctx, s, []query.Query{q}, collect.Options{Witness: o.Witness}, collect.Reader[none]{
		User: r, Shown: func() none { return none{} }, Invalid: func(none) int { return 0 }, Silent: true,
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
func (r *Reader) Get(key object.Key) object.Object {
	o := r.get(key)
	if o != nil {
		r.answered(o)
	}
	return o
}

// Has reports whether the query has an object of that name.
func (r *Reader) Has(key object.Key) bool { return r.get(key) != nil }

func (r *Reader) get(key object.Key) object.Object {
	return r.query.Get(key)
}

// answered tells the witness which objects the caller gets.
func (r *Reader) answered(all ...object.Object) {
	if !r.collector.Witnessed() {
		return
	}
	for _, o := range all {
		if object.Fault(o) == nil {
			r.collector.Show(r.name, o, o)
		}
	}
	r.collector.Hand(collect.Delivery{Moment: collect.Answered})
}

// List returns the objects in a namespace ("": in all) that the selector selects (nil: all of
// them), ordered by namespace and name. The objects are shared, the caller owns the slice. The
// time depends on the number of the query's objects.
func (r *Reader) List(namespace string, selector labels.Selector) []object.Object {
	var all []object.Object
	for key, o := range r.found(namespace) {
		if (namespace == "" || key.Namespace == namespace) && (selector == nil || selector.Matches(labels.Set(o.GetLabels()))) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b object.Object) int {
		return object.Compare(object.KeyOf(a), object.KeyOf(b))
	})
	r.answered(all...)
	return all
}

// found returns the objects of a namespace, and perhaps others.
func (r *Reader) found(namespace string) map[object.Key]object.Object {
	found := make(map[object.Key]object.Object)
	r.query.Each(namespace, func(key object.Key, o object.Object) { found[key] = o })
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

// Inspect returns what the reader has.
func (r *Reader) Inspect() collect.Inspection { return r.collector.Inspect() }

// Names returns the names of the objects that the reader's streams show, in order.
func (r *Reader) Names(query string) []object.Key { return r.collector.Names(query) }

// Examine returns what there is of an object.
func (r *Reader) Examine(query string, key object.Key) (collect.Examined, bool) {
	e, ok := r.collector.Examine(query, key)
	if ok {
		e.Shown = r.get(key)
	}
	return e, ok
}

// LeftOut returns nothing: a reader's answers have their own errors.
func (r *Reader) LeftOut(string, int) []tables.Invalid { return nil }
