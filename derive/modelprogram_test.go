package derive

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// A model is a random graph with random functions. A function is a seed: what it looks up, and
// what it returns, are hashes of the seed, its input and the answers. So both sides, the package
// and the naive evaluator, run the same functions, on texts.

type nodeKind int

const (
	kObjects nodeKind = iota
	kRecords
	kPointers
	kText
	kNumber
	kMap
	kFlat
	kGroups
	kKeys
	kLabels
	kSelectors
	kCompute
)

// spec is one node of a random graph.
type spec struct {
	kind   nodeKind
	name   string
	index  int
	in     int // the node that it reads
	seed   uint64
	coarse bool     // its Equal does not look at what nobody reads
	keys   []string // that its entries can have
	looks  []look   // what its functions can ask
}

// look is one look-up.
type look struct {
	how  byte // get, all, len, invalid, members, select, matching, value; 'f': a later node
	node int
	key  string
	n    int // of a selector or a label set
}

func (l look) String() string { return fmt.Sprintf("%c%d %s %d", l.how, l.node, l.key, l.n) }

// asks answers look-ups with texts. That of an error begins with "!".
type asks interface {
	look(l look) string
}

// mix makes a hash of a hash and a text.
func mix(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	h ^= h >> 29
	return h * 0x9E3779B97F4A7C15
}

// val is what functions return. A coarse Equal does not tell apart what is Hidden.
type val struct {
	Seen   string
	Hidden uint64
}

func sameSeen(a, b val) bool { return a.Seen == b.Seen }

// text is what a reader of a val sees.
func (s *spec) text(v val) string {
	if s.coarse {
		return v.Seen
	}
	return v.Seen + "." + strconv.FormatUint(v.Hidden, 10)
}

var (
	errBad  = errors.New("bad")
	errLeft = fmt.Errorf("left out: %w", Skip)
)

type putting struct {
	key string
	val val
}

// run is the function of a node: of a Map or a Compute it returns a value, of a FlatMap it puts.
func (s *spec) run(env asks, key, in string) (v val, puts []putting, err error) {
	h := mix(mix(s.seed, key), in)
	for range h % 4 {
		if len(s.looks) == 0 {
			break
		}
		l := s.looks[(h>>8)%uint64(len(s.looks))]
		answer := env.look(l)
		h = mix(h, answer)
		if strings.HasPrefix(answer, "!") && h%3 == 0 {
			return v, nil, errors.New(answer[1:])
		}
	}
	switch h >> 16 % 24 {
	case 0, 1:
		return v, nil, Skip
	case 2:
		return v, nil, errLeft
	case 3, 4:
		return v, nil, errBad
	case 5:
		panic("boom")
	}
	v = val{Seen: strconv.Itoa(int(h >> 24 % 3)), Hidden: h >> 32 % 5}
	for i := range h >> 40 % 4 {
		j := mix(h, strconv.Itoa(int(i)))
		puts = append(puts, putting{innerKeys[j%4], val{Seen: strconv.Itoa(int(j >> 8 % 3)), Hidden: j >> 16 % 5}})
	}
	return v, puts, nil
}

var (
	innerKeys = []string{"", "x", "y", "z"}
	groupKeys = []string{"g0", "g1", "g2", "g3"}
	scopes    = []string{"s", "t"}
	labelSets = []map[string]string{
		nil, {"a": "1"}, {"a": "2"}, {"a": "1", "b": "1"}, {"b": "1"}, {"b": "2", "c": "1"}, {"": "1"}, {"a": "1,b=1"},
	}
	selectors = []labels.Selector{
		nil, labels.Nothing(), labels.Everything(), parsed("a=1"), parsed("a in (1,2)"), parsed("a notin (1)"), parsed("a"), parsed("!a"),
		parsed("a=1,b=1"), parsed("b in (1,2),a!=2"), parsed("c"), labels.SelectorFromSet(labels.Set{"a": "1,b=1"}),
		labels.SelectorFromSet(labels.Set{"": "1"}),
	}
)

func parsed(text string) labels.Selector {
	s, err := labels.Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

// low is what indexes read of an entry: much of what changes is not in it.
func (s *spec) low(key, in string) uint64 {
	if i := strings.IndexByte(in, '#'); i >= 0 {
		in = in[:i]
	}
	h := mix(mix(s.seed, key), in)
	if h%20 == 0 {
		panic("boom")
	}
	return h >> 8
}

// groupsFor is the function of a GroupBy. Some groups are there twice.
func (s *spec) groupsFor(key, in string) (all []string) {
	h := s.low(key, in)
	for i := range h % 4 {
		all = append(all, groupKeys[h>>(8+4*i)%4])
	}
	return all
}

// labelsFor is the function of a ByLabels, and selectorFor that of a BySelector.
func (s *spec) labelsFor(key, in string) (string, map[string]string) {
	h := s.low(key, in)
	return scopes[h%8/7], labelSets[h>>8%uint64(len(labelSets))]
}

func (s *spec) selectorFor(key, in string) (string, labels.Selector) {
	h := s.low(key, in)
	return scopes[h%8/7], selectors[h>>8%uint64(len(selectors))]
}

// panicText is the error of a function that panics with a text.
func (s *spec) panicText(value any) string {
	return fmt.Sprintf("the function of %s panicked: %v", s.name, value)
}

// shownKey is how errors write a key.
func shownKey(key string) string { return strings.ReplaceAll(key, " ", "/") }
