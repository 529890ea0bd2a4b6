package derive

import (
	"math"
	"slices"
)

// asked is what an entry can look up: an entry by its key, an absent key, a whole collection, a
// selection or a value. The core links the entries that asked with what they asked, both ways.
type asked interface {
	base() *question
	// orphaned is called when the last asker is gone.
	orphaned()
	// text names the question in words: "services shop/web".
	text() string
}

// question has the links to those who asked.
type question struct {
	askers []asker
	// stamp tells whether the run that goes on has asked this already (see recorder).
	stamp uint32
	// row is the row of an entry that is asked for. It stands here because it takes no room.
	row int32
}

func (q *question) base() *question { return q }

// asker is one entry that asked: the node, the entry's row in the node, and where the entry has
// this question in its list.
type asker struct{ node, row, at int32 }

// ask is a question that an entry asked, and where the question has the entry in its list.
type ask struct {
	of asked
	at int32
}

// runner is the part of an entry that has a function to run: what the last run looked up, and why
// it ran.
type runner struct {
	asks    []ask
	because cause  // nil: the entry is new
	ran     uint32 // the number of the Update in which it ran last
	dirty   bool
}

// cause is why an entry runs, in words.
type cause interface{ text() string }

// runners is a node whose entries have functions to run.
type runners interface {
	runner(row int32) *runner
	// queue lists a row that has to run.
	queue(row int32)
}

// mark makes an entry run in this Update. It runs once, however many causes there are.
func mark(n runners, row int32, because cause) {
	if r := n.runner(row); !r.dirty {
		r.dirty, r.because = true, because
		n.queue(row)
	}
}

// answered makes all run that have asked this: its answer is another.
func (c *core) answered(a asked, because cause) {
	for _, by := range a.base().askers {
		mark(c.nodes[by.node].(runners), by.row, because)
	}
}

// unlink takes a runner off all questions from position from on in its list.
func (c *core) unlink(r *runner, from int) {
	for _, a := range r.asks[from:] {
		c.leave(a)
	}
	clear(r.asks[from:])
	r.asks = r.asks[:from]
	if from == 0 {
		r.asks = nil
	}
}

// leave takes one asker off a question. The last asker of the question moves to its place.
func (c *core) leave(a ask) {
	q := a.of.base()
	last := len(q.askers) - 1
	if moved := q.askers[last]; int(a.at) != last {
		q.askers[a.at] = moved
		c.nodes[moved.node].(runners).runner(moved.row).asks[moved.at].at = a.at
	}
	q.askers = q.askers[:last]
	switch {
	case last == 0:
		q.askers = nil
		a.of.orphaned()
	case cap(q.askers) > 4*last+16:
		q.askers = slices.Clip(slices.Clone(q.askers))
	}
}

// recorder notes what one run asks. Most runs ask what the run before has asked, in the same
// order, and then nothing is linked or unlinked.
type recorder struct {
	of    *runner
	same  int     // so many questions of the last run were asked again, in their order
	fresh []asked // asked in another order, or new
	// number is even, and another for each run. The stamp of a question is number if this run has
	// asked it and it is not linked yet. It is number+1 if it has its place in the entry's list.
	// Any other stamp is of an earlier run.
	number uint32
}

// lastNumber is the greatest number with which an Update begins. After it the graph begins again,
// so that an old stamp is never taken for a new one.
var lastNumber uint32 = math.MaxUint32 / 2

// beginRun starts the record of a run.
func (rec *recorder) beginRun(r *runner) {
	rec.of, rec.same, rec.fresh = r, 0, rec.fresh[:0]
	rec.number += 2
}

// endBlocks gives up what is left of the blocks: the next node runs other functions.
func (c *core) endBlocks() {
	c.coming, c.readers, c.askBlock, c.askerBlock = 0, nil, nil, nil
}

// recordQuestion records that the run asks.
func (rec *recorder) recordQuestion(a asked) {
	q := a.base()
	if q.stamp&^1 == rec.number {
		return
	}
	if asks := rec.of.asks; len(rec.fresh) == 0 && rec.same < len(asks) && asks[rec.same].of == a {
		rec.same++
		q.stamp = rec.number + 1
		return
	}
	q.stamp = rec.number
	rec.fresh = append(rec.fresh, a)
}

// endRun links the questions of the run with its entry, and unlinks those that were not asked
// again.
func (c *core) endRun(node, row int32) {
	rec := &c.rec
	r := rec.of
	rec.of = nil
	if rec.same == len(r.asks) && len(rec.fresh) == 0 {
		return
	}
	old := slices.Clone(r.asks[rec.same:])
	if need := rec.same + len(rec.fresh); cap(r.asks) < need || cap(r.asks) > 2*need+8 {
		r.asks = append(c.askBlock.room(need, c.coming), r.asks[:rec.same]...)
	} else {
		clear(r.asks[rec.same:])
		r.asks = r.asks[:rec.same]
	}
	// Those of the old ones that were asked again keep their place in the question's list.
	for i, a := range old {
		if q := a.of.base(); q.stamp == rec.number {
			q.stamp++
			q.askers[a.at].at = int32(len(r.asks))
			r.asks = append(r.asks, a)
			old[i].of = nil
		}
	}
	for _, a := range rec.fresh {
		if q := a.base(); q.stamp == rec.number {
			q.stamp++
			if q.askers == nil {
				q.askers = c.askerBlock.room(1, c.coming*len(rec.fresh))
			}
			q.askers = append(q.askers, asker{node: node, row: row, at: int32(len(r.asks))})
			r.asks = append(r.asks, ask{of: a, at: int32(len(q.askers) - 1)})
		}
	}
	for _, a := range old {
		if a.of != nil {
			c.leave(a)
		}
	}
	clear(rec.fresh)
}
