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
	m := &mapped{}
	equal := equalOf(o)
	m.equal = equalAny(equal)
	m.f = func(r *Reader, in, was cell) (cell, error) {
		x := in.(*cellOf[K, V])
		out, err := f(r, x.key, x.val)
		if err != nil {
			return nil, err
		}
		return another(m.c, was, x.key, out, equal), nil
	}
	m.over(in.c, "Map", name, f != nil)
	return Collection[K, W]{&m.collection}
}

// declareOn declares a node that reads a collection, and that has a function.
func declareOn(in *collection, n node, kind, name string, function bool) {
	if in == nil {
		misuse("%q is declared on a collection that no graph has made", name)
	}
	in.c.declare(n, kind, name)
	if !function {
		in.c.wrong("%q has no function", name)
	}
}

// runsOf are the runs of a node whose function runs for each entry of a collection.
type runsOf struct {
	in    *collection
	runs  []*runner // by the rows of the collection
	dirty []int32
}

func (n *runsOf) runner(row int32) *runner { return n.runs[row] }

func (n *runsOf) queue(row int32) { n.dirty = append(n.dirty, row) }

// rowKey names a run by its input: the function may have returned Skip.
func (n *runsOf) rowKey(row int32) string { return keyText(n.in.entries[row].cell.anyKey()) }

func (n *runsOf) forgetRuns() { n.runs, n.dirty = nil, nil }

// evaluateRuns takes over the changes of the collection, and runs the function where it has to.
// add makes a run: so many are to be made at once. remove takes out what the run of an input has
// made that is gone.
func (n *runsOf) evaluateRuns(c *core, of runners, add func(row int32, coming int) *runner, remove func(row int32, input cell), run func(row int32, r *runner)) {
	coming, first := n.in.changeCount(), len(n.runs) == 0
	if first {
		n.runs = slices.Grow(n.runs, coming)
		n.dirty = slices.Grow(n.dirty, coming)
	}
	for ch := range n.in.changes() {
		row := ch.e.row
		switch {
		case ch.e.cell == nil:
			c.unlink(n.runs[row], 0)
			n.runs[row].because = nil
			remove(row, ch.old)
			n.runs[row] = nil
		case int(row) >= len(n.runs) || n.runs[row] == nil:
			n.runs = reaching(n.runs, row, nil)
			some := coming
			if !first {
				some = 1
			}
			n.runs[row] = add(row, some)
			mark(of, row, nil)
		default:
			mark(of, row, ch.e)
		}
		coming--
	}
	// In the order of rows, which have their memory side by side if they came at once.
	slices.Sort(n.dirty)
	for i, row := range n.dirty {
		if r := n.runs[row]; r != nil {
			c.coming = len(n.dirty) - i
			r.dirty = false
			run(row, r)
		}
	}
	n.dirty = emptied(n.dirty)
	c.endBlocks()
}

// mapped is the node behind [Map].
type mapped struct {
	collection
	runsOf
	// f runs the function for a cell. It returns nil if the result is what the entry had.
	f func(r *Reader, in, was cell) (cell, error)
	// quiet: the function is not the program's, and its runs do not count.
	quiet bool
}

// made is an entry that a function makes.
type made struct {
	entry
	runner
}

// over declares the node.
func (m *mapped) over(in *collection, kind, name string, function bool) {
	declareOn(in, m, kind, name, function)
	m.in, m.table, m.printed.on = in, in.table, true
	m.reset()
}

func (m *mapped) reset() {
	m.collection.reset()
	m.forgetRuns()
}

func (m *mapped) evaluate() {
	if len(m.entries) == 0 {
		m.entries = slices.Grow(m.entries, m.in.changeCount())
	}
	var block []made
	add := func(row int32, coming int) *runner {
		e := takeElement(&block, coming)
		m.place(row, &e.entry)
		return &e.runner
	}
	m.evaluateRuns(m.c, m, add, m.remove, m.runEntry)
}

// remove takes out the entry of an input that is gone.
func (m *mapped) remove(row int32, _ cell) {
	if e := m.entries[row]; e.cell != nil {
		m.put(e, nil)
	}
	m.entries[row] = nil
}

func (m *mapped) runEntry(row int32, run *runner) {
	in, e := m.in.entries[row].cell, m.entries[row]
	var next cell
	err := m.run(row, run, func(r *Reader) (err error) {
		next, err = m.resultFor(r, in, e.cell)
		return err
	})
	another := m.result(e, in, next, err)
	if faultOf(in) != nil || m.quiet {
		return // no function of the program has run
	}
	m.countRun(run, another)
}

// resultFor returns what the entry of an input has to be, nil if it is that already.
func (m *mapped) resultFor(r *Reader, in, was cell) (cell, error) {
	if faultOf(in) != nil {
		return nil, m.in.errorOf(in)
	}
	return m.f(r, in, was)
}

func (m *mapped) checks() int { return len(m.runs) }

func (m *mapped) check(row int) *finding {
	e := m.entries[row]
	if e == nil {
		return nil
	}
	in := m.in.entries[row].cell
	return m.checkEntry(e, in.anyKey(), func(r *Reader) (cell, error) { return m.resultFor(r, in, nil) })
}
