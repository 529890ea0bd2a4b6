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
	n := &flat{}
	p := &putter[K, J, V, W]{n: n, f: f, equal: equalOf(o)}
	n.equal, n.printed.on = equalAny(p.equal), true
	declareOn(in.c, n, "FlatMap", name, f != nil)
	n.in, n.putter = in.c, p
	compare, err := fromOrder[K, J](tableOf[K](in.c).compare)
	p.table = ownBy[From[K, J], W](&n.collection, compare, err)
	n.whyAbsent = func(r *Reader, key any) error {
		k := key.(From[K, J])
		return n.reasonFor(r, k, k.From, find(n.in, k.From))
	}
	n.reset()
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

// flat is the node behind [FlatMap].
type flat struct {
	collection
	runsOf
	batches []*batch    // by the rows of the input
	putter  interface { // a *putter[K, J, V, W]
		run(row int32, b *batch)
		check(row int32, b *batch) *finding
	}
	// reasons are the questions of those who have looked up an absent key, by the key of the input.
	reasons map[any]*reason
}

// batch is what a run has put, in this order, or why it has failed.
type batch struct {
	runner
	put   []*entry
	fault *fault
}

// reason is the question whether the function has failed for an input. Its answer is another one
// when it fails, when it fails otherwise, and when it fails no more.
type reason struct {
	question
	key any
	of  *flat
}

func (q *reason) orphaned() { delete(q.of.reasons, q.key) }

func (q *reason) text(*core) string { return named(&q.of.header, q.key) + " (whether it fails)" }

func (n *flat) reset() {
	n.collection.reset()
	n.forgetRuns()
	n.batches = nil
	n.reasons = make(map[any]*reason)
}

// reasonFor returns the error of an absent key, which is that of the run of its input.
func (n *flat) reasonFor(r *Reader, key, from any, in *entry) error {
	if r.record {
		q := n.reasons[from]
		if q == nil {
			q = &reason{key: from, of: n}
			n.reasons[from] = q
		}
		r.recordQuestion(q)
	}
	if in == nil || n.batches[in.row].fault == nil {
		return nil
	}
	return &EntryError{Node: n.name, Key: keyText(key), Err: n.batches[in.row].fault.err}
}

func (n *flat) evaluate() {
	var block []batch
	add := func(row int32, coming int) *runner {
		n.batches = reaching(n.batches, row, nil)
		n.batches[row] = takeElement(&block, coming)
		return &n.batches[row].runner
	}
	n.evaluateRuns(n.c, n, add, n.remove, func(row int32, _ *runner) { n.putter.run(row, n.batches[row]) })
}

// remove takes out what the run of an input has put that is gone.
func (n *flat) remove(row int32, in cell) {
	b := n.batches[row]
	n.setFault(b, in, nil)
	for _, e := range b.put {
		n.drop(e)
	}
	n.batches[row] = nil
}

// setFault sets why the run of an input has failed.
func (n *flat) setFault(b *batch, in cell, f *fault) {
	if len(n.reasons) > 0 && !sameFault(b.fault, f) {
		if q := n.reasons[in.anyKey()]; q != nil {
			n.c.answered(q, q)
		}
	}
	b.fault = f
}

func (n *flat) explain(key string) (Explanation, bool) {
	return n.explained(key, func(e *entry) *runner {
		row := slices.IndexFunc(n.batches, func(b *batch) bool { return b != nil && slices.Contains(b.put, e) })
		return n.runner(int32(row))
	})
}

func (n *flat) checks() int { return len(n.runs) }

func (n *flat) check(row int) *finding {
	b := n.batches[row]
	if b == nil {
		return nil
	}
	for _, e := range b.put {
		if f := n.changedAfter(e); f != nil {
			return f
		}
	}
	return n.putter.check(int32(row), b)
}

// putter is the part of a [FlatMap] that needs its types.
type putter[K, J comparable, V, W any] struct {
	n     *flat
	table *table[From[K, J]] // of n
	f     func(r *Reader, k K, v V, put func(J, W)) error
	equal func(a, b W) bool
}

