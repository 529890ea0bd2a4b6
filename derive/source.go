package derive

import (
	"errors"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Objects is the collection of a field of the snapshot that holds pointers to objects. Their keys
// are their namespaces and names. An object is unchanged if it is at the same address: kates
// snapshots keep the pointer of an object that has not changed.
//
// The objects of one field of a snapshot are ordered, and have different names: then a change
// costs the comparison of two lists of pointers, and an object that comes or goes moves 12 bytes
// for each object behind it.
func Objects[S, T any, P interface {
	*T
	metav1.Object
}](g *Graph[S], name string, field func(*S) []P) Collection[types.NamespacedName, P] {
	key := func(o P) types.NamespacedName {
		return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	}
	return declareSource(g, "Objects", name, field, &elements[types.NamespacedName, P]{
		key:    key,
		equal:  func(a, b P) bool { return a == b },
		blocks: func(a, b []P) bool { return *(*[blockOf]P)(a) == *(*[blockOf]P)(b) },
	})
}

// Slice is the collection of a field of the snapshot that holds anything else: structs of a
// program's own, maps, options, the objects that are invalid. The function gives each element's
// key. Two elements with one key make the key invalid.
//
// An element is unchanged if it points to the same object, or else is equal by the rules of
// [Equal]. A slice is read again if it is another slice: write to no slice that a graph has seen.
func Slice[S any, K comparable, T any](g *Graph[S], name string, field func(*S) []T, key func(T) K) Collection[K, T] {
	s := &elements[K, T]{key: key, equal: sameOf[T]()}
	if reflect.TypeFor[T]().Kind() == reflect.Pointer {
		s.blocks = func(a, b []T) bool { return any(*(*[blockOf]T)(a)) == any(*(*[blockOf]T)(b)) }
	}
	if key == nil {
		g.c.wrong("%q has no function for its keys", name)
	}
	return declareSource(g, "Slice", name, field, s)
}

// blockOf is how many pointers are compared at once.
const blockOf = 64

// common returns how many elements are the same at the beginning of two slices. blocks compares as
// many as blockOf at once; nil: it compares one by one.
func common[T any](a, b []T, blocks func(a, b []T) bool, equal func(a, b T) bool) (n int) {
	least := min(len(a), len(b))
	for blocks != nil && n+blockOf <= least && blocks(a[n:], b[n:]) {
		n += blockOf
	}
	for n < least && equal(a[n], b[n]) {
		n++
	}
	return n
}

func declareSource[S any, K comparable, T any](g *Graph[S], kind, name string, field func(*S) []T, from *elements[K, T]) Collection[K, T] {
	s := &source{list: from}
	s.equal = equalAny(from.equal)
	g.c.declare(s, kind, name)
	if field == nil {
		g.c.wrong("%q has no function for its field", name)
	}
	from.of, from.table = s, own[K, T](&s.collection)
	s.reset()
	g.feeds[int(s.index)] = func(snapshot *S) error {
		from.readSlice(field(snapshot))
		return nil
	}
	return Collection[K, T]{&s.collection}
}

// source is the node behind [Objects] and [Slice].
type source struct {
	collection
	list // an *elements[K, T]
}

// list is a slice, without its types.
type list interface {
	checked
	forget()
}

func (s *source) evaluate() {}

func (s *source) reset() {
	s.collection.reset()
	s.forget()
}

func (s *source) explain(key string) (Explanation, bool) { return s.explained(key, nil) }

// elements are the elements of a slice, which are the entries of a source.
type elements[K comparable, T any] struct {
	of    *source
	table *table[K] // of the source
	key   func(T) K
	equal func(a, b T) bool
	// blocks compares the first elements of two slices, as many as blockOf. Nil: they are no
	// pointers.
	blocks func(a, b []T) bool
	last   []T
	// aligned says that the last slice was in the order of its keys, without an element that is
	// nil, and without a key that is there twice: element i is in row table.order[i].
	aligned bool
}

func (s *elements[K, T]) forget() { s.last, s.aligned = nil, true }

// keyIn returns the key of the entry in a row.
func (s *elements[K, T]) keyIn(row int32) K { return keyOf[K, T](s.of.entries[row].cell) }

// readSlice takes over the elements of a slice.
func (s *elements[K, T]) readSlice(now []T) {
	if len(now) == len(s.last) && (len(now) == 0 || &now[0] == &s.last[0]) {
		return
	}
	switch {
	case s.table.size == 0 && s.load(now):
		s.aligned = true
	case s.aligned && s.walk(now):
	default:
		s.rescan(now)
	}
	s.last = now
}

// load takes over the first slice, if it is in order. It returns false, and has changed nothing, if
// it is not.
func (s *elements[K, T]) load(now []T) bool {
	all := make([]*entry, 0, len(now))
	var entries []entry
	var cells []cellOf[K, T]
	var last K
	for i, v := range now {
		if isNil(v) {
			return false
		}
		k := s.key(v)
		if i > 0 && s.table.compare(last, k) >= 0 {
			return false
		}
		last = k
		e, x := takeElement(&entries, len(now)-i), takeElement(&cells, len(now)-i)
		x.key, x.val = k, v
		e.cell = x
		all = append(all, e)
	}
	s.of.entries = all
	s.table.giveFirstRows(len(now))
	for row, e := range all {
		x := e.cell
		e.cell = nil
		s.of.place(int32(row), e)
		s.of.put(e, x)
	}
	return true
}

// step is a difference between the last slice and the one that follows.
type step[K comparable] struct {
	// was is the position in the last slice, and is that in the one that follows. -1: it is not
	// there.
	was, is int
	key     K
}

// walk compares two slices that are in order. It reads keys only where the slices differ. It
// returns false, and has changed nothing, if the slice that follows is not in order.
func (s *elements[K, T]) walk(now []T) bool {
	steps, ok := s.steps(now)
	if !ok {
		return false
	}
	order := s.table.sorted()
	moved := false
	for _, d := range steps {
		switch {
		case d.is < 0:
			s.of.drop(s.of.entries[order[d.was]])
			moved = true
		case d.was < 0:
			moved = true
		default:
			s.of.put(s.of.entries[order[d.was]], &cellOf[K, T]{d.key, now[d.is]})
		}
	}
	if !moved {
		return true
	}
	next := make([]int32, 0, len(now))
	copied := 0
	for _, d := range steps {
		if d.was >= 0 && d.is >= 0 {
			continue
		}
		if d.was >= 0 {
			next = append(next, order[copied:d.was]...)
			copied = d.was + 1
			continue
		}
		kept := copied + d.is - len(next)
		next = append(next, order[copied:kept]...)
		copied = kept
		next = append(next, s.insert(d.key, now[d.is]))
	}
	s.table.arranged(append(next, order[copied:]...))
	return true
}

// steps returns the differences in the order of their keys.
func (s *elements[K, T]) steps(now []T) (steps []step[K], inOrder bool) {
	order, last := s.table.sorted(), s.last
	var before K // the key of now[j-1], if checked
	checked := false
	follows := func(k K) bool {
		ok := !checked || s.table.compare(before, k) < 0
		before, checked = k, true
		return ok
	}
	for i, j := 0, 0; i < len(last) || j < len(now); {
		if i < len(last) && j < len(now) {
			if n := common(last[i:], now[j:], s.blocks, s.equal); n > 0 {
				if checked && !follows(s.keyIn(order[i])) {
					return nil, false
				}
				i, j = i+n, j+n
				before, checked = s.keyIn(order[i-1]), true
				continue
			}
		}
		var key K
		c := -1 // the last slice's key comes first
		if j < len(now) {
			if isNil(now[j]) {
				return nil, false
			}
			key = s.key(now[j])
			c = 1
			if i < len(last) {
				c = s.table.compare(s.keyIn(order[i]), key)
			}
		}
		switch {
		case c < 0:
			steps = append(steps, step[K]{was: i, is: -1})
			i++
			continue
		case c == 0:
			steps = append(steps, step[K]{was: i, is: j, key: key})
			i++
		default:
			steps = append(steps, step[K]{was: -1, is: j, key: key})
		}
		if !follows(key) {
			return nil, false
		}
		j++
	}
	return steps, true
}

// insert makes an entry, and returns its row.
func (s *elements[K, T]) insert(k K, v T) int32 {
	e := &entry{}
	row := s.table.add(k)
	s.of.place(row, e)
	s.of.put(e, &cellOf[K, T]{k, v})
	return row
}

// rescan takes over a slice in any order, with elements that are nil and keys that are there
// twice.
func (s *elements[K, T]) rescan(now []T) {
	at := make(map[K]int, len(now))
	twice := make(map[K]bool)
	keys := make([]K, 0, len(now))
	aligned := true
	for i, v := range now {
		if isNil(v) {
			aligned = false
			continue
		}
		k := s.key(v)
		if _, there := at[k]; there {
			twice[k], aligned = true, false
			continue
		}
		aligned = aligned && (len(keys) == 0 || s.table.compare(keys[len(keys)-1], k) < 0)
		at[k] = i
		keys = append(keys, k)
	}
	for _, row := range slices.Clone(s.table.sorted()) {
		if _, there := at[s.keyIn(row)]; !there {
			s.of.drop(s.of.entries[row])
		}
	}
	for _, k := range keys {
		e, v := find(&s.of.collection, k), now[at[k]]
		switch {
		case twice[k]:
			s.setTwice(e, k)
		case e == nil:
			s.insert(k, v)
		default:
			if next := another(s.of.c, e.cell, k, v, s.equal); next != nil {
				s.of.put(e, next)
			}
		}
	}
	s.aligned = aligned
	s.table.sorted()
}

// setTwice makes the entry of a key invalid.
func (s *elements[K, T]) setTwice(e *entry, k K) {
	if e != nil && faultOf(e.cell) != nil {
		return
	}
	if e == nil {
		e = &entry{}
		s.of.place(s.table.add(k), e)
	}
	s.of.put(e, &fault{k, errTwice})
}

var errTwice = errors.New("the key is there twice")

// isNil tells whether an element is a pointer or a map that is nil.
func isNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Interface:
		return r.IsNil()
	case reflect.Invalid:
		return true
	}
	return false
}

func (s *elements[K, T]) checks() int { return len(s.last) }

// check runs the function of the keys for an element of the last slice.
func (s *elements[K, T]) check(i int) *finding {
	v := s.last[i]
	if isNil(v) {
		return nil
	}
	run := func() (o outcome) {
		var k K
		o.err = s.of.called(func() error {
			k = s.key(v)
			return nil
		})
		o.val = k
		return o
	}
	kept := outcome{err: ErrNone}
	if s.aligned {
		kept = outcome{val: s.keyIn(s.table.sorted()[i])}
	} else if o := run(); o.err == nil && find(&s.of.collection, o.val.(K)) != nil {
		kept = o
	}
	return compared(s.of.name, "", run, kept, identical)
}
