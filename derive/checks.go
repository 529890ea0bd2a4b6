package derive

import "slices"

// The functions that say where an entry belongs are verified like those that make entries.

func (s *source[K, T]) checks() int { return len(s.last) }

// check runs the function of the keys for an element of the last slice.
func (s *source[K, T]) check(i int) *finding {
	v := s.last[i]
	if isNil(v) {
		return nil
	}
	run := func() (o outcome) {
		var k K
		o.err = s.called(func() error {
			k = s.key(v)
			return nil
		})
		o.val = k
		return o
	}
	kept := outcome{err: ErrNone}
	if s.aligned {
		kept = outcome{val: s.entries[s.table.sorted()[i]].cell.key}
	} else if o := run(); o.err == nil && s.find(o.val.(K)) != nil {
		kept = o
	}
	return compared(s.name, "", run, kept, func(a, b K) bool { return a == b })
}

func (n *flat[K, J, W]) checks() int { return len(n.entries) }

// check compares the value of an entry with the one that the last run has put. They are two values
// if they were equal then: a write to the one that is kept is seen here, and in no run.
func (n *flat[K, J, W]) check(row int) *finding {
	x := n.validIn(row)
	if x == nil {
		return nil
	}
	run := n.runs.find(x.key.From)
	for _, p := range run.cell.val {
		if p.key != x.key.Key {
			continue
		}
		same := false
		if err := n.called(func() error { same = n.equal(x.val, p.val); return nil }); err == nil && !same {
			return &finding{node: n.name, key: keyText(x.key), changed: true}
		}
	}
	return nil
}

func (n *groups[I, K, V]) checks() int { return len(n.in.entries) }

// check runs the function of an index for an entry.
func (n *groups[I, K, V]) check(row int) *finding {
	x := n.in.validIn(row)
	if x == nil {
		return nil
	}
	inOrder := func(is []I) []I {
		is = slices.SortedFunc(slices.Values(is), n.table.compare)
		return slices.Compact(is)
	}
	run := func() (o outcome) {
		var is []I
		o.err = n.called(func() error {
			is = n.of(x.key, x.val)
			return nil
		})
		o.val = inOrder(is)
		return o
	}
	return compared(n.name, keyText(x.key), run, outcome{inOrder(n.groupsNoted(int32(row))), n.failed[x.key]}, slices.Equal[[]I])
}

// groupsNoted returns the groups of the entry in a row.
func (n *groups[I, K, V]) groupsNoted(row int32) (is []I) {
	for _, group := range n.members.of(row) {
		is = append(is, n.entries[group].cell.key)
	}
	return is
}

func (n *matched[K, V]) checks() int { return len(n.posts) }

// posted is what a function of ByLabels or BySelector has returned.
type posted struct{ Scope, Labels, Selector string }

// check runs the function of the labels or the selector for an entry.
func (n *matched[K, V]) check(row int) *finding {
	x := n.in.validIn(row)
	if x == nil {
		return nil
	}
	written := func(p *post[match[K, V]]) any {
		if p == nil {
			return posted{}
		}
		return posted{p.scope, setText(p.set), p.text}
	}
	run := func() (o outcome) {
		var p *post[match[K, V]]
		o.err = n.called(func() error {
			p = n.postOf(x.key, x.val)
			return nil
		})
		o.val = written(p)
		return o
	}
	return compared(n.name, keyText(x.key), run, outcome{written(n.posts[row]), n.failed[x.key]}, func(a, b posted) bool { return a == b })
}

// validIn returns the cell in a row, if it is there and valid.
func (c *collection[K, V]) validIn(row int) *cell[K, V] {
	if row >= len(c.entries) || c.entries[row] == nil {
		return nil
	}
	if x := c.entries[row].cell; x != nil && x.fault == nil {
		return x
	}
	return nil
}
