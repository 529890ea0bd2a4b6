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
type Labeled[K comparable, V any] struct{ n *matched }

// Selecting has the entries of a collection by the label sets that they select. [BySelector] makes
// one.
type Selecting[K comparable, V any] struct{ n *matched }

// ByLabels makes the entries of a collection known by labels, for [Labeled.Select]. The function
// returns an entry's scope, which is its namespace in most cases, and its labels. It has no
// Reader, as that of [GroupBy]; if it panics, no selector selects the entry.
func ByLabels[K comparable, V any](in Collection[K, V], name string, of func(K, V) (scope string, set map[string]string)) Labeled[K, V] {
	return Labeled[K, V]{declareMatched(in, "ByLabels", name, of != nil, func(x *cellOf[K, V]) *post {
		scope, set := of(x.key, x.val)
		return &post{scope: scope, set: set}
	})}
}

// BySelector makes the entries of a collection known by what they select, for
// [Selecting.Matching]. The function returns an entry's scope and its selector:
// LabelSelectorAsSelector of package metav1 makes one of an API object's. A selector that is nil
// selects nothing, and so does that of an entry for which the function panics.
func BySelector[K comparable, V any](in Collection[K, V], name string, of func(K, V) (scope string, s labels.Selector)) Selecting[K, V] {
	return Selecting[K, V]{declareMatched(in, "BySelector", name, of != nil, func(x *cellOf[K, V]) *post {
		scope, s := of(x.key, x.val)
		return selectorPost(scope, s)
	})}
}

func selectorPost(scope string, s labels.Selector) *post {
	if s == nil {
		s = labels.Nothing()
	}
	return &post{scope: scope, selector: s, text: selectorText(s)}
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
	n := x.n.permitted(r)
	p := selectorPost(scope, s)
	return n.look(r, selectionName{scope, p.text}, p).(Group[K, V])
}

