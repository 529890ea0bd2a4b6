package snapshot

import (
	"reflect"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/object"
)

// Lookup is a field in which objects are found by name or by selector. It shows one state for as
// long as somebody holds it, and costs what a []T costs. It may be copied, and several goroutines
// may use it at a time. A struct that embeds a Lookup is such a field, too. Two Lookups are equal
// if they show the same state.
type Lookup[T any] struct{ content *lookupContent[T] }

// lookupContent never changes.
type lookupContent[T any] struct {
	elems    []T
	sources  []Object // the source of each element; nil if the elements are their own sources
	recorder Recorder
}

// Recorder records look-ups. It is safe for concurrent use.
type Recorder interface {
	// Named records that an object was asked for by name, whether it exists or not.
	Named(Key)
	// Selected records that the objects of a namespace (of all if "") were selected by a
	// selector. A nil selector selects all.
	Selected(namespace string, selector labels.Selector)
}

// Get returns the element of the named object. The namespace of a cluster-scoped object is empty.
func (l Lookup[T]) Get(namespace, name string) (elem T, found bool) {
	c, key := l.content, Key{Namespace: namespace, Name: name}
	if c == nil {
		return elem, false
	}
	if c.recorder != nil {
		c.recorder.Named(key)
	}
	i := c.search(key)
	if i == len(c.elems) || object.KeyOf(c.source(i)) != key {
		return elem, false
	}
	return c.elems[i], true
}

// Select returns the elements of a namespace's objects (of all namespaces if "") whose labels
// match the selector. A nil selector selects all. The result is in order of namespace, then name
// (G9), and belongs to the caller. The time is linear in the number of objects in the namespace.
func (l Lookup[T]) Select(namespace string, selector labels.Selector) (selected []T) {
	c := l.content
	if c == nil {
		return nil
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
	return selected
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
}

func (*Lookup[T]) elemType() reflect.Type { return reflect.TypeFor[T]() }

// show makes the lookup show what the table holds now.
func (l *Lookup[T]) show(t *Table, r Recorder) {
	c, _ := t.looked.(*lookupContent[T])
	if c == nil {
		c = &lookupContent[T]{elems: t.elems.Interface().([]T)}
		if t.apart {
			c.sources = t.sources
		}
		t.looked = c
	}
	if r != nil {
		c = &lookupContent[T]{c.elems, c.sources, r}
	}
	l.content = c
}

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

// unshare copies the table's sources before they change if lookups hold them.
func (t *Table) unshare() {
	if t.looked != nil {
		t.sources, t.looked = slices.Clone(t.sources), nil
	}
}
