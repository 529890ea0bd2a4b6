package kates

import (
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

// Reader looks up objects of one query by name, or lists them by namespace and labels, without a request: each
// answer is the newest that the watch or a write of this client has shown. It shares its watch
// with everybody who asks for the same; where one is running already, opening a reader asks the server nothing.
//
// T is what an element of a snapshot's field may be: *Service, Service, *Unstructured, map[string]any, … What is
// returned is shared and read-only. A reader is safe for concurrent use.
type Reader[T any] struct {
	reader   *accumulator.Reader
	binding  *snapshot.Binding
	resource string

	mu    lockorder.Mutex[lockorder.Converted]
	known map[accumulator.Key]converted[T] // what has been asked for
	sweep int                              // how many to know before looking for those that are gone
}

// sweepLeast is from how many conversions on it is worth looking for those of objects that are gone.
const sweepLeast = 1024

type converted[T any] struct {
	source accumulator.Object
	value  T
	err    error
}

// readers is the snapshot that a reader's objects would be in.
type readers[T any] struct{ Objects []T }

// Open opens a reader of a query and waits for its first list, as long as ctx allows. The query's Kind may be
// left out where T fixes it; its Name does not matter. The reader runs until Close, or that of the
// client: ctx bounds the opening only. On an error nothing is left running.
func Open[T any](ctx context.Context, c *Client, query Query) (*Reader[T], error) {
	query.Name = "Objects"
	t := reflect.TypeFor[readers[T]]()
	wanted, err := c.fieldTarget(ctx, t.Field(0), "", false, query, query.Kind != "")
	if err == nil {
		err = checkStruct(t, []target{wanted})
	}
	if err != nil {
		return nil, fmt.Errorf("open a reader of %s: %w", reflect.TypeFor[T](), err)
	}
	compiled, err := c.compile([]target{wanted})
	if err != nil {
		return nil, fmt.Errorf("open a reader: %w", err)
	}
	binding, err := snapshot.Compile(t, []snapshot.Query{{Name: query.Name}})
	if err != nil {
		return nil, fmt.Errorf("open a reader: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open a reader: %w", err)
	}
	reader, err := accumulator.Open(context.WithoutCancel(ctx), c.core.streams, compiled[0])
	if err != nil {
		return nil, fmt.Errorf("open a reader: %w", err)
	}
	if err := reader.Wait(ctx); err != nil {
		reader.Close()
		return nil, fmt.Errorf("open a reader: %w", err)
	}
	return &Reader[T]{reader: reader, binding: binding, resource: compiled[0].Kind, known: map[accumulator.Key]converted[T]{}}, nil
}

// Get returns the object of that name; the namespace is "" for kinds that have none. Where there is none, the error
// is that of the server ([IsNotFound]). One that does not decode is an error that says so.
func (r *Reader[T]) Get(namespace, name string) (T, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	o := r.reader.Get(key)
	if o == nil {
		r.mu.Lock()
		delete(r.known, key)
		r.mu.Unlock()
		var none T
		err := apierrors.NewNotFound(accumulator.Resource{}.GroupResource(), name)
		err.ErrStatus.Message = fmt.Sprintf("%s %q not found", r.resource, key)
		if namespace == "" {
			err.ErrStatus.Message = fmt.Sprintf("%s %q not found", r.resource, name)
		}
		return none, err
	}
	return r.convert(key, o)
}

// List returns the objects in a namespace ("": in all) that have the labels of the selector (see
// [Query.LabelSelector]; "": all), ordered by namespace and name. Those that do not decode are left out, and
// named by the error beside the others.
func (r *Reader[T]) List(namespace, labelSelector string) ([]T, error) {
	selector := labels.Everything()
	if labelSelector != "" {
		var err error
		if selector, err = parseLabels(labelSelector); err != nil {
			return nil, fmt.Errorf("label selector %q: %w", labelSelector, err)
		}
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

// convert converts an object once.
func (r *Reader[T]) convert(key accumulator.Key, o accumulator.Object) (T, error) {
	if v, ok := o.(any).(T); ok {
		return v, nil
	}
	r.mu.Lock()
	c, ok := r.known[key]
	r.mu.Unlock()
	if ok && c.source == o {
		return c.value, c.err
	}
	c = converted[T]{source: o}
	if c.err = stream.Fault(o); c.err == nil {
		var v snapshot.Value
		if v, c.err = r.binding.Convert(0, o); c.err == nil {
			c.value = v.(T)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[key] = c
	if len(r.known) > max(r.sweep, sweepLeast) { // objects come and go, each under a name of its own
		maps.DeleteFunc(r.known, func(key accumulator.Key, _ converted[T]) bool { return r.reader.Get(key) == nil })
		r.sweep = 2 * len(r.known)
	}
	return c.value, c.err
}

// Status says how the query stands.
func (r *Reader[T]) Status() Status {
	return statusOf([]accumulator.QueryStatus{r.reader.Status()})
}

// Close ends the reader. A watch that nobody else uses ends with it.
func (r *Reader[T]) Close() { r.reader.Close() }
