package tables

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/object"
)

// Lookup is a field in which objects are found by name or by selector. It shows one state for as
// long as somebody holds it, and costs what a []T costs. It may be copied, and several goroutines
// may use it at a time. A struct that embeds a Lookup is such a field, too. Two Lookups are equal
// if they show the same state.
type Lookup[T any] struct {
	content *lookupContent[T] // nil: nothing can be looked up
	absent  bool              // of a snapshot in which the optional kind does not exist
}

// lookupContent never changes.
type lookupContent[T any] struct {
	what     string // the name of the query, for errors
	elems    []T
	sources  []Object // the source of each element; nil if the elements are their own sources
	invalid  []Row    // in error, in key order
	recorder Recorder
}

// ErrNoSnapshot is the error of a [Lookup] that no snapshot has filled.
var ErrNoSnapshot = errors.New("the Lookup is not of a snapshot")

// Recorder records look-ups. It is safe for concurrent use.
type Recorder interface {
	// Named records that an object was asked for by name, whether it exists or not.
	Named(Key)
	// Selected records that the objects of a namespace (of all if "") were selected by a
	// selector. A nil selector selects all.
	Selected(namespace string, selector labels.Selector)
}

// Get returns the element of the named object. The namespace of a cluster-scoped object is empty.
// The error is that of an object that is invalid, [ErrNoSnapshot], or the Kubernetes error that
// there is no such object.
func (l Lookup[T]) Get(namespace, name string) (elem T, err error) {
	c, key := l.content, Key{Namespace: namespace, Name: name}
	if c == nil && !l.absent {
		return elem, ErrNoSnapshot
	}
	if c == nil {
		return elem, notFound("", key)
	}
	if c.recorder != nil {
		c.recorder.Named(key)
	}
	if i := c.search(key); i < len(c.elems) && object.KeyOf(c.source(i)) == key {
		return c.elems[i], nil
	}
	if i, found := seek(c.invalid, 0, key, compareRow); found {
		return elem, c.invalid[i].Err
	}
	return elem, notFound(c.what, key)
}

func notFound(what string, key Key) error {
	err := apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	if err.ErrStatus.Message = fmt.Sprintf("%q not found", nameOf(key)); what != "" {
		err.ErrStatus.Message = fmt.Sprintf("%s: %q not found", what, nameOf(key))
	}
	return err
}

// List returns the elements of a namespace's objects (of all namespaces if "") whose labels
// match the selector. A nil selector selects all. The result is in order of namespace, then name
// (G9), and belongs to the caller. The error is [ErrNoSnapshot], or it joins those of the selected
// objects that are invalid, and the others come with it. The time is linear in the number of
// objects in the namespace.
func (l Lookup[T]) List(namespace string, selector labels.Selector) (selected []T, err error) {
	c := l.content
	if c == nil && !l.absent {
		return nil, ErrNoSnapshot
	}
	if c == nil {
		return nil, nil
	}
	if c.recorder != nil {
		c.recorder.Selected(namespace, selector)
	}
	all := selector == nil || selector.Empty()
	first := 0
	if namespace != "" {
		first = c.search(Key{Namespace: namespace})
	}
	for i := first; i < len(c.elems); i++ {
		o := c.source(i)
		if namespace != "" && o.GetNamespace() != namespace {
			break
		}
		if all || selector.Matches(labels.Set(o.GetLabels())) {
			selected = append(selected, c.elems[i])
		}
	}
	return selected, c.faults(namespace, func(o Object) bool {
		return all || selector.Matches(labels.Set(o.GetLabels()))
	})
}

// faults joins the errors of the invalid objects that are selected. Each names its object.
func (c *lookupContent[T]) faults(namespace string, selects func(Object) bool) error {
	var errs []error
	for _, row := range c.invalid {
		if key := object.KeyOf(row.Source); (namespace == "" || key.Namespace == namespace) && selects(row.Source) {
			errs = append(errs, fmt.Errorf("%s: %q: %w", c.what, nameOf(key), row.Err))
		}
	}
	return errors.Join(errs...)
}

// Available is false if the query is optional and its kind does not exist. Then every look-up
// finds nothing, and that says nothing about the objects. The zero Lookup is not available
// either.
func (l Lookup[T]) Available() bool { return l.content != nil }

// search returns the index of the first object that is not before key.
func (c *lookupContent[T]) search(key Key) int {
	return sort.Search(len(c.elems), func(i int) bool { return object.Compare(object.KeyOf(c.source(i)), key) >= 0 })
}

func (c *lookupContent[T]) source(i int) Object {
	if c.sources != nil {
		return c.sources[i]
	}
	return any(c.elems[i]).(Object)
}

// lookupField is a pointer to a [Lookup] of any type, or to a struct that embeds one.
type lookupField interface {
	elemType() reflect.Type
	show(t *Table, r Recorder)
	showNone()
}

func (*Lookup[T]) elemType() reflect.Type { return reflect.TypeFor[T]() }

// show makes the lookup show what the table holds now.
func (l *Lookup[T]) show(t *Table, r Recorder) {
	c, _ := t.looked.(*lookupContent[T])
	if c == nil {
		c = &lookupContent[T]{what: t.form.query, elems: t.elems.Interface().([]T), invalid: t.Invalid()}
		if t.apart {
			c.sources = t.sources
		}
		t.looked = c
	}
	if r != nil {
		recorded := *c
		recorded.recorder = r
		c = &recorded
	}
	*l = Lookup[T]{content: c}
}

// showNone makes the lookup say that the kind does not exist.
func (l *Lookup[T]) showNone() { *l = Lookup[T]{absent: true} }

// LookupElement returns the element type of a [Lookup] field, and nil for all other types.
func LookupElement(t reflect.Type) reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	if f, ok := reflect.New(t).Interface().(lookupField); ok {
		return f.elemType()
	}
	return nil
}

// nameOf is how errors name an object.
func nameOf(key Key) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

// unshare copies the table's sources before they change if lookups hold them, and has the next
// lookup say what is invalid now.
func (t *Table) unshare() {
	if t.looked != nil {
		t.sources, t.looked = slices.Clone(t.sources), nil
	}
}
