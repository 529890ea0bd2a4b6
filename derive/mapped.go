package derive

import "slices"

// Map makes one entry of each entry of a collection, under the same key. The function gets the key
// and the value, and looks up whatever else it needs through the Reader. It runs when the entry is
// new, when its value changes, and when an answer to one of its look-ups changes.
//
// An error of the function, and a panic, make the entry invalid; [Skip] makes none. An entry whose
// input is invalid is invalid, and the function does not run for it.
//
// The function is pure: its result follows from its arguments and its look-ups alone. It keeps no
// Reader, starts no goroutine that outlives the call, and writes to nothing that it was given.
// [Graph.Verify] finds a function that does not follow these rules.
func Map[K comparable, V, W any](in Collection[K, V], name string, f func(*Reader, K, V) (W, error), o ...Option[W]) Collection[K, W] {
	m := &mapped[K, V, W]{f: f}
	m.equal = equalOf(o)
	declareOn(in, m, "Map", name)
	if f == nil {
		m.c.wrong("%q has no function", name)
	}
	m.over(in)
	return Collection[K, W]{&m.collection}
}

// declareOn declares a node that reads a collection.
func declareOn[K comparable, V any](in Collection[K, V], n node, kind, name string) {
	if in.c == nil {
		misuse("%q is declared on a collection that no graph has made", name)
	}
	in.c.c.declare(n, kind, name)
}

// mapped is the node behind [Map].
type mapped[K comparable, V, W any] struct {
	collection[K, W]
	in    *collection[K, V]
	f     func(*Reader, K, V) (W, error)
	runs  []*made[K, W] // by row
	dirty []int32
	// quiet: the function is not the program's, and its runs do not count.
	quiet bool
	// prints has a hash of each value when it was returned, in a graph that is verified or
	// audited.
	prints map[int32]uint64
}

// made is an entry that a function makes.
type made[K comparable, W any] struct {
	entry[K, W]
	runner
}

func (m *mapped[K, V, W]) over(in Collection[K, V]) {
	m.in = in.c
	m.table = in.c.table
	m.reset()
}

func (m *mapped[K, V, W]) reset() {
	m.collection.reset()
	m.runs, m.dirty, m.prints = nil, nil, nil
}

func (m *mapped[K, V, W]) runner(row int32) *runner { return &m.runs[row].runner }

func (m *mapped[K, V, W]) queue(row int32) { m.dirty = append(m.dirty, row) }

func (m *mapped[K, V, W]) evaluate() {
	first := len(m.entries) == 0
	if more := len(m.in.changed); first {
		m.entries, m.runs = slices.Grow(m.entries, more), slices.Grow(m.runs, more)
		m.changed, m.dirty = slices.Grow(m.changed, more), slices.Grow(m.dirty, more)
	}
	var entries block[made[K, W]]
	for i, ch := range m.in.changed {
		row := ch.e.row
		if ch.e.cell == nil {
			m.remove(row)
			continue
		}
		if int(row) >= len(m.runs) || m.runs[row] == nil {
			coming := 1
			if first {
				coming = len(m.in.changed) - i
			}
			e := entries.takeElement(coming)
			m.place(row, &e.entry)
			m.runs = reaching(m.runs, row, nil)
			m.runs[row] = e
			mark(m, row, nil)
			continue
		}
		mark(m, row, ch.e)
	}
	// In the order of rows, which have their memory side by side if they came at once.
	slices.Sort(m.dirty)
	for i, row := range m.dirty {
		if e := m.runs[row]; e != nil {
			m.c.coming = len(m.dirty) - i
			m.runEntry(row, e)
		}
	}
	m.dirty = emptied(m.dirty)
	m.c.endBlocks()
	m.cellBlock = nil
}

// remove takes out the entry of an input that is gone.
func (m *mapped[K, V, W]) remove(row int32) {
	e := m.runs[row]
	m.c.unlink(&e.runner, 0)
	e.because = nil
	if e.cell != nil {
		m.put(&e.entry, nil)
	}
	m.runs[row], m.entries[row] = nil, nil
	delete(m.prints, row)
}

func (m *mapped[K, V, W]) runEntry(row int32, e *made[K, W]) {
	e.dirty = false
	in := m.in.entries[row].cell
	var out W
	var same bool
	err := m.run(row, &e.runner, func(r *Reader) (err error) {
		if in.fault != nil {
			return m.in.errorOf(in)
		}
		if out, err = m.f(r, in.key, in.val); err == nil {
			same = m.collection.same(&e.entry, out)
		}
		return err
	})
	if m.c.printing() && !(err == nil && same) {
		if m.prints == nil {
			m.prints = make(map[int32]uint64)
		}
		m.prints[row] = fingerprint(out)
	}
	before := m.counts
	switch another := m.result(&e.entry, in.key, out, err, same); {
	case in.fault != nil, m.quiet:
		m.counts = before // no function of the program has run
	case !another:
		m.counts.wasted(&e.runner)
	}
}
