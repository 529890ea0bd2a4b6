package derive

import (
	"fmt"
	"reflect"
	"slices"
)

// faults lists what is wrong inside of a graph between two Updates.
func (c *core) faults() []string {
	a := &auditor{c: c, questions: map[*question]string{}}
	for _, n := range c.nodes {
		if x, is := n.(interface{ auditAnswers(*auditor) }); is {
			x.auditAnswers(a)
		}
	}
	for _, n := range c.nodes {
		if x, is := n.(interface{ auditRuns(*auditor) }); is {
			x.auditRuns(a)
		}
	}
	a.askers()
	return a.found
}

// auditor looks at a graph from inside.
type auditor struct {
	c         *core
	questions map[*question]string // that can be asked
	links     int                  // of the runs
	found     []string
}

func (a *auditor) wrong(format string, args ...any) {
	a.found = append(a.found, fmt.Sprintf(format, args...))
}

// question notes one that is held.
func (a *auditor) question(q asked, mustBeAsked bool) {
	a.questions[q.base()] = q.text(a.c)
	if mustBeAsked && !q.base().isAsked() {
		a.wrong("%s is held, and nobody asks it", q.text(a.c))
	}
}

// runner looks at the links of an entry.
func (a *auditor) runner(h *header, row int32, r *runner) {
	if r.dirty {
		a.wrong("row %d of %s is dirty after the Update", row, h.name)
	}
	seen := map[*question]bool{}
	for i, x := range r.asks {
		q := x.of.base()
		if seen[q] {
			a.wrong("row %d of %s asks %s twice", row, h.name, x.of.text(a.c))
		}
		seen[q] = true
		a.links++
		if _, held := a.questions[q]; !held {
			a.wrong("row %d of %s asks %s, which is gone", row, h.name, x.of.text(a.c))
		}
		if int(x.at) >= q.askers() || *q.asker(x.at) != (asker{h.index, row, int32(i)}) {
			a.wrong("row %d of %s asks %s, which does not have it at %d", row, h.name, x.of.text(a.c), x.at)
		}
	}
}

// askers compares how many links the questions have with how many the runs have: each of a run is
// one of a question.
func (a *auditor) askers() {
	n := 0
	for q, text := range a.questions {
		n += q.askers()
		for at := range q.askers() {
			by := q.asker(int32(at))
			r := a.c.nodes[by.node].(runners).runner(by.row)
			if int(by.at) >= len(r.asks) || r.asks[by.at].of.base() != q {
				a.wrong("%s has an asker that does not ask it", text)
			}
		}
	}
	if n != a.links {
		a.wrong("questions have %d askers, and runs have %d questions", n, a.links)
	}
}

func (c *collection) auditAnswers(a *auditor) {
	valid, invalid := 0, 0
	table := c.table.(auditedTable)
	rows := table.rowsNow(c)
	for row, e := range c.entries {
		if e == nil {
			continue
		}
		if int(e.row) != row || e.node != c.index {
			a.wrong("an entry of %s is in row %d and says %d", c.name, row, e.row)
		}
		a.question(e, false)
		if _, printed := c.printed.prints[e.row]; printed != (c.printed.on && c.c.printing() && e.cell != nil && faultOf(e.cell) == nil) {
			a.wrong("%s has a fingerprint of row %d: %v", c.name, row, printed)
		}
		if e.cell == nil {
			if e.isAsked() && c.kind != "Compute" {
				a.wrong("an entry of %s that is not there has askers", c.name)
			}
			continue
		}
		if x, there := rows[e.cell.anyKey()]; !there || int(x) != row {
			a.wrong("%s has an entry of %s in row %d, and the table says %d %v", c.name, keyText(e.cell.anyKey()), row, x, there)
		}
		if faultOf(e.cell) != nil {
			invalid++
		} else {
			valid++
		}
	}
	if len(c.printed.prints) > c.valid {
		a.wrong("%s has fingerprints of what is gone", c.name)
	}
	if valid != c.valid || invalid != c.invalid {
		a.wrong("%s has %d and %d entries, and counts %d and %d", c.name, valid, invalid, c.valid, c.invalid)
	}
	for k, h := range c.absent {
		a.question(h, true)
		if row, there := rows[k]; there && c.cellIn(int(row)) != nil || h.key != k {
			a.wrong("%s holds a question for %s as absent, and it is there", c.name, keyText(k))
		}
	}
	a.question(&c.whole, false)
	if c.owner {
		table.audit(a, c)
	}
}

