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
	cause
}

// question has the links to those who asked. Most have one asker, so the first one stands here.
type question struct {
	others *[]asker
	first  asker
	// stamp tells whether the run that goes on has asked this, and as which (see recorder).
	stamp uint32
	// row and node are those of an entry that is asked for. They stand here because they take no
	// room.
	row, node int32
}

func (q *question) base() *question { return q }

// asker is one entry that asked: the node, the entry's row in the node, and where the entry has
// this question in its list. The first node of a graph asks nothing: there is none before it. So
// an asker whose node is 0 is none.
type asker struct{ node, row, at int32 }

func (q *question) isAsked() bool { return q.first.node > 0 }

// askers returns how many have asked.
func (q *question) askers() int {
	switch {
	case !q.isAsked():
		return 0
	case q.others == nil:
		return 1
	}
	return 1 + len(*q.others)
}

// asker returns one of those who have asked.
func (q *question) asker(at int32) *asker {
	if at == 0 {
		return &q.first
	}
	return &(*q.others)[at-1]
}

// addAsker adds one to those who have asked, and returns its place.
func (q *question) addAsker(by asker) (at int32) {
	switch {
	case !q.isAsked():
		q.first = by
		return 0
	case q.others == nil:
		q.others = new([]asker)
	}
	*q.others = append(*q.others, by)
	return int32(len(*q.others))
}

// dropAsker takes off the last one of those who have asked.
func (q *question) dropAsker() {
	n := q.askers() - 2 // that stay in others
	switch {
	case n < 0:
		q.first = asker{}
	case n == 0:
		q.others = nil
	default:
		*q.others = (*q.others)[:n]
		if cap(*q.others) > 4*n+16 {
			*q.others = slices.Clip(slices.Clone(*q.others))
		}
	}
}

// hole is an absent key that somebody has looked up.
type hole struct {
	question
	key any
	of  *collection
}

func (h *hole) orphaned() { delete(h.of.absent, h.key) }

func (h *hole) text(*core) string { return named(&h.of.header, h.key) + " (absent)" }

// addHole makes the question for an absent key.
func (c *collection) addHole(key any) *hole {
	h := &hole{key: key, of: c}
	if c.absent == nil {
		c.absent = make(map[any]*hole)
	}
	c.absent[key] = h
	return h
}

// gone names an entry that is not there any more, as the cause of a run.
type gone struct {
	key any
	of  *header
}

func (g *gone) text(*core) string { return named(g.of, g.key) + " (gone)" }

// named names an entry. That of a value has no key.
func named(of *header, key any) string {
	if text := keyText(key); text != "" {
		return of.name + " " + text
	}
	return of.name
}

// whole is the question for all entries.
type whole struct {
	question
	of *header
}

func (w *whole) orphaned() {}

func (w *whole) text(*core) string { return "all of " + w.of.name }

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

// cause is why an entry runs. Its text says it in words: "services shop/web".
type cause interface{ text(c *core) string }

// runners is a node whose entries have functions to run.
type runners interface {
	runner(row int32) *runner
	// queue lists a row that has to run.
	queue(row int32)
	// rowKey names a row, for people.
	rowKey(row int32) string
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
	for q, at := a.base(), 0; at < q.askers(); at++ {
		by := q.asker(int32(at))
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
	last := int32(q.askers() - 1)
	if moved := *q.asker(last); a.at != last {
		*q.asker(a.at) = moved
		c.nodes[moved.node].(runners).runner(moved.row).asks[moved.at].at = a.at
	}
	if q.dropAsker(); last == 0 {
		a.of.orphaned()
	}
}

// recorder notes what one run asks. Most runs ask what the run before has asked, in the same
// order, and then nothing is linked or unlinked.
type recorder struct {
	of    *runner
	same  int   // so many questions of the last run were asked again, in their order
	fresh []ask // asked in another order, or new
	// number is another for each run. The question that this run has asked as its nth has the
	// stamp number+n. Any other stamp is of an earlier run, and is less.
	number uint32
}

// lastNumber is the greatest number with which an Update begins. After it the graph begins again,
// so that stamps do not overflow.
var lastNumber uint32 = math.MaxUint32 / 2

// beginRun starts the record of a run.
func (rec *recorder) beginRun(r *runner) { rec.of, rec.same = r, 0 }

// asked returns how many questions the run has asked.
func (rec *recorder) asked() int { return rec.same + len(rec.fresh) }

// position returns the position of a question in what the run has asked.
func (rec *recorder) position(q *question) (at int, asked bool) {
	return int(q.stamp) - int(rec.number) - 1, q.stamp > rec.number
}

// endBlocks gives up what is left of the blocks: the next node runs other functions.
func (c *core) endBlocks() {
	c.coming, c.readers, c.askBlock, c.cellBlock = 0, nil, nil, nil
}

// recordQuestion records that the run asks.
func (rec *recorder) recordQuestion(a asked) {
	q := a.base()
	if q.stamp > rec.number {
		return
	}
	if asks := rec.of.asks; len(rec.fresh) == 0 && rec.same < len(asks) && asks[rec.same].of == a {
		rec.same++
	} else {
		rec.fresh = append(rec.fresh, ask{a, -1})
	}
	q.stamp = rec.number + uint32(rec.asked())
}

// endRun links the questions of the run with its entry, in the order in which they were asked, and
// unlinks those that were not asked again.
func (c *core) endRun(node, row int32) {
	rec := &c.rec
	r, same, fresh := rec.of, rec.same, rec.fresh
	if same < len(r.asks) || len(fresh) > 0 {
		// Those that were asked again keep their place in the question's list.
		for _, a := range r.asks[same:] {
			if at, again := rec.position(a.of.base()); again {
				fresh[at-same].at = a.at
			} else {
				c.leave(a)
			}
		}
		r.resize(same, same+len(fresh), c)
		for _, a := range fresh {
			r.asks = append(r.asks, a.linked(asker{node, row, int32(len(r.asks))}))
		}
	}
	rec.number += uint32(rec.asked())
	clear(fresh)
	rec.of, rec.fresh = nil, fresh[:0]
}

// resize keeps the first questions, and makes room for others.
func (r *runner) resize(keep, need int, c *core) {
	if cap(r.asks) < need || cap(r.asks) > 2*need+8 {
		r.asks = append(takeList(&c.askBlock, need, c.coming), r.asks[:keep]...)
		return
	}
	clear(r.asks[keep:])
	r.asks = r.asks[:keep]
}

// linked links a question with one who asks it, if it is not linked yet.
func (a ask) linked(by asker) ask {
	if q := a.of.base(); a.at < 0 {
		a.at = q.addAsker(by)
	} else {
		q.asker(a.at).at = by.at
	}
	return a
}