// collected runs the function for an input, and returns what it has put.
func (p *putter[K, J, V, W]) collected(r *Reader, in cell) (all []pair[J, W], err error) {
	x, valid := in.(*cellOf[K, V])
	if !valid {
		return nil, p.n.in.errorOf(in)
	}
	at := map[J]int(nil)
	ended := false
	defer func() { ended = true }()
	err = p.f(r, x.key, x.val, func(j J, w W) {
		if ended {
			misuse("%q: put is called after its function has returned", p.n.name)
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

// keyOf returns the key with which an entry was put.
func (p *putter[K, J, V, W]) keyOf(e *entry) J { return keyOf[From[K, J], W](e.cell).Key }

func (p *putter[K, J, V, W]) run(row int32, b *batch) {
	n, in := p.n, p.n.in.entries[row].cell
	var puts []pair[J, W]
	err := n.run(row, &b.runner, func(r *Reader) (err error) {
		puts, err = p.collected(r, in)
		return err
	})
	before := n.changeCount()
	switch {
	case err == nil:
		p.replace(b, in, puts, nil)
	case errors.Is(err, Skip):
		p.replace(b, in, nil, nil)
	default:
		p.replace(b, in, make([]pair[J, W], 1), &fault{err: err})
	}
	if faultOf(in) == nil {
		n.countRun(&b.runner, n.changeCount() > before)
	}
}

// replace puts the entries of a run in the place of those of the run before. A run that has failed
// has one, which is invalid.
func (p *putter[K, J, V, W]) replace(b *batch, in cell, puts []pair[J, W], failed *fault) {
	p.n.setFault(b, in, failed)
	from, was := keyOf[K, V](in), b.put
	b.put = make([]*entry, 0, len(puts))
	var at map[J]int // in was
	for i, put := range puts {
		f := failed
		if put.twice {
			f = &fault{err: errTwice}
		}
		if i >= len(was) || was[i] == nil || p.keyOf(was[i]) != put.key {
			if at == nil && len(was) > 0 {
				at = make(map[J]int, len(was))
				for i, e := range was {
					if e != nil {
						at[p.keyOf(e)] = i
					}
				}
			}
			i = len(was)
			if old, there := at[put.key]; there {
				i = old
			}
		}
		var e *entry
		if i < len(was) {
			e, was[i] = was[i], nil
		}
		b.put = append(b.put, p.set(e, From[K, J]{from, put.key}, put.val, f))
	}
	for _, e := range was {
		if e != nil {
			p.n.drop(e)
		}
	}
}

// set gives an entry what was put, unless it has that already. Nil: there is no entry yet.
func (p *putter[K, J, V, W]) set(e *entry, k From[K, J], v W, f *fault) *entry {
	n := p.n
	if e == nil {
		e = &entry{}
		n.place(p.table.add(k), e)
	}
	var next cell
	if f == nil {
		if err := n.called(func() error { next = another(n.c, e.cell, k, v, p.equal); return nil }); err != nil {
			f = &fault{err: err}
		}
	}
	if f != nil && !sameFault(faultOf(e.cell), f) {
		next = &fault{k, f.err}
	}
	if next != nil {
		n.put(e, next)
	}
	return e
}

// check runs the function of an input again. An entry that is invalid because its Equal panics has
// no value to compare with.
func (p *putter[K, J, V, W]) check(row int32, b *batch) *finding {
	in, kept := p.n.in.entries[row].cell, outcome{}
	if b.fault != nil {
		kept.err = b.fault.err
	}
	var puts []pair[J, W]
	for _, e := range b.put {
		f := faultOf(e.cell)
		if f != nil && b.fault == nil && !errors.Is(f.err, errTwice) {
			return nil
		}
		put := pair[J, W]{key: p.keyOf(e), twice: f != nil}
		if x, valid := e.cell.(*cellOf[From[K, J], W]); valid {
			put.val = x.val
		}
		puts = append(puts, put)
	}
	kept.val = puts
	return compared(p.n.name, keyText(in.anyKey()), func() (o outcome) {
		var all []pair[J, W]
		o.err = p.n.rerun(func(r *Reader) (err error) {
			all, err = p.collected(r, in)
			return err
		})
		if errors.Is(o.err, Skip) {
			o.err, all = nil, nil
		}
		o.val = all
		return o
	}, kept, func(a, b any) bool { return samePairs(a.([]pair[J, W]), b.([]pair[J, W]), p.equal) })
}