// auditedTable is a table of keys of any type.
type auditedTable interface {
	// rowsNow returns the rows of all keys. It changes nothing: a table without a map gets none.
	rowsNow(of *collection) map[any]int32
	audit(a *auditor, of *collection)
}

func (t *table[K]) rowsNow(of *collection) map[any]int32 {
	rows := map[any]int32{}
	for k, row := range t.rows {
		rows[k] = row
	}
	if t.rows != nil {
		return rows
	}
	for _, row := range slices.Concat(t.order, t.added) {
		switch {
		case slices.Contains(t.left, row):
		case of.owner && of.entries[row].cell == nil: // of a value that there is none of
			rows[*new(K)] = row
		default:
			rows[t.keyAt(row)] = row
		}
	}
	return rows
}

func (t *table[K]) audit(a *auditor, c *collection) {
	rows := t.rowsNow(c)
	if len(rows)+len(t.free)+len(t.dropped) != int(t.size) {
		a.wrong("%s has %d rows: %d used, %d free, %d dropped", c.name, t.size, len(rows), len(t.free), len(t.dropped))
	}
	used := map[int32]bool{}
	for k, row := range rows {
		if used[row] || c.entries[row] == nil {
			a.wrong("%s %s is in row %d: used twice, or empty", c.name, keyText(k), row)
		}
		used[row] = true
	}
	for _, row := range slices.Concat(t.free, t.dropped) {
		if used[row] || c.entries[row] != nil {
			a.wrong("row %d of %s is free, and is used", row, c.name)
		}
		used[row] = true
	}
	if len(t.left) > len(t.order)+len(t.added) || len(t.added) > int(t.size) {
		a.wrong("%s has %d rows in order, %d added, %d left", c.name, len(t.order), len(t.added), len(t.left))
	}
	if len(t.left)+len(t.added) > 0 || t.order == nil {
		return // to ask for the order changes it
	}
	order := t.order
	if len(order) != len(rows) || !slices.IsSortedFunc(order, func(x, y int32) int { return t.compare(t.keyAt(x), t.keyAt(y)) }) {
		a.wrong("%s is not in order", c.name)
	}
}

func (n *flat) auditAnswers(a *auditor) {
	n.collection.auditAnswers(a)
	for k, q := range n.reasons {
		a.question(q, true)
		if q.key != k {
			a.wrong("%s holds a question under another key", n.name)
		}
	}
}

func (m *mapped) auditRuns(a *auditor) {
	m.audit(a, &m.header)
	for row, r := range m.runs {
		if (r != nil) != (m.entries[row] != nil) {
			a.wrong("row %d of %s has a run (%v), and no entry", row, m.name, r != nil)
		}
	}
}

func (n *flat) auditRuns(a *auditor) {
	n.audit(a, &n.header)
	put := 0
	for row, b := range n.batches {
		if (b != nil) != (n.runs[row] != nil) || b != nil && n.runs[row] != &b.runner {
			a.wrong("row %d of %s has a batch (%v), and another run", row, n.name, b != nil)
		}
		if b == nil {
			continue
		}
		put += len(b.put)
		for _, e := range b.put {
			if e.cell == nil || n.entries[e.row] != e || from(e.cell.anyKey()) != n.in.entries[row].cell.anyKey() {
				a.wrong("row %d of %s has put an entry that is gone, or of another row", row, n.name)
			}
		}
	}
	if put != n.valid+n.invalid {
		a.wrong("%s has %d entries, and its runs have put %d", n.name, n.valid+n.invalid, put)
	}
}

// from returns the key of the input, of a key From.
func from(key any) any { return reflect.ValueOf(key).Field(0).Interface() }

