package tables

import (
	"reflect"
	"slices"

	"github.com/kates-go/kates/internal/base/words"
	"github.com/kates-go/kates/internal/object"
)

// Apply makes the changes. They may be in any order, one for each key; Apply neither keeps nor
// modifies them. It returns the visible changes in key order, and whether the result of Invalid
// changed, or an excluded object that counts.
//
// There is no diff for a key that is shown neither before nor after, nor for a row with the same
// source and the same value as before. Values must come from Convert for this table's query.
func (t *Table) Apply(changes []Change) (diffs []Diff, leftOutChanged bool) {
	if len(changes) == 0 {
		return nil, false
	}
	p := plan{table: t, size: len(changes)}
	for _, c := range inKeyOrder(changes) {
		p.add(c)
	}
	// New elems come first: if a value is of a wrong type, this panics while the table is still
	// as it was.
	if len(p.shown) > 0 {
		t.unshare()
		apart := t.apart || !allOwn(p.shown)
		if apart && !t.apart {
			t.holdSources()
		}
		t.elems = t.spliceElems(p.shown)
		if apart {
			t.sources = splice(t.sources, p.shown, func(r *Row) Object { return r.Source })
		}
		t.outdate(&p)
	}
	if p.invalidChanged {
		t.unshare()
	}
	if len(p.leftOut) > 0 {
		t.leftOut = splice(t.leftOut, p.leftOut, func(r *Row) Row {
			return Row{Source: r.Source, Err: r.Err, Excluded: r.Excluded, Counts: r.Counts}
		})
	}
	return p.diffs, p.invalidChanged || p.countsChanged
}

// inKeyOrder returns the changes sorted by key. It returns the same slice if that is sorted.
func inKeyOrder(changes []Change) []Change {
	byKey := func(a, b Change) int { return object.Compare(a.Key, b.Key) }
	if slices.IsSortedFunc(changes, byKey) {
		return changes
	}
	sorted := slices.Clone(changes)
	slices.SortFunc(sorted, byKey)
	return sorted
}

// plan collects what a batch of changes, in key order, does to a table's two sequences.
type plan struct {
	table           *Table
	size            int // the number of changes in the batch
	shownAt, leftAt int // where the next searches begin
	shown, leftOut  []edit
	diffs           []Diff
	invalidChanged  bool
	countsChanged   bool // an excluded object that counts has changed
}

// add plans one change.
func (p *plan) add(c Change) {
	var isShown, isLeftOut bool
	p.shownAt, isShown = p.table.find(p.shownAt, c.Key)
	p.leftAt, isLeftOut = seek(p.table.leftOut, p.leftAt, c.Key, compareRow)

	shown := edit{at: p.shownAt, occupied: isShown}
	leftOut := edit{at: p.leftAt, occupied: isLeftOut}
	if c.Row != nil && c.Row.Shown() {
		shown.row = c.Row
	} else {
		leftOut.row = c.Row
	}
	p.addShown(c.Key, shown)
	p.addLeftOut(leftOut)
}

func (p *plan) addShown(k Key, e edit) {
	if !e.occupied && e.row == nil {
		return
	}
	diff := Diff{Key: k}
	if e.occupied {
		diff.Old = p.table.source(e.at)
	}
	if e.row != nil {
		diff.New = e.row.Source
	}
	if e.occupied && e.row != nil && diff.Old == diff.New && sameElement(p.table.elems.Index(e.at), e.row.Value) {
		return
	}
	if p.shown == nil { // most batches change visible rows only
		p.shown, p.diffs = make([]edit, 0, p.size), make([]Diff, 0, p.size)
	}
	p.shown = append(p.shown, e)
	p.diffs = append(p.diffs, diff)
}

func (p *plan) addLeftOut(e edit) {
	var before, after Row
	if e.occupied {
		before = p.table.leftOut[e.at]
	}
	if e.row != nil {
		after = *e.row
	}
	wasInvalid, isInvalid := before.Err != nil, after.Err != nil
	if wasInvalid != isInvalid || isInvalid && !sameFault(before, after) {
		p.invalidChanged = true
	}
	if !sameLeftOut(before, after) { // a missing row has no source
		p.leftOut = append(p.leftOut, e)
		p.countsChanged = p.countsChanged || before.Counts || after.Counts
	}
}

// sameElement reports whether a value equals the element: the same pointer or map, or an equal
// struct.
func sameElement(elem reflect.Value, v Value) bool {
	if k := elem.Kind(); k == reflect.Pointer || k == reflect.Map {
		return elem.UnsafePointer() == reflect.ValueOf(v).UnsafePointer()
	}
	return reflect.DeepEqual(elem.Interface(), v)
}

// spliceElems returns elems with the edits made. For a slice the result is a fresh one (cap =
// len), whether it was copied ahead or not.
func (t *Table) spliceElems(edits []edit) reflect.Value {
	old := t.elems
	inserted, deleted := count(edits)
	n := old.Len() + inserted - deleted
	if t.form.inWords() && t.form.keying != inOrder {
		return t.spliceOwn(edits)
	}
	if elems, ok := t.spliceAhead(edits, n); ok {
		return elems
	}
	fresh := reflect.MakeSlice(old.Type(), n, n)
	if t.form.inWords() {
		spliceInto(words.Slice(fresh), words.Slice(old), edits, t.form.word)
		return fresh
	}
	if inserted == 0 && deleted == 0 {
		reflect.Copy(fresh, old)
		for _, e := range edits {
			fresh.Index(e.at).Set(reflect.ValueOf(e.row.Value))
		}
		return fresh
	}
	from, to := 0, 0
	for _, e := range edits {
		to += copyRun(fresh, to, old, from, e.at)
		from = e.at
		if e.occupied {
			from++
		}
		if e.row != nil {
			fresh.Index(to).Set(reflect.ValueOf(e.row.Value))
			to++
		}
	}
	copyRun(fresh, to, old, from, old.Len())
	return fresh
}

// spliceInto copies old to fresh and makes the edits on the way. fresh has the right length.
func spliceInto[S any](fresh, old []S, edits []edit, of func(*Row) S) {
	from, to := 0, 0
	for _, e := range edits {
		to += copy(fresh[to:], old[from:e.at])
		from = e.at
		if e.occupied {
			from++
		}
		if e.row != nil {
			fresh[to] = of(e.row)
			to++
		}
	}
	copy(fresh[to:], old[from:])
}

// copyRun copies src[from:until] to dst[at:] and returns the number of elements.
func copyRun(dst reflect.Value, at int, src reflect.Value, from, until int) int {
	n := until - from
	const worthSlicing = 8 // reflect allocates two slice headers
	if n >= worthSlicing {
		return reflect.Copy(dst.Slice(at, at+n), src.Slice(from, until))
	}
	for i := range n {
		dst.Index(at + i).Set(src.Index(from + i))
	}
	return n
}
