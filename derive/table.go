package derive

import (
	"reflect"
	"slices"
)

// table gives each key of a collection a row: a small number that no other key has meanwhile. A
// [Map] has the table of its input, so both have a key in the same row, and a change of one finds
// the other without a search. The row of a key that is gone is given to another key in the next
// Update at the earliest: everything that reads the collection has seen the departure by then.
type table[K comparable] struct {
	// rows finds the row of a key. Nil: the order finds it.
	rows    map[K]int32
	size    int32   // rows that were ever given
	free    []int32 // to be given
	dropped []int32 // in this Update
	left    []int32 // rows that are in order, and whose keys are gone
	// order has the rows in the order of their keys. Nil: nobody has asked for it yet, and rows is
	// not nil.
	order   []int32
	added   []int32 // since the order was made
	at      int     // where the last search has ended, in order
	far     int     // searches that have not ended near the one before
	keyAt   func(row int32) K
	compare func(a, b K) int
}

// rows is a table whose type of keys does not matter.
type rows interface {
	sorted() []int32
	grow(keys int)
	drop(row int32)
	settle()
	reset()
	compareKeys(a, b any) int
}

func newTable[K comparable](compare func(a, b K) int, keyAt func(int32) K) *table[K] {
	return &table[K]{order: []int32{}, compare: compare, keyAt: keyAt}
}

// reset takes all keys out.
func (t *table[K]) reset() { *t = *newTable(t.compare, t.keyAt) }

// grow makes room for keys that come in order.
func (t *table[K]) grow(keys int) { t.order = slices.Grow(t.order, keys) }

// giveFirstRows gives the first rows to keys that are in order.
func (t *table[K]) giveFirstRows(keys int) {
	t.size = int32(keys)
	t.order = make([]int32, keys)
	for i := range t.order {
		t.order[i] = int32(i)
	}
}

// row finds the row of a key. Most of those who search go through keys in order themselves. Then
// the key is near the last one, and needs no map. A map is made after some searches elsewhere: one
// for eight keys, so that it costs a search no more than they do.
func (t *table[K]) row(k K) (row int32, found bool) {
	if t.rows == nil && len(t.added)+len(t.left) > 0 {
		t.index()
		t.order, t.added, t.left = nil, nil, nil
	}
	if t.rows != nil {
		row, found = t.rows[k]
		return row, found
	}
	if len(t.order) == 0 {
		return 0, false
	}
	if next := t.at + 1; next < len(t.order) && t.keyAt(t.order[next]) == k {
		t.at = next
		return t.order[next], true
	}
	at, found, near := t.near(k)
	if !near {
		if t.far++; 8*t.far > len(t.order)+64 {
			t.index()
			return t.row(k)
		}
		at, found = slices.BinarySearchFunc(t.order, k, func(row int32, k K) int { return t.compare(t.keyAt(row), k) })
	}
	if !found {
		t.at = max(at-1, 0)
		return 0, false
	}
	t.at = at
	return t.order[at], true
}

// near searches for a key where the last search has ended, and a few keys behind that.
func (t *table[K]) near(k K) (at int, found, near bool) {
	for at = t.at; at < min(t.at+4, len(t.order)); at++ {
		if c := t.compare(t.keyAt(t.order[at]), k); c >= 0 {
			return at, c == 0, c == 0 || at > t.at
		}
	}
	return at, false, at > t.at && at == len(t.order)
}

// index makes the map.
func (t *table[K]) index() {
	if len(t.left) > 0 {
		t.sorted()
	}
	t.rows = make(map[K]int32, len(t.order)+len(t.added))
	for _, list := range [][]int32{t.order, t.added} {
		for _, row := range list {
			t.rows[t.keyAt(row)] = row
		}
	}
}

// add gives a row to a new key.
func (t *table[K]) add(k K) int32 {
	row := t.size
	if n := len(t.free); n > 0 {
		row, t.free = t.free[n-1], t.free[:n-1]
	} else {
		t.size++
	}
	if t.rows != nil {
		t.rows[k] = row
	}
	if n := len(t.order); t.order != nil && len(t.added)+len(t.left) == 0 && (n == 0 || t.compare(t.keyAt(t.order[n-1]), k) < 0) {
		t.order, t.at = append(t.order, row), n
	} else if t.order != nil {
		t.added = append(t.added, row)
	}
	return row
}

