package derive

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Labeled has the entries of a collection by their labels. [ByLabels] makes one.
type Labeled[K comparable, V any] struct{ n *matched[K, V] }

// Selecting has the entries of a collection by the label sets that they select. [BySelector] makes
// one.
type Selecting[K comparable, V any] struct{ n *matched[K, V] }

// ByLabels makes the entries of a collection known by labels, for [Labeled.Select]. The function
// returns an entry's scope, which is its namespace in most cases, and its labels. It has no
// Reader, as that of [GroupBy]; if it panics, no selector selects the entry.
func ByLabels[K comparable, V any](in Collection[K, V], name string, of func(K, V) (scope string, set map[string]string)) Labeled[K, V] {
	n := declareMatched(in, "ByLabels", name, of == nil)
	n.postOf = func(k K, v V) *post[match[K, V]] {
		scope, set := of(k, v)
		return &post[match[K, V]]{scope: scope, set: set}
	}
	return Labeled[K, V]{n}
}

// BySelector makes the entries of a collection known by what they select, for
// [Selecting.Matching]. The function returns an entry's scope and its selector:
// LabelSelectorAsSelector of package metav1 makes one of an API object's. A selector that is nil
// selects nothing, and so does that of an entry for which the function panics.
func BySelector[K comparable, V any](in Collection[K, V], name string, of func(K, V) (scope string, s labels.Selector)) Selecting[K, V] {
	n := declareMatched(in, "BySelector", name, of == nil)
	n.postOf = func(k K, v V) *post[match[K, V]] {
		scope, s := of(k, v)
		return selectorPost[match[K, V]](scope, s)
	}
	return Selecting[K, V]{n}
}

func selectorPost[T any](scope string, s labels.Selector) *post[T] {
	if s == nil {
		s = labels.Nothing()
	}
	return &post[T]{scope: scope, selector: s, text: selectorText(s)}
}

// selectorText tells apart selectors that select otherwise. Of apimachinery's texts some are
// equal: one that matches nothing has the text of one that matches everything, and a selector that
// nobody has validated may have a comma in a value.
func selectorText(s labels.Selector) string {
	needs, selectable := s.Requirements()
	if !selectable {
		return "(nothing)"
	}
	odd := func(part string) bool { return strings.ContainsAny(part, "\"=!<>(), ") }
	for i := range needs {
		if key := needs[i].Key(); key == "" || odd(key) || slices.ContainsFunc(needs[i].ValuesUnsorted(), odd) {
			return exactText(needs)
		}
	}
	return s.String()
}

// exactText writes requirements so that each part can be told from the next.
func exactText(needs labels.Requirements) string {
	var b strings.Builder
	for i := range needs {
		fmt.Fprintf(&b, "%q %s %q ", needs[i].Key(), needs[i].Operator(), slices.Sorted(slices.Values(needs[i].ValuesUnsorted())))
	}
	return b.String()
}

// Select returns the entries of a scope whose labels a selector selects. A function that has
// called Select runs again when these, or their values, change. A change of an entry costs a look
// at its own labels, and not at all selectors.
func (x Labeled[K, V]) Select(r *Reader, scope string, s labels.Selector) Group[K, V] {
	if x.n == nil {
		r.permit(nil)
	}
	r.permit(&x.n.header)
	p := selectorPost[match[K, V]](scope, s)
	return x.n.look(r, selectionName{scope, p.text}, p)
}

// Matching returns the entries of a scope whose selectors select a label set. A function that has
// called Matching runs again when these, or their values, change. All that ask with equal sets
// share one answer.
func (x Selecting[K, V]) Matching(r *Reader, scope string, set map[string]string) Group[K, V] {
	if x.n == nil {
		r.permit(nil)
	}
	r.permit(&x.n.header)
	// Most runs ask what the run before has asked: then no name has to be made.
	if s, is := r.expected().(*selected[K, V]); is && s.of == x.n && s.isOf(scope, set) {
		r.recordQuestion(s)
		return s.group
	}
	return x.n.look(r, selectionName{scope, setText(set)}, &post[match[K, V]]{scope: scope, set: set})
}

// setText writes a label set so that equal texts are equal sets, whatever is in the labels.
func setText(set map[string]string) string {
	keys := make([]string, 0, 8)
	size := 0
	for k, v := range set {
		keys = append(keys, k)
		size += len(k) + len(v) + 8
	}
	slices.Sort(keys)
	var b strings.Builder
	b.Grow(size)
	var digits [20]byte
	for _, k := range keys {
		v := set[k]
		b.Write(strconv.AppendInt(digits[:0], int64(len(k)), 10))
		b.WriteByte(':')
		b.WriteString(k)
		b.Write(strconv.AppendInt(digits[:0], int64(len(v)), 10))
		b.WriteByte(':')
		b.WriteString(v)
	}
	return b.String()
}

// selectionName names a selection: its scope, and the text of its selector or label set.
type selectionName struct{ scope, text string }

// match is what a post is of: an entry, or a selection.
type match[K comparable, V any] struct {
	cell      *cell[K, V]
	selection *selected[K, V]
}

// selected is a selection that somebody has looked up: its entries, kept up to date.
type selected[K comparable, V any] struct {
	question
	name  selectionName
	post  *post[match[K, V]]
	set   []label // of the post
	group Group[K, V]
	of    *matched[K, V]
}

