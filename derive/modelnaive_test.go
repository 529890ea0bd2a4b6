package derive

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// naive evaluates a model from scratch, on texts. It has no code of the package.
type naive struct {
	m     *model
	nodes []naiveNode
	// traces are the inputs, questions and answers of each run, by node and key.
	traces map[runOf]string
}

// runOf names a run of a function.
type runOf struct {
	node int
	key  string
}

// naiveNode is what a node has.
type naiveNode struct {
	entries map[string]naiveEntry
	groups  map[string][]string // of an index: the keys of its members
	posts   map[string]naivePost
	why     map[string]string // of a FlatMap: the error of the run of an input
}

// naiveEntry is a text, or an error.
type naiveEntry struct {
	text, err string
	key       string // of a FlatMap: the key of the input
}

type naivePost struct {
	scope    string
	set      map[string]string
	selector labels.Selector
}

func evaluated(m *model, s scene) *naive {
	n := &naive{m: m, traces: map[runOf]string{}}
	for i := range m.specs {
		n.nodes = append(n.nodes, naiveNode{entries: map[string]naiveEntry{}, groups: map[string][]string{},
			posts: map[string]naivePost{}, why: map[string]string{}})
		n.evaluate(&m.specs[i], s)
	}
	return n
}

func (n *naive) evaluate(s *spec, now scene) {
	here := n.nodes[s.index].entries
	add := func(key, text string) {
		if _, there := here[key]; there {
			here[key] = naiveEntry{err: "the key is there twice"}
			return
		}
		here[key] = naiveEntry{text: text}
	}
	switch s.kind {
	case kObjects:
		for _, o := range now.objects {
			if o != nil {
				add(o.Namespace+"/"+o.Name, objectText(o))
			}
		}
	case kRecords:
		for _, r := range now.records {
			add(r.Key, recordText(r))
		}
	case kPointers:
		for _, r := range now.pointers {
			if r != nil {
				add(r.Key, pointerText(r))
			}
		}
	case kText:
		add("", now.text)
	case kNumber:
		add("", fmt.Sprint(now.number))
	case kCompute:
		n.run(s, "", "")
	default:
		for key, e := range n.nodes[s.in].entries {
			n.derive(s, key, e)
		}
		for g, keys := range n.nodes[s.index].groups {
			slices.Sort(keys)
			here[g] = naiveEntry{text: n.members(s.in, keys)}
		}
	}
}

func (n *naive) derive(s *spec, key string, e naiveEntry) {
	here := n.nodes[s.index]
	switch {
	case s.kind == kKeys:
		here.entries[key] = naiveEntry{}
	case e.err != "" && (s.kind == kMap || s.kind == kFlat):
		n.fail(s, key, n.m.specs[s.in].name+" "+shownKey(key)+": "+e.err)
	case e.err != "":
	case s.kind == kMap || s.kind == kFlat:
		n.run(s, key, e.text)
	default:
		defer func() { _ = recover() }()
		switch s.kind {
		case kGroups:
			for _, g := range s.groupsFor(key, e.text) {
				if !slices.Contains(here.groups[g], key) {
					here.groups[g] = append(here.groups[g], key)
				}
			}
		case kLabels:
			scope, set := s.labelsFor(key, e.text)
			here.posts[key] = naivePost{scope: scope, set: set}
		case kSelectors:
			scope, selector := s.selectorFor(key, e.text)
			here.posts[key] = naivePost{scope: scope, selector: selector}
		}
	}
}

// fail makes the entry of an input invalid.
func (n *naive) fail(s *spec, key, err string) {
	if s.kind == kFlat {
		n.nodes[s.index].why[key] = err
		n.nodes[s.index].entries[key+" "] = naiveEntry{err: err, key: key}
		return
	}
	n.nodes[s.index].entries[key] = naiveEntry{err: err}
}