func (n *runsOf) audit(a *auditor, h *header) {
	if len(n.dirty) > 0 {
		a.wrong("%s has dirty rows after the Update", h.name)
	}
	for row := range max(len(n.runs), len(n.in.entries)) {
		there := row < len(n.in.entries) && n.in.entries[row] != nil && n.in.entries[row].cell != nil
		runs := row < len(n.runs) && n.runs[row] != nil
		if runs != there {
			a.wrong("row %d of %s is used (%v), of its input (%v)", row, h.name, runs, there)
		}
		if runs {
			a.runner(h, int32(row), n.runs[row])
		}
	}
}

func (v *value) auditRuns(a *auditor) {
	if len(v.list) > 0 {
		a.wrong("%s is dirty after the Update", v.name)
	}
	a.runner(&v.header, 0, &v.one.runner)
}

func (n *groups) auditRuns(a *auditor) {
	members := map[int32]int{}
	rows := len(n.members.one)
	for row := range n.members.many {
		rows = max(rows, int(row)+1)
	}
	for row := range rows {
		is := n.members.of(int32(row))
		if len(is) > 0 && n.in.validIn(row) == nil {
			a.wrong("%s holds groups of row %d, which is gone or invalid", n.name, row)
		}
		for _, i := range is {
			members[i]++
		}
	}
	for row, e := range n.entries {
		if e == nil {
			continue
		}
		if size := reflect.ValueOf(e.cell.anyValue()).FieldByName("cells").Len(); size != members[int32(row)] {
			a.wrong("group %s of %s has %d members, noted %d", keyText(e.cell.anyKey()), n.name, size, members[int32(row)])
		}
	}
	auditFailures(a, &n.header, n.in, n.failed)
}

func auditFailures(a *auditor, h *header, in *collection, failed failures) {
	rows := in.table.(auditedTable).rowsNow(in)
	for k := range failed {
		if row, there := rows[k]; !there || in.validIn(int(row)) == nil {
			a.wrong("%s holds a panic for %s, which is gone or invalid", h.name, keyText(k))
		}
	}
}

func (n *matched) auditAnswers(a *auditor) {
	for name, s := range n.selections {
		a.question(s, true)
		if s.name != name || s.post.selection != s {
			a.wrong("a selection of %s has another name", n.name)
		}
	}
}

func (n *matched) auditRuns(a *auditor) {
	live := map[*post]bool{}
	for row, p := range n.posts {
		if p == nil {
			continue
		}
		live[p] = true
		if e := n.in.entries[row]; e == nil || e.cell == nil || e.cell != p.cell {
			a.wrong("%s holds a post of row %d, which is gone or another", n.name, row)
		}
	}
	for _, s := range n.selections {
		live[s.post] = true
	}
	n.board.audit(a, n.name, live)
	auditFailures(a, &n.header, n.in, n.failed)
}

// audit compares what hangs with what has to hang.
func (b *board) audit(a *auditor, name string, live map[*post]bool) {
	sets, hang := 0, 0
	for p := range live {
		at, on := b.placesOf(p), b.sets
		if p.selector != nil {
			at, on = p.required(), b.selectors
		} else {
			sets++
		}
		for at := range at {
			hang++
			if _, is := on[at][p]; !is {
				a.wrong("%s: a post is missing at %v", name, at)
			}
		}
	}
	for _, on := range []map[place]map[*post]struct{}{b.sets, b.selectors} {
		for at, all := range on {
			if hang -= len(all); len(all) == 0 {
				a.wrong("%s holds the empty place %v", name, at)
			}
		}
	}
	spare := 0
	for key, n := range b.wanted {
		for p := range live {
			if p.selector != nil {
				for at := range p.required() {
					if at.key == key {
						n--
					}
				}
			}
		}
		if n != 0 {
			a.wrong("%s: selectors at %q are counted wrong", name, key)
		}
		if b.wanted[key] == 0 {
			spare++
		}
	}
	if spare != b.spare {
		a.wrong("%s: %d spare keys, counted %d", name, spare, b.spare)
	}
	if hang != 0 || sets != len(b.all) {
		a.wrong("%s: %d posts too few hang; %d label sets are listed, not %d", name, hang, len(b.all), sets)
	}
}
