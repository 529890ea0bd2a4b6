package derive

import (
	"errors"
	"slices"
)

// FlatMap makes any number of entries of each entry of a collection: the function calls put with a
// key and a value for each. An entry's key is [From]: the key of the input, and the key that put
// got. A key that is put twice in one run makes that entry invalid.
//
// If the function fails, nothing that it has put counts. The collection has one invalid entry for
// that input, whose Key is zero. A look-up of any absent key of that input returns the same error.
// All else is as with [Map].
func FlatMap[K, J comparable, V, W any](in Collection[K, V], name string, f func(r *Reader, k K, v V, put func(J, W)) error, o ...Option[W]) Collection[From[K, J], W] {
	n := &flat[K, J, V, W]{f: f}
	n.equal, n.printed = equalOf(o), true
	declareOn(in, n, "FlatMap", name)
	if f == nil {
		n.c.wrong("%q has no function", name)
	}
	n.in = in.c
	compare, err := fromOrder[K, J](in.c.table.compare)
	n.ownBy(n.c, compare, err)
	n.reset()
	n.whyAbsent = n.reasonFor
	return Collection[From[K, J], W]{&n.collection}
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

// collected runs the function for an input, and returns what it has put.
func (n *flat[K, J, V, W]) collected(r *Reader, in *cell[K, V]) (all []pair[J, W], err error) {
	if in.fault != nil {
		return nil, n.in.errorOf(in)
	}
	at := map[J]int(nil)
	ended := false
	defer func() { ended = true }()
	err = n.f(r, in.key, in.val, func(j J, w W) {
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
	return all, err
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

// flat is the node behind [FlatMap].
type flat[K, J comparable, V, W any] struct {
	collection[From[K, J], W]
	runsOf[K, V, batch[K, J, W], *batch[K, J, W]]
	f func(r *Reader, k K, v V, put func(J, W)) error
	// reasons are the questions of those who have looked up an absent key.
	reasons map[K]*reason[K]
}

// batch is what a run has put, in this order, or why it has failed.
type batch[K, J comparable, W any] struct {
	runner
	put   []*entry[From[K, J], W]
	fault *fault
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

func (q *reason[K]) text(*core) string { return named(q.of, q.key) + " (whether it fails)" }

func (n *flat[K, J, V, W]) reset() {
	n.collection.reset()
	n.forgetRuns()
	n.reasons = make(map[K]*reason[K])
}

// reasonFor returns the error of an absent key, which is that of the run of its input.
func (n *flat[K, J, V, W]) reasonFor(r *Reader, k From[K, J]) error {
	if r.record {
		q := n.reasons[k.From]
		if q == nil {
			q = &reason[K]{key: k.From, of: &n.header, all: n.reasons}
			n.reasons[k.From] = q
		}
		r.recordQuestion(q)
	}
	if e := n.in.find(k.From); e != nil && n.runs[e.row].fault != nil {
		return &EntryError{Node: n.name, Key: keyText(k), Err: n.runs[e.row].fault.err}
	}
	return nil
}

func (n *flat[K, J, V, W]) evaluate() {
	n.evaluateRuns(n.c, n, func(int32, *batch[K, J, W]) {}, n.remove, n.runBatch)
	n.cellBlock = nil
}

// remove takes out what the run of an input has put that is gone.
func (n *flat[K, J, V, W]) remove(_ int32, b *batch[K, J, W]) {
	if len(b.put) > 0 {
		n.replace(b, b.put[0].cell.key.From, nil, nil)
	}
}

func (n *flat[K, J, V, W]) runBatch(row int32, b *batch[K, J, W]) {
	in := n.in.entries[row].cell
	var puts []pair[J, W]
	err := n.run(row, &b.runner, func(r *Reader) (err error) {
		puts, err = n.collected(r, in)
		return err
	})
	before := n.changeCount()
	switch {
	case err == nil:
		n.replace(b, in.key, puts, nil)
	case errors.Is(err, Skip):
		n.replace(b, in.key, nil, nil)
	default:
		n.replace(b, in.key, make([]pair[J, W], 1), &fault{err})
	}
	if in.fault == nil {
		n.countRun(&b.runner, n.changeCount() > before)
	}
}

// replace puts the entries of a run in the place of those of the run before. A run that has failed
// has one, which is invalid.
func (n *flat[K, J, V, W]) replace(b *batch[K, J, W], k K, puts []pair[J, W], failed *fault) {
	if q := n.reasons[k]; q != nil && !sameFault(b.fault, failed) {
		n.c.answered(q, q)
	}
	was := b.put
	b.put, b.fault = make([]*entry[From[K, J], W], 0, len(puts)), failed
	var at map[J]int // in was
	for i, p := range puts {
		f := failed
		if p.twice {
			f = &fault{errTwice}
		}
		if i >= len(was) || was[i] == nil || was[i].cell.key.Key != p.key {
			if at == nil && len(was) > 0 {
				at = make(map[J]int, len(was))
				for i, e := range was {
					if e != nil {
						at[e.cell.key.Key] = i
					}
				}
			}
			i = len(was)
			if old, there := at[p.key]; there {
				i = old
			}
		}
		var e *entry[From[K, J], W]
		if i < len(was) {
			e, was[i] = was[i], nil
		}
		b.put = append(b.put, n.set(e, From[K, J]{k, p.key}, p.val, f))
	}
	for _, e := range was {
		if e != nil {
			n.table.drop(e.cell.key, e.row)
			n.put(e, nil)
			n.entries[e.row] = nil
		}
	}
}

// set gives an entry what was put, unless it has that already. Nil: there is no entry yet.
func (n *flat[K, J, V, W]) set(e *entry[From[K, J], W], k From[K, J], v W, f *fault) *entry[From[K, J], W] {
	if e == nil {
		e = &entry[From[K, J], W]{}
		n.place(n.table.add(k), e)
	}
	same := false
	if f == nil && e.cell != nil {
		if err := n.called(func() error { same = n.same(e, v); return nil }); err != nil {
			f = &fault{err}
		}
	}
	if same || f != nil && sameFault(faultOf(e.cell), f) {
		return e
	}
	x := n.cellBlock.takeElement(n.c.coming)
	if x.key, x.fault = k, f; f == nil {
		x.val = v
	}
	n.put(e, x)
	return e
}

func (n *flat[K, J, V, W]) explain(key string) (Explanation, bool) {
	return n.explained(key, func(e *entry[From[K, J], W]) *runner {
		row := slices.IndexFunc(n.runs, func(b *batch[K, J, W]) bool { return b != nil && slices.Contains(b.put, e) })
		return n.runner(int32(row))
	})
}

func (n *flat[K, J, V, W]) checks() int { return len(n.runs) }

// check runs the function of an input again. An entry that is invalid because its Equal panics has
// no value to compare with.
func (n *flat[K, J, V, W]) check(row int) *finding {
	b := n.runs[row]
	if b == nil {
		return nil
	}
	in, kept := n.in.entries[row].cell, outcome{}
	if b.fault != nil {
		kept.err = b.fault.err
	}
	var puts []pair[J, W]
	for _, e := range b.put {
		if f := n.changedAfter(e); f != nil {
			return f
		}
		twice := e.cell.fault != nil
		if twice && b.fault == nil && !errors.Is(e.cell.fault.err, errTwice) {
			return nil
		}
		puts = append(puts, pair[J, W]{e.cell.key.Key, e.cell.val, twice})
	}
	kept.val = puts
	return compared(n.name, keyText(in.key), func() (o outcome) {
		var all []pair[J, W]
		o.err = n.rerun(func(r *Reader) (err error) {
			all, err = n.collected(r, in)
			return err
		})
		if errors.Is(o.err, Skip) {
			o.err, all = nil, nil
		}
		o.val = all
		return o
	}, kept, func(a, b []pair[J, W]) bool { return samePairs(a, b, n.equal) })
}