// run runs a function, and keeps what it has asked.
func (n *naive) run(s *spec, key, in string) {
	env := &tracing{of: n, s: s}
	env.trace.WriteString(in)
	v, puts, err := env.run(key, in)
	n.traces[runOf{s.index, key}] = env.trace.String()
	here := n.nodes[s.index].entries
	switch {
	case err == Skip, err == errLeft:
	case err != nil:
		n.fail(s, key, err.Error())
	case s.kind == kFlat:
		for _, p := range puts {
			k := key + " " + p.key
			if _, there := here[k]; there {
				here[k] = naiveEntry{err: "the key is there twice", key: key}
				continue
			}
			here[k] = naiveEntry{text: s.text(p.val), key: key}
		}
	default:
		here[key] = naiveEntry{text: s.text(v)}
	}
}

// tracing answers the look-ups of one run.
type tracing struct {
	of    *naive
	s     *spec
	trace strings.Builder
}

func (e *tracing) run(key, in string) (v val, puts []putting, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s", e.s.panicText(p))
		}
	}()
	return e.s.run(e, key, in)
}

func (e *tracing) look(l look) string {
	if l.how == 'f' {
		panic(fmt.Sprintf("derive: %q reads %q, which is not declared before it", e.s.name, e.of.m.specs[l.node].name))
	}
	answer := e.of.answer(l)
	question := l
	if strings.ContainsRune("ali", rune(l.how)) {
		// These ask for the whole collection: an answer is another one if anything is.
		question.how = 'a'
		e.trace.WriteString(e.of.all(l.node) + e.of.invalid(l.node))
	}
	fmt.Fprintf(&e.trace, "\n%c%d %s %d: %s", question.how, l.node, l.key, l.n, answer)
	return answer
}

// look answers with what there is.
func (n *naive) answer(l look) string {
	here := n.nodes[l.node]
	switch l.how {
	case 'g':
		return n.get(l.node, l.key)
	case 'v':
		return n.get(l.node, "")
	case 'a':
		return n.all(l.node)
	case 'i':
		return n.invalid(l.node)
	case 'l':
		valid := 0
		for _, e := range here.entries {
			if e.err == "" {
				valid++
			}
		}
		return fmt.Sprint(valid)
	case 'm':
		return here.entries[l.key].text
	}
	var keys []string
	for key, p := range here.posts {
		if p.scope != scopes[l.n%2] {
			continue
		}
		s, set := p.selector, labelSets[l.n/2%len(labelSets)]
		if l.how == 's' {
			s, set = selectors[l.n/2%len(selectors)], p.set
		}
		if s != nil && s.Matches(labels.Set(set)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return n.members(n.m.specs[l.node].in, keys)
}

func (n *naive) get(node int, key string) string {
	e, there := n.nodes[node].entries[key]
	s := &n.m.specs[node]
	if !there && s.kind == kFlat {
		e.err, there = n.nodes[node].why[key[:strings.LastIndexByte(key, ' ')]]
	}
	switch {
	case !there:
		return "!no entry with this key"
	case e.err == "":
		return e.text
	case key == "":
		return "!" + s.name + ": " + e.err
	}
	return "!" + s.name + " " + shownKey(key) + ": " + e.err
}

func (n *naive) members(node int, keys []string) string {
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(k + "=" + n.nodes[node].entries[k].text + ";")
	}
	return b.String()
}

func (n *naive) all(node int) string {
	return n.list(node, func(e naiveEntry) (string, bool) { return e.text, e.err == "" })
}

func (n *naive) invalid(node int) string {
	return n.list(node, func(e naiveEntry) (string, bool) { return e.err, e.err != "" })
}

func (n *naive) list(node int, text func(naiveEntry) (string, bool)) string {
	var keys []string
	for k := range n.nodes[node].entries {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var b strings.Builder
	for _, k := range keys {
		if x, is := text(n.nodes[node].entries[k]); is {
			b.WriteString(k + "=" + x + ";")
		}
	}
	return b.String()
}
