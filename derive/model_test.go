package derive

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/test/suite/rounds"
)

// model is a random graph beside its naive evaluator.
type model struct {
	g        *Graph[scene]
	specs    []spec
	nodes    []*live
	copies   map[int]*copied
	counting bool
	ran      map[runOf]int
	before   *naive // of the last Update; nil: the next one is a first one
	kept     []keptGroup
	history  history
	steps    int
}

// keptGroup is a group that a program keeps, and what it was.
type keptGroup struct {
	text string
	now  func() string
}

// TestModelDeriveEqualsAnEvaluationFromScratch draws graphs and snapshots. After each Update the
// graph has what the naive evaluator makes of the snapshot. A function has run if its input or an
// answer is another, once, and not else. The graph holds nothing that it does not need. A step is
// an Update that was compared.
func TestModelDeriveEqualsAnEvaluationFromScratch(t *testing.T) {
	rounds.Check(t, func(t *rapid.T, step func()) {
		m := drawModel(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now := m.history.next(t)
			if rapid.IntRange(0, 9).Draw(t, "skipped") == 0 {
				continue
			}
			m.update(t, now)
			step()
		}
	})
}

// drawModel draws a graph.
func drawModel(t *rapid.T) *model {
	m := &model{g: New[scene]("model"), copies: map[int]*copied{}, ran: map[runOf]int{}}
	for i := range rapid.IntRange(3, 10).Draw(t, "nodes") {
		s := m.drawSpec(t, i)
		m.specs = append(m.specs, s)
	}
	for i := range m.specs {
		s := &m.specs[i]
		m.complete(s)
		l := m.declare(s)
		m.nodes = append(m.nodes, l)
		if l.follow != nil && s.seed%3 == 0 {
			m.copies[i] = l.follow()
		}
	}
	return m
}

// drawSpec draws a node over those before it.
func (m *model) drawSpec(t *rapid.T, i int) spec {
	s := spec{index: i, name: fmt.Sprintf("n%d", i), in: -1}
	s.seed = rapid.Uint64().Draw(t, "seed")
	s.coarse = s.seed%5 < 2
	source := func() spec {
		s.kind = nodeKind(rapid.IntRange(int(kObjects), int(kNumber)).Draw(t, "source"))
		s.keys = map[nodeKind][]string{kObjects: objectKeys, kRecords: recordKeys, kPointers: recordKeys}[s.kind]
		return s
	}
	if i == 0 || rapid.IntRange(0, 5).Draw(t, "is source") == 0 {
		return source()
	}
	kind := nodeKind(rapid.IntRange(int(kMap), int(kCompute)).Draw(t, "kind"))
	if kind == kCompute {
		s.kind = kind
		return s
	}
	in := m.specs[rapid.IntRange(0, i-1).Draw(t, "in")]
	if !m.fits(kind, in) {
		kind = kMap
	}
	if !m.fits(kind, in) {
		return source()
	}
	s.kind, s.in, s.keys = kind, in.index, in.keys
	switch kind {
	case kGroups:
		s.keys = groupKeys
	case kFlat:
		s.keys = nil
		for _, k := range in.keys {
			for _, j := range innerKeys {
				s.keys = append(s.keys, k+" "+j)
			}
		}
	case kKeys:
		s.name = in.name + " (keys)"
	}
	return s
}

// fits tells whether a node of a kind can be made of another.
func (m *model) fits(kind nodeKind, in spec) bool {
	derived := in.kind == kMap || in.kind == kFlat
	source := in.kind <= kPointers
	depth := 0
	for x := in; x.in >= 0; x = m.specs[x.in] {
		if x.kind == kFlat {
			depth++
		}
	}
	switch kind {
	case kMap:
		return source || derived || in.kind == kGroups || in.kind == kKeys
	case kFlat:
		return (source || derived || in.kind == kKeys) && (depth == 0 || depth == 1 && strings.HasPrefix(in.keys[0], objectKeys[0]))
	case kKeys:
		return in.kind == kGroups && !slices.ContainsFunc(m.specs, func(o spec) bool { return o.kind == kKeys && o.in == in.index })
	}
	return source || derived
}

// complete lists what the functions of a node can look up.
func (m *model) complete(s *spec) {
	for j := range m.specs[:s.index] {
		for i := range 4 {
			h := mix(s.seed, fmt.Sprint(j, i))
			l := look{node: j, n: int(h >> 8 % 64)}
			switch o := &m.specs[j]; o.kind {
			case kText, kNumber, kCompute:
				l.how = 'v'
			case kLabels:
				l.how = 's'
			case kSelectors:
				l.how = 'x'
			default:
				l.how = "ggggggali"[h>>20%9]
				if o.kind == kGroups && i > 0 {
					l.how = 'm'
				}
				l.key = o.keys[h>>32%uint64(len(o.keys))]
			}
			s.looks = append(s.looks, l)
		}
	}
	if later := s.index + int(s.seed>>40%2); s.seed%4 == 0 && later < len(m.specs) {
		if k := m.specs[later].kind; k != kLabels && k != kSelectors {
			s.looks = append(s.looks, look{how: 'f', node: later})
		}
	}
}

