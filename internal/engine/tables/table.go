package tables

import (
	"iter"
	"reflect"

	"github.com/kates-go/kates/internal/base/words"
	"github.com/kates-go/kates/internal/object"
)

// Table holds the rows of one query, in key order:
//
//	elems    [ A | B | D | E ]   shown: their values; a slice's are replaced, never edited
//	sources  [ a | b | d | e ]   shown: the objects, unless each is its own value; private, edited in place
//	leftOut  [ c | f ]           in error, or excluded by the predicate; private, edited in place
//
// For a slice field elems is what is delivered. The map of a map field is made on request: from
// sources and elems, or as a copy of the last one with the changes.
//
// Apply finds each changed key by a search and edits sources and leftOut. It makes new elems and
// copies runs of unchanged elements as blocks. A change costs a few comparisons, an unchanged
// object the copy of a pointer.
//
// A table keeps G9 (key order), G10 (what Value returned is never written to again; slices have
// cap = len) and the rows' half of G7 (Apply returns exactly what changed between two values).
// What did not change is the same pointer as before. A table is not safe for concurrent use; the
// values that it returned are.
type Table struct {
	form    *Form
	elems   reflect.Value
	apart   bool // sources are held separately from elems
	sources []Object
	leftOut []Row
	value   reflect.Value // the last delivered map; unused for slices
	patches []patch       // the changes from that map to the next one
	ahead   *copied       // a copy of elems or value for the next value; or nil
	looked  any           // what lookups share with it, a *lookupContent; nil if no lookup does
}

// NewTable returns an empty table for the field.
func (f *Form) NewTable() *Table {
	return &Table{form: f, elems: reflect.MakeSlice(f.slices, 0, 0), apart: f.none == nil}
}

// Get returns the row of a key, shown or left out, and whether there is one.
func (t *Table) Get(k Key) (Row, bool) {
	if i, ok := t.find(0, k); ok {
		return t.row(i), true
	}
	if i, ok := seek(t.leftOut, 0, k, compareRow); ok {
		return t.leftOut[i], true
	}
	return Row{}, false
}

// Cursor finds the sources of keys that are asked for in key order. Few keys cost a search each,
// many keys a walk. The table must not change meanwhile.
type Cursor struct {
	table           *Table
	shownAt, leftAt int // where the next searches begin
}

// Cursor returns a cursor at the first key.
func (t *Table) Cursor() Cursor { return Cursor{table: t} }

// Source returns the source of a key's row, shown or left out, and whether there is one. Keys
// must not decrease from call to call.
func (c *Cursor) Source(k Key) (Object, bool) {
	var found bool
	if c.shownAt, found = c.table.find(c.shownAt, k); found {
		return c.table.source(c.shownAt), true
	}
	if c.leftAt, found = seek(c.table.leftOut, c.leftAt, k, compareRow); found {
		return c.table.leftOut[c.leftAt].Source, true
	}
	return nil, false
}

// IsLookup reports whether the table's field is a [Lookup].
func (t *Table) IsLookup() bool { return t.form.lookup }

// MayContain reports whether p, by its type, may point into the elements of a slice of the field.
func (t *Table) MayContain(p any) bool {
	typ := reflect.TypeOf(p)
	return t.form.keying == inOrder && typ != nil && typ.Kind() == reflect.Pointer && typ.Elem() == t.form.elem
}

// Contains reports whether p points into the elements of the slice that Value returned. A write
// to *p is then a write to delivered memory.
func (t *Table) Contains(p any) bool {
	v := reflect.ValueOf(p)
	if v.Kind() != reflect.Pointer || t.form.keying != inOrder {
		return false
	}
	from, at := uintptr(t.elems.UnsafePointer()), uintptr(v.UnsafePointer())
	return at >= from && at-from < uintptr(t.Len())*t.form.elem.Size()
}

// Shares reports whether p is a value that the table shows, or points into the elements of the
// slice that Value returned.
func (t *Table) Shares(p any) bool {
	if t.Contains(p) {
		return true
	}
	o, ok := p.(Object)
	if !ok {
		return false
	}
	row, ok := t.Get(object.KeyOf(o))
	return ok && row.Value == Value(p)
}

// row returns the i-th shown row.
func (t *Table) row(i int) Row {
	return Row{Source: t.source(i), Value: t.elems.Index(i).Interface()}
}

// Len returns the number of shown rows.
func (t *Table) Len() int { return t.elems.Len() }

// Held returns the number of all rows, shown and left out.
func (t *Table) Held() int { return t.Len() + len(t.leftOut) }

// All iterates over all rows, shown and left out, in key order. The table must not change
// meanwhile.
func (t *Table) All() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		left := t.leftOut
		for i := range t.Len() {
			for key := object.KeyOf(t.source(i)); len(left) > 0 && compareRow(left[0], key) < 0; {
				if !yield(left[0]) {
					return
				}
				left = left[1:]
			}
			if !yield(t.row(i)) {
				return
			}
		}
		for _, row := range left {
			if !yield(row) {
				return
			}
		}
	}
}

// Invalid returns the rows in error, in key order; nil if there are none. The slice belongs to
// the caller.
func (t *Table) Invalid() []Row {
	var invalid []Row
	for _, row := range t.leftOut {
		if row.Err != nil {
			invalid = append(invalid, row)
		}
	}
	return invalid
}

// Value returns the slice or map that shows the rows, of the field's own type. It returns the
// same one until Apply returns a diff. It is never nil and never written to again, so that any
// goroutine may read it; nobody may write to it.
//
// Two rows may have one key in a map: two objects of one UID, or one name in two namespaces of a
// query that claims not to span several. Then the map has the first in key order.
func (t *Table) Value() reflect.Value {
	if t.form.keying == inOrder {
		return t.elems
	}
	switch {
	case !t.value.IsValid():
		t.value = t.buildMap()
	case len(t.patches) > 0:
		t.value = t.patchMap()
		t.patches = nil
	}
	return t.value
}

// patch is a change that turns the last delivered map into the next one.
type patch struct {
	old, new Object // nil: not shown before; not shown after
	word     words.Word
}
