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

// runsOf are the runs of a node whose function runs for each entry of a collection. R is what the
// graph keeps of a run.
type runsOf[K comparable, V, R any, P run[R]] struct {
	in    *collection[K, V]
	runs  []P // by the rows of the collection
	dirty []int32
}

// run is what the graph keeps of a run of type R.
type run[R any] interface {
	*R
	self() *runner
}

func (r *runner) self() *runner { return r }

func (n *runsOf[K, V, R, P]) runner(row int32) *runner { return n.runs[row].self() }

func (n *runsOf[K, V, R, P]) queue(row int32) { n.dirty = append(n.dirty, row) }

// rowKey names a run by its input: the function may have returned Skip.
func (n *runsOf[K, V, R, P]) rowKey(row int32) string { return keyText(n.in.entries[row].cell.key) }

func (n *runsOf[K, V, R, P]) forgetRuns() { n.runs, n.dirty = nil, nil }

// evaluateRuns takes over the changes of the collection, and runs the function where it has to.
// add is called for a new run, and remove for one whose input is gone.
func (n *runsOf[K, V, R, P]) evaluateRuns(c *core, of runners, add, remove, run func(row int32, r P)) {
	coming, first := n.in.changeCount(), len(n.runs) == 0
	if first {
		n.runs = slices.Grow(n.runs, coming)
		n.dirty = slices.Grow(n.dirty, coming)
	}
	var fresh block[R]
	for ch := range n.in.changes() {
		row := ch.e.row
		switch {
		case ch.e.cell == nil:
			c.unlink(n.runner(row), 0)
			n.runner(row).because = nil
			remove(row, n.runs[row])
			n.runs[row] = nil
		case int(row) >= len(n.runs) || n.runs[row] == nil:
			n.runs = reaching(n.runs, row, nil)
			some := coming
			if !first {
				some = 1
			}
			n.runs[row] = fresh.takeElement(some)
			add(row, n.runs[row])
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
			r.self().dirty = false
			run(row, r)
		}
	}
	n.dirty = emptied(n.dirty)
	c.endBlocks()
}

// mapped is the node behind [Map].
type mapped[K comparable, V, W any] struct {
	collection[K, W]
	runsOf[K, V, made[K, W], *made[K, W]]
	f func(*Reader, K, V) (W, error)
	// quiet: the function is not the program's, and its runs do not count.
	quiet bool
}

// made is an entry that a function makes.
type made[K comparable, W any] struct {
	entry[K, W]
	runner
}

func (m *mapped[K, V, W]) over(in Collection[K, V]) {
	m.in = in.c
	m.table, m.printed = in.c.table, true
	m.reset()
}

func (m *mapped[K, V, W]) reset() {
	m.collection.reset()
	m.forgetRuns()
}

func (m *mapped[K, V, W]) evaluate() {
	if len(m.entries) == 0 {
		m.entries = slices.Grow(m.entries, m.in.changeCount())
	}
	m.evaluateRuns(m.c, m, func(row int32, e *made[K, W]) { m.place(row, &e.entry) }, m.remove, m.runEntry)
	m.cellBlock = nil
}

// remove takes out the entry of an input that is gone.
func (m *mapped[K, V, W]) remove(row int32, e *made[K, W]) {
	if e.cell != nil {
		m.put(&e.entry, nil)
	}
	m.entries[row] = nil
}

func (m *mapped[K, V, W]) runEntry(row int32, e *made[K, W]) {
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
	another := m.result(&e.entry, in.key, out, err, same)
	if in.fault != nil || m.quiet {
		return // no function of the program has run
	}
	m.countRun(&e.runner, another)
}

func (m *mapped[K, V, W]) checks() int { return len(m.runs) }

func (m *mapped[K, V, W]) check(row int) *finding {
	e := m.runs[row]
	if e == nil {
		return nil
	}
	if f := m.changedAfter(&e.entry); f != nil {
		return f
	}
	in := m.in.entries[row].cell
	return compared(m.name, keyText(in.key), func() (o outcome) {
		var out W
		o.err = m.rerun(func(r *Reader) (err error) {
			if in.fault != nil {
				return m.in.errorOf(in)
			}
			out, err = m.f(r, in.key, in.val)
			return err
		})
		o.val = out
		return o
	}, keptOf(e.cell), m.equal)
}