// update brings a snapshot, and compares.
func (m *model) update(t *rapid.T, now scene) {
	m.steps++
	if rapid.IntRange(0, 19).Draw(t, "reset") == 0 {
		if err := m.g.Reset(); err != nil {
			t.Fatal(err)
		}
		m.before = nil
	}
	clear(m.ran)
	m.counting = true
	r, err := m.g.Update(&now)
	m.counting = false
	if err != nil {
		t.Fatal(err)
	}
	want := evaluated(m, now)
	m.compare(t, r, want)
	m.compareRuns(t, want)
	m.compareCopies(t, r, want)
	for _, what := range m.g.c.faults() {
		t.Errorf("the graph is not sound: %s", what)
	}
	if m.steps%8 == 0 {
		if err := m.g.Verify(); err != nil {
			t.Errorf("Verify: %v", err)
		}
		for _, what := range m.g.c.faults() {
			t.Errorf("the graph is not sound after Verify: %s", what)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	m.before = want
}

// compare compares all that can be read.
func (m *model) compare(t *rapid.T, r *Reader, want *naive) {
	same := func(s *spec, what, got, want string) {
		if got != want {
			t.Errorf("%s of %s (kind %d): got %q, from scratch it is %q", what, s.name, s.kind, got, want)
		}
	}
	for i, l := range m.nodes {
		s := &m.specs[i]
		if l.all != nil {
			// Orders are made when somebody asks for them, so that not all of them are asked for.
			if (m.steps+i)%5 == 0 {
				same(s, "All", l.all(r), want.all(i))
				same(s, "Invalid", l.invalid(r), want.invalid(i))
			}
			same(s, "Len", l.length(r), want.answer(look{how: 'l', node: i}))
			for _, k := range s.keys {
				same(s, "Get "+k, l.get(r, k), want.get(i, k))
			}
		}
		if l.value != nil {
			same(s, "the value", l.value(r), want.get(i, ""))
		}
		if l.members != nil {
			for _, k := range groupKeys {
				same(s, "members "+k, l.members(r, k), want.answer(look{how: 'm', node: i, key: k}))
			}
		}
		if l.chosen != nil {
			for n := range 4 {
				x := look{how: map[nodeKind]byte{kLabels: 's', kSelectors: 'x'}[s.kind], node: i, n: (m.steps*4 + n) % 64}
				same(s, x.String(), l.chosen(r, x), want.answer(x))
			}
		}
		if l.keep != nil && len(m.kept) < 40 {
			x := look{how: 'm', node: i, key: groupKeys[m.steps%4], n: m.steps % 64}
			now := l.keep(r, x)
			m.kept = append(m.kept, keptGroup{now(), now})
		}
	}
	for _, k := range m.kept {
		if now := k.now(); now != k.text {
			t.Errorf("a group that was kept was %q and is %q", k.text, now)
		}
	}
	if len(m.kept) >= 40 {
		m.kept = m.kept[20:]
	}
}

// compareRuns compares which functions have run with those whose inputs and answers are others.
func (m *model) compareRuns(t *rapid.T, want *naive) {
	runs := map[runOf]int{}
	for run, trace := range want.traces {
		if m.before == nil {
			runs[run] = 1
		} else if was, there := m.before.traces[run]; !there || was != trace {
			runs[run] = 1
		}
	}
	if maps.Equal(runs, m.ran) {
		return
	}
	for run, n := range m.ran {
		if runs[run] != n {
			t.Errorf("%s %q ran %d times, not %d: %q, then %q", m.specs[run.node].name, run.key, n, runs[run], m.traceBefore(run), want.traces[run])
		}
	}
	for run := range runs {
		if m.ran[run] == 0 {
			t.Errorf("%s %q has not run: %q, then %q", m.specs[run.node].name, run.key, m.traceBefore(run), want.traces[run])
		}
	}
}

func (m *model) traceBefore(run runOf) string {
	if m.before == nil {
		return "(a first Update)"
	}
	return m.before.traces[run]
}

// compareCopies applies the changes to copies.
func (m *model) compareCopies(t *rapid.T, r *Reader, want *naive) {
	for i, c := range m.copies {
		if rapid.IntRange(0, 2).Draw(t, "look at changes") == 0 {
			continue
		}
		now := maps.Clone(c.kept)
		odd := c.apply(r, now)
		if odd != "" {
			t.Errorf("changes of %s: %s", m.specs[i].name, odd)
		}
		all := map[string]string{}
		for k, e := range want.nodes[i].entries {
			if all[k] = "." + e.text; e.err != "" {
				all[k] = want.get(i, k)
			}
		}
		if !maps.Equal(now, all) {
			t.Errorf("a copy of %s with its changes is %q, not %q", m.specs[i].name, now, all)
		}
		if rapid.IntRange(0, 2).Draw(t, "done") == 0 {
			c.done()
			c.kept = now
		}
	}
}
