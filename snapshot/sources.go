package snapshot

import "unsafe"

// Where the elements are the objects as the stream holds them, a table needs no sources besides: that is two words for each
// object and reader.

// own reports whether a row's value is the very object that it is made from.
func (r *Row) own() bool {
	return any(r.Source) == r.Value
}

func allOwn(edits []edit) bool {
	for _, e := range edits {
		if e.row != nil && !e.row.own() {
			return false
		}
	}
	return true
}

// part starts to hold sources apart. It is for good: a stream delivers all of its objects in one form, or many in another.
func (t *Table) part() {
	t.sources = make([]Object, t.Len())
	for i := range t.sources {
		t.sources[i] = t.source(i)
	}
	t.apart = true
}

// source returns the object of the i-th shown row.
func (t *Table) source(i int) Object {
	if t.apart {
		return t.sources[i]
	}
	return t.form.object(words(t.elems)[i])
}

// find is seek among the shown rows.
func (t *Table) find(from int, k Key) (at int, found bool) {
	if t.apart {
		return seek(t.sources, from, k, compareObject)
	}
	return seek(words(t.elems), from, k, func(word unsafe.Pointer, k Key) int {
		return compareObject(t.form.object(word), k)
	})
}
