package derive

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// postNames are the names of posts.
type postNames map[*post]string

// lots are label sets and selectors of all kinds, in two scopes.
func lots() (sets, all []*post, named postNames) {
	named = postNames{}
	for i, set := range labelSets {
		for _, scope := range scopes {
			p := &post{scope: scope, set: set}
			named[p] = fmt.Sprint("set ", i, scope)
			sets = append(sets, p)
		}
	}
	more, _ := labels.NewRequirement("a", selection.GreaterThan, []string{"1"})
	for i, s := range append(selectors[1:len(selectors):len(selectors)], labels.NewSelector().Add(*more), parsed("a==2,b")) {
		for _, scope := range scopes {
			p := selectorPost(scope, s)
			named[p] = fmt.Sprint("selector ", i, scope, " ", p.text)
			all = append(all, p)
		}
	}
	return sets, all, named
}

func matches(selector, set *post) bool {
	return selector.scope == set.scope && selector.selector.Matches(labels.Set(set.set))
}

func (named postNames) found(b *board, p *post) map[string]int {
	found := map[string]int{}
	for q := range b.matching(p) {
		found[named[q]]++
	}
	return found
}

func TestABoardFindsWhatMatchesEachOnceWhateverWasAddedFirst(t *testing.T) {
	sets, selectors, named := lots()
	for _, first := range []bool{true, false} {
		b := newBoard()
		if first {
			for _, p := range selectors {
				b.add(p)
			}
		}
		for _, p := range sets {
			b.add(p)
		}
		for _, p := range selectors {
			want := map[string]int{}
			for _, set := range sets {
				if matches(p, set) {
					want[named[set]] = 1
				}
			}
			assert.Equal(t, want, named.found(b, p), named[p])
		}
		if !first {
			for _, p := range selectors {
				b.add(p)
			}
		}
		for _, set := range sets {
			want := map[string]int{}
			for _, p := range selectors {
				if matches(p, set) {
					want[named[p]] = 1
				}
			}
			assert.Equal(t, want, named.found(b, set), named[set])
		}
		for i := range sets {
			b.remove(sets[i])
		}
		for i := range selectors {
			b.remove(selectors[i])
		}
		assert.Empty(t, b.sets)
		assert.Empty(t, b.selectors)
		assert.Empty(t, b.all)
	}
}

func TestSelectorsWithEqualTextsThatSelectOtherwiseAreOtherSelections(t *testing.T) {
	one, other := labels.SelectorFromSet(labels.Set{"a": "1,b=1"}), labels.SelectorFromSet(labels.Set{"a": "1", "b": "1"})
	assert.Equal(t, one.String(), other.String(), "apimachinery does not tell them apart")
	assert.NotEqual(t, selectorText(one), selectorText(other))
	assert.NotEqual(t, selectorText(labels.Nothing()), selectorText(labels.Everything()))
	assert.Equal(t, selectorText(parsed("a in (2,1),b")), selectorText(parsed("b,a in (1,2)")))

	g := New[world]("g")
	labeled := ByLabels(sourceA(g), "labels", func(_ string, x item) (string, map[string]string) { return "", labels.Set{"a": x.Ref} })
	both := Compute(g, "both", func(r *Reader) ([2]int, error) {
		return [2]int{labeled.Select(r, "", other).Len(), labeled.Select(r, "", one).Len()}, nil
	})
	r := update(t, g, world{A: []item{{Key: "x", Ref: "1,b=1"}}})
	counts, _ := both.Get(r)
	assert.Equal(t, [2]int{0, 1}, counts)
}

func TestNothingSelectsAnEntryWhoseFunctionPanicsOrWhoseSelectorIsNil(t *testing.T) {
	g := New[world]("g")
	a := sourceA(g)
	labeled := ByLabels(a, "labels", func(_ string, x item) (string, map[string]string) {
		if x.N == 1 {
			panic("boom")
		}
		return "", nil
	})
	selecting := BySelector(a, "selectors", func(_ string, x item) (string, labels.Selector) {
		switch x.N {
		case 1:
			panic("boom")
		case 2:
			return "", nil
		}
		return "", labels.Everything()
	})
	w := world{A: []item{{Key: "x"}, {Key: "y", N: 1}, {Key: "z", N: 2}}}
	r := update(t, g, w)
	assert.Equal(t, []string{"x", "z"}, keysOf(labeled.Select(r, "", labels.Everything())))
	assert.Empty(t, keysOf(labeled.Select(r, "", nil)))
	assert.Empty(t, keysOf(labeled.Select(r, "elsewhere", labels.Everything())))
	assert.Equal(t, []string{"x"}, keysOf(selecting.Matching(r, "", nil)))
	nodes := g.Stats().Nodes
	assert.EqualError(t, nodes[1].Example, "labels y: the function of labels panicked: boom")
	assert.Equal(t, [2]int{1, 1}, [2]int{nodes[1].Invalid, nodes[2].Invalid})
	w.A = []item{{Key: "x"}}
	update(t, g, w)
	assert.Zero(t, g.Stats().Nodes[1].Invalid)
}

func TestASelectionIsSharedAndForgottenWithItsLastAsker(t *testing.T) {
	g := New[world]("g")
	var j journal
	labeled := ByLabels(sourceA(g), "labels", func(_ string, x item) (string, map[string]string) { return "", labels.Set{"app": x.Ref} })
	Map(sourceB(g), "out", func(r *Reader, k string, x item) (int, error) {
		j.ran(k)
		return labeled.Select(r, "", labels.SelectorFromSet(labels.Set{"app": x.Ref})).Len(), nil
	})
	w := world{A: []item{{"p", "1", 0}, {"q", "2", 0}}, B: []item{{Key: "x", Ref: "1"}, {Key: "y", Ref: "1"}, {Key: "z", Ref: "2"}}}
	update(t, g, w)
	assert.Len(t, labeled.n.selections, 2)
	assert.Equal(t, 2, g.Stats().Nodes[1].Entries)
	j.since()
	w.A = []item{{"p", "1", 1}, {"q", "2", 0}}
	update(t, g, w)
	assert.ElementsMatch(t, []string{"x", "y"}, j.since(), "a member has another value")
	w.A = []item{{"p", "1", 1}, {"q", "2", 0}, {"r", "3", 0}}
	update(t, g, w)
	assert.Empty(t, j.since(), "no selection has the new one")
	w.A = []item{{"p", "2", 1}, {"q", "2", 0}, {"r", "3", 0}}
	update(t, g, w)
	assert.ElementsMatch(t, []string{"x", "y", "z"}, j.since(), "it moves")
	w.B = []item{{Key: "x", Ref: "1"}}
	update(t, g, w)
	assert.Len(t, labeled.n.selections, 1)
	w.B = nil
	update(t, g, w)
	assert.Empty(t, labeled.n.selections)
	assert.Empty(t, labeled.n.board.selectors)
}