// Matching returns the entries of a scope whose selectors select a label set. A function that has
// called Matching runs again when these, or their values, change. All that ask with equal sets
// share one answer.
func (x Selecting[K, V]) Matching(r *Reader, scope string, set map[string]string) Group[K, V] {
	return x.n.permitted(r).matching(r, scope, set).(Group[K, V])
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

// selected is a selection that somebody has looked up: its entries, kept up to date.
type selected struct {
	question
	name  selectionName
	post  *post
	set   []label // of the post
	group any     // a Group[K, V]
	of    *matched
}

func (s *selected) orphaned() {
	s.of.board.remove(s.post)
	delete(s.of.selections, s.name)
	s.group = nil // an entry may hold the selection, as the cause of its last run
}

type label struct{ key, value string }

// isOf tells whether this is the selection of a label set. To go through a map takes longer than
// to look up each label.
func (s *selected) isOf(scope string, set map[string]string) bool {
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

func (s *selected) text(*core) string { return s.of.name + " " + s.what() }

// what is the selector or the label set, and its scope.
func (s *selected) what() string {
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
type matched struct {
	header
	in         *collection
	postOf     func(x cell) *post
	applyEdits func(group any, edits []edit) any
	equal      func(a, b any) bool // of two groups
	board      *board
	posts      []*post // of the entries, by row
	selections map[selectionName]*selected
	failed     failures
}

func declareMatched[K comparable, V any](in Collection[K, V], kind, name string, function bool, postOf func(x *cellOf[K, V]) *post) *matched {
	n := &matched{in: in.c}
	declareOn(in.c, n, kind, name, function)
	byKey := orderOfCells[K, V](in.c)
	n.postOf = func(x cell) *post { return postOf(x.(*cellOf[K, V])) }
	n.applyEdits = func(group any, edits []edit) any {
		g, _ := group.(Group[K, V]) // nil: an empty one
		return applyEdits(g, edits, make([]*cellOf[K, V], 0, g.Len()+len(edits)), byKey)
	}
	n.equal = equalMembers[K, V](in.c)
	n.reset()
	return n
}

// permitted returns the node, if the Reader may read it.
func (n *matched) permitted(r *Reader) *matched {
	if n == nil {
		r.permit(nil)
	}
	r.permit(&n.header)
	return n
}

func (n *matched) settle() {}

func (n *matched) reset() {
	n.board = newBoard()
	n.posts, n.failed = nil, nil
	n.selections = make(map[selectionName]*selected)
}

func (n *matched) size() (valid, invalid int) { return len(n.selections), len(n.failed) }

// matching returns the selection of a label set.
func (n *matched) matching(r *Reader, scope string, set map[string]string) (group any) {
	// Most runs ask what the run before has asked: then no name has to be made.
	if s, is := r.expected().(*selected); is && s.of == n && s.isOf(scope, set) {
		r.recordQuestion(s)
		return s.group
	}
	return n.look(r, selectionName{scope, setText(set)}, &post{scope: scope, set: set})
}

// look returns a selection.
func (n *matched) look(r *Reader, name selectionName, p *post) (group any) {
	s := n.selections[name]
	if s != nil {
		r.recordQuestion(s)
		return s.group
	}
	var edits []edit
	for q := range n.board.matching(p) {
		edits = append(edits, edit{cell: q.cell})
	}
	group = n.applyEdits(nil, edits)
	if r.record {
		s = &selected{name: name, post: p, group: group, of: n}
		p.selection = s
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

func (n *matched) evaluate() {
	if n.in.changeCount() == 0 {
		return
	}
	edits := make(map[*selected][]edit)
	for ch := range n.in.changes() {
		n.change(ch, edits)
	}
	for s, some := range edits {
		s.group = n.applyEdits(s.group, some)
		n.c.answered(s, s)
	}
}

// change takes over the change of one entry, and lists what that changes in the selections.
func (n *matched) change(ch change, edits map[*selected][]edit) {
	row := int(ch.e.row)
	n.posts = reaching(n.posts, ch.e.row, nil)
	was, is := n.posts[row], n.postFor(ch)
	if was != nil && is != nil && was.sameAs(is) {
		was.cell = ch.e.cell
		for q := range n.board.matching(was) {
			edits[q.selection] = append(edits[q.selection], edit{cell: ch.e.cell})
		}
		return
	}
	stays := make(map[*selected]bool)
	if is != nil {
		is.cell = ch.e.cell
		for q := range n.board.matching(is) {
			stays[q.selection] = true
			edits[q.selection] = append(edits[q.selection], edit{cell: ch.e.cell})
		}
	}
	if was != nil {
		for q := range n.board.matching(was) {
			if !stays[q.selection] {
				edits[q.selection] = append(edits[q.selection], edit{ch.old, true})
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
func (n *matched) postFor(ch change) (is *post) {
	var err error
	if x := ch.e.cell; x != nil && faultOf(x) == nil {
		n.counts.runs++
		err = n.called(func() error {
			is = n.postOf(x)
			return nil
		})
	}
	n.failed.set(ch.known(), err)
	return is
}

func (n *matched) checks() int { return len(n.posts) }

// posted is what a function of ByLabels or BySelector has returned.
type posted struct{ Scope, Labels, Selector string }

// check runs the function of the labels or the selector for an entry.
func (n *matched) check(row int) *finding {
	x := n.in.validIn(row)
	if x == nil {
		return nil
	}
	written := func(p *post) any {
		if p == nil {
			return posted{}
		}
		return posted{p.scope, setText(p.set), p.text}
	}
	run := func() (o outcome) {
		var p *post
		o.err = n.called(func() error {
			p = n.postOf(x)
			return nil
		})
		o.val = written(p)
		return o
	}
	key := x.anyKey()
	return compared(n.name, keyText(key), run, outcome{written(n.posts[row]), n.failed[key]}, identical)
}
