package derive

import "slices"

// FlatMap makes any number of entries of each entry of a collection: the function calls put with a
// key and a value for each. An entry's key is [From]: the key of the input, and the key that put
// got. A key that is put twice in one run makes that entry invalid.
//
// If the function fails, nothing that it has put counts. The collection has one invalid entry for
// that input, whose Key is zero. A look-up of any absent key of that input returns the same error.
// All else is as with [Map].
func FlatMap[K, J comparable, V, W any](in Collection[K, V], name string, f func(r *Reader, k K, v V, put func(J, W)) error, o ...Option[W]) Collection[From[K, J], W] {
	equal := equalOf(o)
	runs := &mapped[K, V, []pair[J, W]]{}
	runs.part = true
	runs.equal = func(a, b []pair[J, W]) bool { return false }
	runs.alike = func(a, b []pair[J, W]) bool { return samePairs(a, b, equal) }
	declareOn(in, runs, "FlatMap", name)
	if f == nil {
		runs.c.wrong("%q has no function", name)
	}
	runs.over(in)
	flat := &flat[K, J, W]{runs: &runs.collection}
	flat.equal = equal
	runs.f = func(r *Reader, k K, v V) ([]pair[J, W], error) {
		return collected(flat, r, k, func(put func(J, W)) error { return f(r, k, v, put) })
	}
	runs.c.declare(flat, "FlatMap", name)
	compare, err := fromOrder[K, J](in.c.table.compare)
	flat.ownBy(runs.c, compare, err)
	flat.reset()
	flat.whyAbsent = flat.reasonFor
	return Collection[From[K, J], W]{&flat.collection}
}

// pair is what put got.
type pair[J comparable, W any] struct {
	key   J
	val   W
	twice bool
}

// samePairs tells whether two runs have put the same, in any order.
func samePairs[J comparable, W any](a, b []pair[J, W], equal func(a, b W) bool) bool {
	at := make(map[J]pair[J, W], len(a))
	for _, p := range a {
		at[p.key] = p
	}
	return len(a) == len(b) && !slices.ContainsFunc(b, func(q pair[J, W]) bool {
		p, there := at[q.key]
		return !there || p.twice != q.twice || !p.twice && !equal(p.val, q.val)
	})
}

// collected runs a function that puts, and returns what it has put.
func collected[K, J comparable, W any](n *flat[K, J, W], r *Reader, k K, f func(put func(J, W)) error) ([]pair[J, W], error) {
	var all []pair[J, W]
	at := map[J]int(nil)
	ended := false
	defer func() { ended = true }()
	err := f(func(j J, w W) {
		if ended {
			misuse("%q: put is called after its function has returned", n.name)
		}
		if i, there := position(all, at, j); there {
			all[i].twice = true
			return
		}
		if len(all) == 8 {
			at = make(map[J]int)
			for i := range all {
				at[all[i].key] = i
			}
		}
		if at != nil {
			at[j] = len(all)
		}
		all = append(all, pair[J, W]{key: j, val: w})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// position finds a key: few keys by looking at each, many by a map.
func position[J comparable, W any](all []pair[J, W], at map[J]int, j J) (int, bool) {
	if at != nil {
		i, there := at[j]
		return i, there
	}
	for i := range all {
		if all[i].key == j {
			return i, true
		}
	}
	return 0, false
}

// flat is the node behind [FlatMap]: it has the entries that the functions of runs have put.
type flat[K, J comparable, W any] struct {
	collection[From[K, J], W]
	runs *collection[K, []pair[J, W]]
	// reasons are the questions of those who have looked up an absent key.
	reasons map[K]*reason[K]
}

// reason is the question whether the function has failed for an input. Its answer is another one
// when it fails, when it fails otherwise, and when it fails no more.
type reason[K comparable] struct {
	question
	key K
	of  *header
	all map[K]*reason[K]
}

func (q *reason[K]) orphaned() { delete(q.all, q.key) }

func (q *reason[K]) text() string { return named(q.of, q.key) + " (whether it fails)" }

func (n *flat[K, J, W]) reset() {
	n.collection.reset()
	n.reasons = make(map[K]*reason[K])
}

// reasonFor returns the error of an absent key, which is that of the run of its input.
func (n *flat[K, J, W]) reasonFor(r *Reader, k From[K, J]) error {
	if r.record {
		q := n.reasons[k.From]
		if q == nil {
			q = &reason[K]{key: k.From, of: &n.header, all: n.reasons}
			n.reasons[k.From] = q
		}
		r.recordQuestion(q)
	}
	if e := n.runs.find(k.From); e != nil && e.cell.fault != nil {
		return &EntryError{Node: n.name, Key: keyText(k), Err: e.cell.fault.err}
	}
	return nil
}

func (n *flat[K, J, W]) explain(key string) (Explanation, bool) {
	return n.explained(key, func(e *entry[From[K, J], W]) *runner {
		row := slices.IndexFunc(n.runs.entries, func(run *entry[K, []pair[J, W]]) bool {
			return run != nil && run.cell != nil && run.cell.key == e.cell.key.From
		})
		return n.c.nodes[n.runs.index].(runners).runner(int32(row))
	})
}

func (n *flat[K, J, W]) evaluate() {
	for _, ch := range n.runs.changed {
		before := len(n.changed)
		n.replace(ch.old, ch.e.cell)
		if len(n.changed) == before && ch.e.cell != nil {
			n.counts.wasted(n.c.nodes[n.runs.index].(runners).runner(ch.e.row))
		}
		if q := n.reasons[ch.keyOf()]; q != nil && !sameFault(faultOf(ch.old), faultOf(ch.e.cell)) {
			n.c.answered(q, q)
		}
	}
}

// replace puts the entries of one run in the place of those of the run before.
func (n *flat[K, J, W]) replace(old, next *cell[K, []pair[J, W]]) {
	stay := make(map[J]bool)
	if next != nil && next.fault != nil {
		var none J
		stay[none] = true
		n.set(From[K, J]{next.key, none}, pair[J, W]{}, next.fault)
	}
	if next != nil {
		for _, p := range next.val {
			stay[p.key] = true
			var f *fault
			if p.twice {
				f = &fault{errTwice}
			}
			n.set(From[K, J]{next.key, p.key}, p, f)
		}
	}
	if old == nil {
		return
	}
	if old.fault != nil {
		var none J
		n.removeUnless(stay, From[K, J]{old.key, none})
	}
	for _, p := range old.val {
		n.removeUnless(stay, From[K, J]{old.key, p.key})
	}
}

func (n *flat[K, J, W]) removeUnless(stay map[J]bool, k From[K, J]) {
	if !stay[k.Key] {
		e := n.find(k)
		n.table.drop(k, e.row)
		n.put(e, nil)
		n.entries[e.row] = nil
	}
}

// set gives a key what was put, unless it has that already.
func (n *flat[K, J, W]) set(k From[K, J], p pair[J, W], f *fault) {
	e := n.find(k)
	if e == nil {
		e = &entry[From[K, J], W]{}
		n.place(n.table.add(k), e)
	}
	var same bool
	err := n.called(func() error {
		same = f == nil && n.same(e, p.val)
		return nil
	})
	if f == nil && err != nil {
		f = &fault{err}
	}
	if same || f != nil && e.cell != nil && sameFault(e.cell.fault, f) {
		return
	}
	next := &cell[From[K, J], W]{key: k, val: p.val, fault: f}
	if f != nil {
		next.val = *new(W)
	}
	n.put(e, next)
}
