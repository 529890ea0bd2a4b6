package snapshot

import (
	"reflect"
	"slices"
	"sync"
	"unsafe"
)

// copied is a copy of a value of a table, for the next one, that is made at most once, by whoever comes first.
type copied struct {
	once sync.Once
	make func() reflect.Value
	copy reflect.Value
}

// take makes the copy, if nobody has; who comes while it is being made waits for it.
func (c *copied) take() reflect.Value {
	c.once.Do(func() { c.copy, c.make = c.make(), nil })
	return c.copy
}

// Ahead returns the share of the next Apply and Value that does not depend on what will have changed: copying what is shown. The
// function may be called by any goroutine, at any time, or never: whoever needs the copy makes it, where nobody has. It is nil where
// there is nothing to be gained: it has been asked for already, or the elements are structs, of which a second copy would be large.
//
// Called after Value, it lets a reader that is busy with one snapshot have the next one for the price of what has changed. The
// price is memory: 8 bytes for each object of a slice, 40 to 90 of a map.
func (t *Table) Ahead() func() {
	if !t.form.inWords() || t.ahead != nil {
		return nil
	}
	switch {
	case t.form.keying == inOrder:
		t.ahead = &copied{make: t.elemsWithRoom(t.elems)}
	case t.value.IsValid() && t.patches == nil:
		t.ahead = &copied{make: t.form.mapCloner(t.value)}
	default:
		return nil
	}
	ahead := t.ahead
	return func() { ahead.take() }
}

// elemsWithRoom copies elements, with room for some more.
func (t *Table) elemsWithRoom(elems reflect.Value) func() reflect.Value {
	return func() reflect.Value {
		n := elems.Len()
		fresh := reflect.MakeSlice(elems.Type(), n, n+n/64+8)
		reflect.Copy(fresh, elems)
		return fresh
	}
}

// spliceAhead makes the edits in the copy that was made ahead, if there is one, and it has the room.
func (t *Table) spliceAhead(edits []edit, n int) (elems reflect.Value, ok bool) {
	ahead := t.ahead
	if t.form.keying != inOrder || ahead == nil {
		return elems, false
	}
	t.ahead = nil // whatever becomes of it, it is like elems no longer
	begun := ahead.take()
	if n > begun.Cap() {
		return elems, false
	}
	return t.form.slice(slices.Clip(splice(wordsAndRoom(begun), edits, t.form.word))), true
}

// spliceOwn makes the edits in place: of a map, elems is delivered to nobody.
func (t *Table) spliceOwn(edits []edit) reflect.Value {
	for _, e := range edits { // or it would panic half way
		if e.row != nil {
			t.form.word(e.row)
		}
	}
	return t.form.slice(splice(wordsAndRoom(t.elems), edits, t.form.word))
}

// wordsAndRoom are a slice's words, with its capacity.
func wordsAndRoom(slice reflect.Value) []unsafe.Pointer {
	return unsafe.Slice((*unsafe.Pointer)(slice.UnsafePointer()), slice.Cap())[:slice.Len()]
}

// slice is words as a slice of elements: the same memory.
func (f *form) slice(words []unsafe.Pointer) reflect.Value {
	return reflect.NewAt(f.slices, unsafe.Pointer(&words)).Elem()
}
