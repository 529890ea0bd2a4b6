package tables

import (
	"fmt"
	"reflect"

	"github.com/kates-go/kates/internal/base/words"
)

// inWords reports whether the elements are handled as words.
func (f *Form) inWords() bool {
	return words.OK && (f.elem.Kind() == reflect.Pointer || f.elem.Kind() == reflect.Map)
}

// word returns a row's value as a word. It panics if the value is not of the elements' type.
func (f *Form) word(r *Row) words.Word {
	v := reflect.ValueOf(r.Value)
	if !v.Type().AssignableTo(f.elem) {
		panic(fmt.Sprintf("snapshot: a value of type %v for a field of %v", v.Type(), f.elem))
	}
	return words.Of(v)
}

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

// holdSources begins to hold sources separately. It is never undone: a stream delivers all of its
// objects in one form, or many in another.
func (t *Table) holdSources() {
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
	return words.As(t.form.none, words.Slice(t.elems)[i])
}

// find searches the shown rows for a key, as seek does.
func (t *Table) find(from int, k Key) (at int, found bool) {
	if t.apart {
		return seek(t.sources, from, k, compareObject)
	}
	return seek(words.Slice(t.elems), from, k, func(word words.Word, k Key) int {
		return compareObject(words.As(t.form.none, word), k)
	})
}
