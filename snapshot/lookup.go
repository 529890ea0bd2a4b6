package snapshot

import (
	"reflect"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/object"
)

// Lookup is a field whose objects are not gone through, but looked up, by name or by selector. It shows one state, for as long as
// somebody holds it, and costs what a []T costs. It may be copied, and used by several goroutines at a time. A struct that embeds one is a
// field of that kind, too. Two are equal if they show the very same.
type Lookup[T any] struct{ content *lookupContent[T] }

// lookupContent never changes.
type lookupContent[T any] struct {
	elems    []T
	sources  []Object // of the elements; nil where those are their own
	recorder Recorder
}

// Recorder is told what is looked up. It is safe for concurrent use.
type Recorder interface {
	// Named notes that the object of a name was asked for, whether it was there or not.
	Named(Key)
	// Selected notes that the objects of a namespace, or of all (""), were asked for that a selector selects; nil selects all.
	Selected(namespace string, selector labels.Selector)
}

// Get returns the element of the object of that name. The namespace of objects that have none is empty.
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

// Select returns the elements of the objects in a namespace, or, with "", in all, that the selector selects, by their labels; nil selects
// all of them. They are in order of namespace, then name (G9). The slice is the caller's. It takes time in the number of objects
// in the namespace.
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

// Available is false where the query is optional and its kind is not there: nothing is found then, though that says nothing. So it is for
// the zero Lookup.
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

// lookupField is a pointer to a [Lookup] of whatever type, or to a struct that embeds one.
type lookupField interface {
	elemType() reflect.Type
	show(t *Table, r Recorder)
}

func (*Lookup[T]) elemType() reflect.Type { return reflect.TypeFor[T]() }

// show makes the lookup one of what the table has now.
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

// LookupElement returns the type of the elements of a field that is a [Lookup], nil for all other types.
func LookupElement(t reflect.Type) reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	if f, ok := reflect.New(t).Interface().(lookupField); ok {
		return f.elemType()
	}
	return nil
}

// unshare makes the table's sources its own again, before they change: lookups may hold them.
func (t *Table) unshare() {
	if t.looked != nil {
		t.sources, t.looked = slices.Clone(t.sources), nil
	}
}