// drop takes the key of a row out.
func (t *table[K]) drop(row int32) {
	if t.rows != nil {
		delete(t.rows, t.keyAt(row))
	}
	t.dropped = append(t.dropped, row)
	if t.order != nil {
		t.left = append(t.left, row)
	}
}

// settle makes the rows of the last Update's departures free.
func (t *table[K]) settle() {
	if len(t.dropped) == 0 {
		return
	}
	if len(t.left) > 0 {
		t.sorted()
	}
	t.free = append(t.free, t.dropped...)
	t.dropped = emptied(t.dropped)
}

// sorted returns the rows in the order of their keys. It moves four bytes a row if there are new
// or departed ones, else it costs nothing.
func (t *table[K]) sorted() []int32 {
	if t.order == nil {
		t.order = make([]int32, 0, len(t.rows))
		for _, row := range t.rows {
			t.order = append(t.order, row)
		}
		t.sort(t.order)
		t.added = emptied(t.added)
		return t.order
	}
	if n := len(t.left); n > 0 {
		slices.Sort(t.left)
		left := func(row int32) bool { _, is := slices.BinarySearch(t.left, row); return is }
		if n == 1 {
			left = func(row int32) bool { return row == t.left[0] }
		}
		t.order, t.added = slices.DeleteFunc(t.order, left), slices.DeleteFunc(t.added, left)
		t.left = emptied(t.left)
	}
	if len(t.added) > 0 {
		t.sort(t.added)
		t.order = merged(t.order, t.added, func(a, b int32) int { return t.compare(t.keyAt(a), t.keyAt(b)) })
		t.added = emptied(t.added)
	}
	return t.order
}

// arranged sets the order: the caller knows it.
func (t *table[K]) arranged(order []int32) {
	t.order, t.added, t.left = order, emptied(t.added), emptied(t.left)
}

func (t *table[K]) compareKeys(a, b any) int { return t.compare(a.(K), b.(K)) }

func (t *table[K]) sort(rows []int32) {
	slices.SortFunc(rows, func(a, b int32) int { return t.compare(t.keyAt(a), t.keyAt(b)) })
}

// merged returns two sorted lists as one.
func merged[T any](a, b []T, compare func(a, b T) int) []T {
	all := make([]T, 0, len(a)+len(b))
	for _, x := range b {
		i, _ := slices.BinarySearchFunc(a, x, compare)
		all = append(append(all, a[:i]...), x)
		a = a[i:]
	}
	return append(all, a...)
}

// reaching returns a list that has an element at a row; those that it did not have are none.
func reaching[T any](list []T, row int32, none T) []T {
	for int(row) >= len(list) {
		list = append(list, none)
	}
	return list
}

// blockBytes is what fits into 4 KB with the eight bytes that the allocator puts before.
const blockBytes = 4096 - 8

// blockLength returns how many elements of a size an allocation has, if so many are to come.
func blockLength(coming int, size uintptr) int {
	return max(1, min(coming, blockBytes/max(1, int(size))))
}

// takeElement returns an element of a block. So many are still to come, this one included. Elements
// that come at once are in allocations of up to 4 KB. The memory of all of one stays as long as one
// of them does.
func takeElement[T any](block *[]T, coming int) *T {
	if len(*block) == 0 {
		if coming < 2 {
			return new(T)
		}
		*block = make([]T, blockLength(coming, reflect.TypeOf(block).Elem().Elem().Size()))
	}
	x := &(*block)[0]
	*block = (*block)[1:]
	return x
}

// takeList returns an empty list with room for n elements. Short lists that come at once are in
// one block.
func takeList[T any](block *[]T, n, coming int) []T {
	if n > 8 || coming < 2 {
		return make([]T, 0, n)
	}
	if len(*block) < n {
		some := blockLength(n*coming, reflect.TypeOf(block).Elem().Elem().Size())
		*block = make([]T, max(n, some/n*n))
	}
	list := (*block)[:0:n]
	*block = (*block)[n:]
	return list
}

// emptied returns a list without elements, which holds nothing. It keeps the memory of a short
// list.
func emptied[T any](list []T) []T {
	if cap(list) > 1024 {
		return nil
	}
	clear(list)
	return list[:0]
}