func (s *selected[K, V]) orphaned() {
	s.of.board.remove(s.post)
	delete(s.of.selections, s.name)
	s.group = Group[K, V]{} // an entry may hold the selection, as the cause of its last run
}

type label struct{ key, value string }

// isOf tells whether this is the selection of a label set. To go through a map takes longer than
// to look up each label.
func (s *selected[K, V]) isOf(scope string, set map[string]string) bool {
	if s.name.scope != scope || len(s.set) != len(set) {
		return false
	}
	for _, l := range s.set {
		if value, has := set[l.key]; !has || value != l.value {
			return false
		}
	}
	return true
}

func (s *selected[K, V]) text(*core) string { return s.of.name + " " + s.what() }

// what is the selector or the label set, and its scope.
func (s *selected[K, V]) what() string {
	what := "everything"
	switch {
	case s.post.selector == nil:
		what = labels.Set(s.post.set).String()
	case s.name.text != "":
		what = s.name.text
	}
	return what + " in " + strconv.Quote(s.name.scope)
}

// matched is the node behind [Labeled] and [Selecting]: one has label sets and is asked with
// selectors, the other the other way round.
type matched[K comparable, V any] struct {
	header
	in         *collection[K, V]
	postOf     func(K, V) *post[match[K, V]]
	board      *board[match[K, V]]
	posts      []*post[match[K, V]] // of the entries, by row
	selections map[selectionName]*selected[K, V]
	failed     failures[K]
}

func declareMatched[K comparable, V any](in Collection[K, V], kind, name string, none bool) *matched[K, V] {
	n := &matched[K, V]{in: in.c}
	declareOn(in, n, kind, name)
	if none {
		n.c.wrong("%q has no function", name)
	}
	n.reset()
	return n
}

func (n *matched[K, V]) settle() {}

func (n *matched[K, V]) reset() {
	n.board = newBoard[match[K, V]]()
	n.posts, n.failed = nil, nil
	n.selections = make(map[selectionName]*selected[K, V])
}

func (n *matched[K, V]) size() (valid, invalid int) { return len(n.selections), len(n.failed) }

// look returns a selection.
func (n *matched[K, V]) look(r *Reader, name selectionName, p *post[match[K, V]]) Group[K, V] {
	s := n.selections[name]
	if s != nil {
		r.recordQuestion(s)
		return s.group
	}
	var cells []*cell[K, V]
	for q := range n.board.matching(p) {
		cells = append(cells, q.of.cell)
	}
	group := groupOf(cells, n.in.table.compare)
	if r.record {
		s = &selected[K, V]{name: name, post: p, group: group, of: n}
		p.of.selection = s
		p.set = maps.Clone(p.set)
		for k, v := range p.set {
			s.set = append(s.set, label{k, v})
		}
		n.selections[name] = s
		n.board.add(p)
		r.recordQuestion(s)
	}
	return group
}

func (n *matched[K, V]) evaluate() {
	if n.in.changeCount() == 0 {
		return
	}
	edits := make(map[*selected[K, V]][]edit[K, V])
	for ch := range n.in.changes() {
		n.change(ch, edits)
	}
	compare := n.in.table.compare
	for s, some := range edits {
		s.group = s.group.edited(some, make([]*cell[K, V], 0, s.group.Len()+len(some)), compare)
		n.c.answered(s, s)
	}
}

// change takes over the change of one entry, and lists what that changes in the selections.
func (n *matched[K, V]) change(ch change[K, V], edits map[*selected[K, V]][]edit[K, V]) {
	row := int(ch.e.row)
	n.posts = reaching(n.posts, ch.e.row, nil)
	was, is := n.posts[row], n.postFor(ch)
	if was != nil && is != nil && was.sameAs(is) {
		was.of.cell = ch.e.cell
		for q := range n.board.matching(was) {
			edits[q.of.selection] = append(edits[q.of.selection], edit[K, V]{cell: ch.e.cell})
		}
		return
	}
	stays := make(map[*selected[K, V]]bool)
	if is != nil {
		is.of.cell = ch.e.cell
		for q := range n.board.matching(is) {
			stays[q.of.selection] = true
			edits[q.of.selection] = append(edits[q.of.selection], edit[K, V]{cell: ch.e.cell})
		}
	}
	if was != nil {
		for q := range n.board.matching(was) {
			if !stays[q.of.selection] {
				edits[q.of.selection] = append(edits[q.of.selection], edit[K, V]{ch.old, true})
			}
		}
		n.board.remove(was)
	}
	if is != nil {
		n.board.add(is)
	}
	n.posts[row] = is
}

// postFor returns the post of an entry; nil if the entry is gone or invalid, or if the function
// panics.
func (n *matched[K, V]) postFor(ch change[K, V]) (is *post[match[K, V]]) {
	x := ch.e.cell
	if x == nil || x.fault != nil {
		n.failed.settle(ch.keyOf(), false)
		return nil
	}
	n.counts.runs++
	err := n.called(func() error {
		is = n.postOf(x.key, x.val)
		return nil
	})
	n.failed.setFailure(x.key, err)
	return is
}

// keyOf returns the key of what has changed.
func (ch change[K, V]) keyOf() K {
	if ch.e.cell != nil {
		return ch.e.cell.key
	}
	return ch.old.key
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
