package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/lockorder"
	names "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// Lister looks up objects of one query by name, or lists them by namespace and labels, without a
// request. Each answer is the newest that the watch, or a write of this client, has shown. It
// shares its watch with equal queries of the client: where one is running already, making a
// lister sends no request.
//
// T is whatever an element of a snapshot's field may be: *Service, Service, *Unstructured,
// map[string]any, … The returned objects are shared and read-only. A lister is safe for
// concurrent use.
type Lister[T any] struct {
	reader   *accumulator.Reader
	binding  *snapshot.Binding
	resource string
	// shown is called for each value before it is handed out; nil: nothing is. See [WithShown].
	shown func(o stream.Object, value any)

	mu    lockorder.Mutex[lockorder.Converted]
	known map[stream.Key]converted[T] // of the objects that were asked for
	// the number of conversions at which those of deleted objects are removed
	sweep int
}

// sweepLeast is the least number of conversions at which it is worth removing those of deleted
// objects.
const sweepLeast = 1024

type converted[T any] struct {
	source stream.Object
	value  T
	err    error
}

// NewLister makes a lister of a query and waits for its first list, as long as ctx allows. The
// query's Kind may be empty where T implies it. Its Name does not matter. The lister runs until
// Close, or until the client's Close: ctx bounds only the making. After an error nothing is left
// running.
func NewLister[T any](ctx context.Context, c *Client, query Query) (*Lister[T], error) {
	wanted, err := c.fieldTarget(ctx, &structFields{}, reflect.TypeFor[elements[T]]().Field(0), query, query.Kind != "")
	var binding *snapshot.Binding
	if err == nil {
		binding, err = elementsOf[T]()
	}
	if err != nil {
		return nil, fmt.Errorf("make a lister of %s: %w", reflect.TypeFor[T](), err)
	}
	compiled, err := c.compile([]target{wanted})
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, while("make a lister", err)
	}
	reader, err := accumulator.Open(context.WithoutCancel(ctx), c.core.streams, compiled[0])
	if err != nil {
		return nil, while("make a lister", err)
	}
	if err := reader.Wait(ctx); err != nil {
		reader.Close()
		return nil, while("make a lister", err)
	}
	r := &Lister[T]{reader: reader, binding: binding, resource: compiled[0].Kind, known: map[stream.Key]converted[T]{}}
	if shown := c.watch.get().shown; shown != nil {
		name := cmp.Or(query.Name, r.resource)
		r.shown = func(o stream.Object, value any) { shown(name, o, value) }
	}
	return r, nil
}

// Get returns the object of that name. The namespace is "" for kinds without one. If there is no
// such object, the error is like the server's ([IsNotFound]). It is an error if the object does
// not decode.
func (r *Lister[T]) Get(namespace, name string) (T, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	o := r.reader.Get(key)
	if o == nil {
		r.mu.Lock()
		delete(r.known, key)
		r.mu.Unlock()
		var none T
		err := apierrors.NewNotFound(stream.Resource{}.GroupResource(), name)
		err.ErrStatus.Message = fmt.Sprintf("%s %q not found", r.resource, join(namespace, name))
		return none, err
	}
	return r.convert(key, o)
}

// List returns the objects in a namespace ("" for all) that match a label selector (see
// [Query.LabelSelector]; "" for all), ordered by namespace and name. Objects that do not decode
// are left out. Then an error that names them comes with the others.
func (r *Lister[T]) List(namespace, labelSelector string) ([]T, error) {
	selector, err := parseLabels("label", labelSelector)
	if err != nil {
		return nil, err
	}
	if selector == nil {
		selector = labels.Everything()
	}
	var errs []error
	objects := r.reader.List(namespace, selector)
	all := make([]T, 0, len(objects))
	for _, o := range objects {
		v, err := r.convert(names.KeyOf(o), o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, v)
	}
	return all, errors.Join(errs...)
}

// convert converts each version of an object once.
func (r *Lister[T]) convert(key stream.Key, o stream.Object) (T, error) {
	same, isT := o.(any).(T)
	if isT && r.shown == nil {
		return same, nil
	}
	r.mu.Lock()
	c, ok := r.known[key]
	r.mu.Unlock()
	if ok && c.source == o {
		return c.value, c.err
	}
	if c = (converted[T]{source: o, value: same}); !isT {
		c.value, c.err = r.converted(o)
	}
	if c.err == nil && r.shown != nil {
		lockorder.CallOut("WithShown")
		r.shown(o, c.value)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if first := r.known[key]; first.source == o {
		return first.value, first.err // another goroutine was faster
	}
	r.known[key] = c
	if len(r.known) > max(r.sweep, sweepLeast) { // each new object may have a new name
		maps.DeleteFunc(r.known, func(key stream.Key, _ converted[T]) bool { return r.reader.Get(key) == nil })
		r.sweep = 2 * len(r.known)
	}
	return c.value, c.err
}

// converted converts an object. The error says why it does not decode.
func (r *Lister[T]) converted(o stream.Object) (value T, err error) {
	if err := stream.Fault(o); err != nil {
		return value, withPanic(err)
	}
	v, err := r.binding.Convert(0, o)
	if err != nil {
		return value, withPanic(err)
	}
	return v.(T), nil
}

// Status returns the state of the query.
func (r *Lister[T]) Status() Status {
	return statusOf(r.reader.Status())
}

// Close ends the lister. Its watch ends, too, if nobody else uses it.
func (r *Lister[T]) Close() { r.reader.Close() }
