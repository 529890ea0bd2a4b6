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

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/lister"
	"github.com/kates-go/kates/internal/engine/tables"
	objects "github.com/kates-go/kates/internal/object"
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
	reader   *lister.Reader
	binding  *snapshot.Binding
	resource string
	// witness is told of each value before it is handed out; nil: there is none. The reader tells
	// it of the objects themselves.
	witness collect.Witness

	mu    lockorder.Mutex[lockorder.Converted]
	known map[objects.Key]converted[T] // of the objects that were asked for
	// the number of conversions at which those of deleted objects are removed
	sweep int
}

// ofLister is the witness of a lister, whose query has a name if the user has given it one.
type ofLister struct {
	collect.Witness
	query string
}

func (l ofLister) Shown(_ string, o objects.Object, value any) { l.Witness.Shown(l.query, o, value) }

// sweepLeast is the least number of conversions at which it is worth removing those of deleted
// objects.
const sweepLeast = 1024

type converted[T any] struct {
	source objects.Object
	value  T
	err    error
}

// NewLister makes a lister of a query and waits for its first list, as long as ctx allows. The
// query's Kind may be empty where T implies it. Its Name names the watch in metrics and messages.
// The lister runs until Close, or until the client's Close: ctx bounds only the making. After an
// error nothing is left running.
func NewLister[T any](ctx context.Context, c *Client, query Query) (*Lister[T], error) {
	if c == nil {
		return nil, fmt.Errorf("make a lister of %s: %w", objects.TypeName(reflect.TypeFor[T]()), errNoClient)
	}
	wanted, err := c.compiler().OfField(ctx, &compile.Struct{Reports: reports}, reflect.TypeFor[compile.Elements[T]]().Field(0), query.wanted(), true)
	var binding *snapshot.Binding
	if err == nil {
		binding, err = compile.BindingOf[T]()
	}
	if err != nil {
		return nil, fmt.Errorf("make a lister of %s: %w", objects.TypeName(reflect.TypeFor[T]()), err)
	}
	wanted.Labelled = true
	compiled, err := c.compiler().All([]compile.Wanted{wanted})
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, plain.While("make a lister", err)
	}
	name := cmp.Or(query.Name, compiled[0].Kind)
	options := c.options(c.watch.get(), watched{fmt.Sprintf("a lister of %q", name), name})
	if options.Witness != nil {
		options.Witness = ofLister{options.Witness, name}
	}
	reader, err := lister.Open(context.WithoutCancel(ctx), c.core.Streams, compiled[0], options)
	if err != nil {
		return nil, plain.While("make a lister", err)
	}
	if err := reader.Wait(ctx); err != nil {
		reader.Close()
		return nil, plain.While("make a lister", err)
	}
	return &Lister[T]{
		reader: reader, binding: binding, resource: compiled[0].Kind, known: map[objects.Key]converted[T]{},
		witness: options.Witness,
	}, nil
}

// Get returns the object of that name. The namespace is "" for kinds without one. If there is no
// such object, the error is like the server's ([IsNotFound]). If the object does not decode, the
// error says why. A lister that has ended returns an error that says so ([ErrClosed]), and never
// that there is no such object. [Lookup.Get] is the same in a snapshot.
func (l *Lister[T]) Get(namespace, name string) (T, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	o := l.reader.Get(key)
	var none T
	if err := l.ended(); err != nil {
		return none, err
	}
	if o == nil {
		l.mu.Lock()
		delete(l.known, key)
		l.mu.Unlock()
		err := apierrors.NewNotFound(objects.Resource{}.GroupResource(), name)
		err.ErrStatus.Message = fmt.Sprintf("%s %q not found", l.resource, objects.Path(namespace, name))
		return none, err
	}
	return l.convert(key, o)
}

// List returns the objects in a namespace ("" for all) that match a label selector (nil for all),
// ordered by namespace and name. Objects that do not decode are left out. Then an error that names
// them comes with the others. A lister that has ended returns an error ([ErrClosed]), and never an
// empty list. [Lookup.List] is the same in a snapshot.
func (l *Lister[T]) List(namespace string, selector labels.Selector) ([]T, error) {
	var errs []error
	held := l.reader.List(namespace, selector)
	if err := l.ended(); err != nil {
		return nil, err
	}
	all := make([]T, 0, len(held))
	for _, o := range held {
		v, err := l.convert(objects.KeyOf(o), o)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %w", l.resource, objects.Path(o.GetNamespace(), o.GetName()), err))
			continue
		}
		all = append(all, v)
	}
	return all, errors.Join(errs...)
}

