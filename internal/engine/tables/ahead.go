package tables

import (
	"reflect"
	"slices"
	"sync"

	"github.com/kates-go/kates/internal/base/words"
)

// copied is a copy of a table's value, for the next value. The first goroutine that needs the
// copy makes it, and it is made at most once.
type copied struct {
	once sync.Once
	make func() reflect.Value
	copy reflect.Value
}

// take makes the copy, unless it exists. A second caller waits until the copy is made.
func (c *copied) take() reflect.Value {
	c.once.Do(func() { c.copy, c.make = c.make(), nil })
	return c.copy
}

// Ahead returns the part of the work of the next Apply and Value that does not depend on what
// changes: it copies what is shown. Any goroutine may call the function, at any time, or nobody
// calls it: then Apply or Value makes the copy. Ahead returns nil where there is nothing to gain:
// the work was handed out already, or the elements are structs, whose second copy would be large.
//
// Called after Value, it lets a reader that is busy with one snapshot get the next one for the
// price of what changed. The price is memory: 8 bytes for each object of a slice, 40 to 90 of a
// map.
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

// elemsWithRoom copies elements, with room for a few more.
func (t *Table) elemsWithRoom(elems reflect.Value) func() reflect.Value {
	return func() reflect.Value {
		n := elems.Len()
		fresh := reflect.MakeSlice(elems.Type(), n, n+n/64+8)
		reflect.Copy(fresh, elems)
		return fresh
	}
}

// spliceAhead makes the edits in the copy that was made ahead. It reports false if there is no
// copy, or if the copy has too little room.
func (t *Table) spliceAhead(edits []edit, n int) (elems reflect.Value, ok bool) {
	ahead := t.ahead
	if t.form.keying != inOrder || ahead == nil {
		return elems, false
	}
	t.ahead = nil // in any case it differs from elems after this
	begun := ahead.take()
	if n > begun.Cap() {
		return elems, false
	}
	return words.SliceOf(t.form.slices, slices.Clip(splice(words.Slice(begun), edits, t.form.word))), true
}

// spliceOwn makes the edits in place. It is for maps: their elems are delivered to nobody.
func (t *Table) spliceOwn(edits []edit) reflect.Value {
	for _, e := range edits { // check first: a panic half way would leave elems torn
		if e.row != nil {
			t.form.word(e.row)
		}
	}
	return words.SliceOf(t.form.slices, splice(words.Slice(t.elems), edits, t.form.word))
}
