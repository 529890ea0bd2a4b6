package snapshot

import "unsafe"

// Where each element is its own source object, a table needs no separate sources. That saves two
// words for each object and reader.

// own reports whether a row's value is its source object itself.
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

// part begins to hold sources separately. It is never undone: a stream delivers all of its
// objects in one form, or many in another.
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

// find searches the shown rows for a key, as seek does.
func (t *Table) find(from int, k Key) (at int, found bool) {
	if t.apart {
		return seek(t.sources, from, k, compareObject)
	}
	return seek(words(t.elems), from, k, func(word unsafe.Pointer, k Key) int {
		return compareObject(t.form.object(word), k)
	})
}