// convert converts each version of an object once.
func (l *Lister[T]) convert(key objects.Key, o objects.Object) (T, error) {
	if same, isT := o.(any).(T); isT {
		return same, nil
	}
	l.mu.Lock()
	c, ok := l.known[key]
	l.mu.Unlock()
	if ok && c.source == o {
		return c.value, c.err
	}
	c = converted[T]{source: o}
	if c.value, c.err = l.converted(o); c.err == nil && l.witness != nil {
		lockorder.CallOut("Options.Witness")
		l.witness.Shown("", o, c.value)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := l.known[key]; first.source == o {
		return first.value, first.err // another goroutine was faster
	}
	l.known[key] = c
	if len(l.known) > max(l.sweep, sweepLeast) { // each new object may have a new name
		maps.DeleteFunc(l.known, func(key objects.Key, _ converted[T]) bool { return !l.reader.Has(key) })
		l.sweep = 2 * len(l.known)
	}
	return c.value, c.err
}

// converted converts an object. The error says why it does not decode.
func (l *Lister[T]) converted(o objects.Object) (value T, err error) {
	if err := objects.Fault(o); err != nil {
		return value, withPanic(err)
	}
	v, err := l.binding.Convert(0, o)
	if err != nil {
		return value, withPanic(err)
	}
	return v.(T), nil
}

// ended returns an error if the lister has ended: what its watch showed last may be gone.
func (l *Lister[T]) ended() error {
	if err := l.reader.Err(); err != nil {
		return fmt.Errorf("the lister of %s has ended: %w", l.resource, err)
	}
	return nil
}

// Status returns the state of the query.
func (l *Lister[T]) Status() Status {
	return statusOf(l.reader.Status())
}

// Close ends the lister. Its watch ends, too, if nobody else uses it.
func (l *Lister[T]) Close() { l.reader.Close() }

// Lookup is a field of a snapshot in which a program looks up the objects that others refer to.
//
//	type Snapshot struct {
//	    Ingresses []*networkingv1.Ingress
//	    Secrets   kates.Lookup[*corev1.Secret]
//	    Hosts     kates.Lookup[map[string]any] `kates:"hosts.getambassador.io"`
//	}
//
// T is whatever the elements of a slice may be (see [Client.Watch]). In the snapshots of [Watch]
// and [Run] it is a field like any other: a query that holds all its objects. Each change of one
// of them is a change of the snapshot.
//
// In the snapshots of [WatchEach] and [RunEach] the kind belongs to no partition (a [Query.Key]
// for it is an error). Every turn may read all of it. What a turn reads is recorded until the
// turn is done: by name or by selector, absence included. The key has another turn when an object
// that it looked up comes, changes or goes, or when an object begins or ceases to match a
// selector that it used. That includes changes while the turn is under way, and the client's own
// writes. Only what the key's latest turn has read counts, whatever its result: what is not read
// any more causes no more turns. What was absent, or invalid, was read, too.
//
// A change of an object costs nothing for keys that looked up other names. It is compared with
// each different selector that keys have used in its namespace, or in all namespaces. Where
// thousands of keys have a selector of their own, names are cheaper. A field of []*[Delta] has
// the changes of what the key's last turn had read. A field of [][Invalid] has none of these
// objects: Get and List say why they are invalid, they are in Status, and [WithOnInvalid] reports
// them. A turn of a key that is gone can read a Lookup as ever.
//
// A Lookup shows one state, that of its snapshot, for as long as somebody holds it. It may be
// copied, and several goroutines may read it at a time. It may be read after the turn is done,
// but such reads are not recorded. Two are equal (==) only if they show the very same objects.
// What it returns is shared and read-only, like all objects in snapshots.
type Lookup[T any] struct{ lookup[T] }

type lookup[T any] = tables.Lookup[T]

// Get returns the object of that name. The namespace is empty for kinds without one. If there is
// no such object, the error is like the server's ([IsNotFound]). If the object is invalid, the
// error says why, as [Invalid] does. A Lookup that no snapshot has filled returns an error that is
// neither. The cost is logarithmic in the number of objects. [Lister.Get] is the same without a
// snapshot.
func (l Lookup[T]) Get(namespace, name string) (T, error) {
	value, err := l.lookup.Get(namespace, name)
	return value, withPanic(err)
}

// List returns the objects whose labels match the selector, in one namespace, or with "" in all.
// A nil selector matches all objects. They are in order of namespace, then name. The slice is the
// caller's. Invalid objects are left out; then an error that names them comes with the others. A
// Lookup that no snapshot has filled returns an error. The cost is linear in the number of objects
// in the namespace. If an object of the kind changes meanwhile, the end of the turn costs as much.
// [Lister.List] is the same without a snapshot.
func (l Lookup[T]) List(namespace string, selector labels.Selector) ([]T, error) {
	all, err := l.lookup.List(namespace, selector)
	return all, withPanic(err)
}

// Available is false while the query is optional and the server does not serve its kind. Then
// nothing is found, which says nothing about what exists.
func (l Lookup[T]) Available() bool { return l.lookup.Available() }
