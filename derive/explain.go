package derive

import "slices"

// Explanation is what a graph knows of one entry.
type Explanation struct {
	Node, Key string
	// Found is false if the node has no such entry, or if the graph has no such node.
	Found bool
	// Busy says that an Update is running: ask again.
	Busy bool
	// Err is why the entry is invalid, nil if it is valid.
	Err error
	// LookedUp is what the function looked up when it ran last. Because is what
	// made it run: the entry's input, or one of the look-ups; "it is new" at first. Ran is the
	// number of the Update in which it ran (see [Stats]). They are empty for an entry without a
	// function.
	LookedUp []string
	Because  string
	Ran      uint64
	// AskedBy are the entries that have looked this one up, at most 100 of them.
	AskedBy []string
}

// Explain returns what the graph knows of an entry: what it looked up, and why it ran last. The
// node is given by its name. The key is written with slashes between its parts, as namespace/name;
// it is empty for a value. Explain may be called from any goroutine. It looks at each key of the
// node.
func (g *Graph[S]) Explain(node, key string) Explanation {
	c := g.c
	none := Explanation{Node: node, Key: key}
	// An Update waits for those who are counted. Nobody is counted while one waits or runs, so
	// that it does not wait for ever.
	if c.updating.Load() {
		none.Busy = true
		return none
	}
	c.explaining.Add(1)
	defer c.explaining.Add(-1)
	if c.updating.Load() {
		none.Busy = true
		return none
	}
	if !c.unsound {
		for _, n := range c.nodes {
			h := n.head()
			if h.name != node || h.part {
				continue
			}
			if x, found := n.explain(key); found {
				x.Node, x.Key, x.Found = node, key, true
				return x
			}
		}
	}
	return none
}

// explained returns what is known of an entry. run finds the run that made it, if a function did.
// Nothing here searches a table, which would write to it: other goroutines explain meanwhile.
func (c *collection[K, V]) explained(key string, run func(*entry[K, V]) *runner) (x Explanation, found bool) {
	for _, e := range c.entries {
		if e == nil || e.cell == nil || keyText(e.cell.key) != key {
			continue
		}
		if e.cell.fault != nil {
			x.Err = e.cell.fault.err
		}
		if run != nil {
			x.explainRun(run(e))
		}
		x.AskedBy = c.c.askersOf(&e.question)
		return x, true
	}
	return x, false
}

func (x *Explanation) explainRun(r *runner) {
	for _, a := range r.asks {
		x.LookedUp = append(x.LookedUp, a.of.text())
	}
	x.Ran = uint64(r.ran)
	if x.Because = "it is new"; r.because != nil {
		x.Because = r.because.text()
	}
}

// rowNamer names the entry in a row.
type rowNamer interface{ rowText(row int32) string }

func (c *core) askersOf(q *question) (by []string) {
	for _, a := range q.askers {
		if by = append(by, c.nodes[a.node].(rowNamer).rowText(a.row)); len(by) == 100 {
			break
		}
	}
	slices.Sort(by)
	return by
}

func (m *mapped[K, V, W]) explain(key string) (Explanation, bool) {
	return m.explained(key, func(e *entry[K, W]) *runner { return m.runner(e.row) })
}

// rowText names an entry by its input: the function may have returned Skip.
func (m *mapped[K, V, W]) rowText(row int32) string {
	return m.name + " " + keyText(m.in.entries[row].cell.key)
}

func (v *value[T]) explain(key string) (Explanation, bool) {
	if key != "" || v.one.cell == nil {
		return Explanation{}, false
	}
	x, found := v.explained("", nil)
	if x.AskedBy = v.c.askersOf(&v.one.question); v.f != nil {
		x.explainRun(&v.one.runner)
	}
	return x, found
}

func (v *value[T]) rowText(int32) string { return v.name }

func (n *matched[K, V]) explain(string) (Explanation, bool) { return Explanation{}, false }
