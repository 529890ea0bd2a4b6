package derive

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
)

// thing is an element of these tests.
type thing struct {
	Name   string
	Groups string // a letter for each
	Set    map[string]string
}

type things struct{ All []*thing }

func itemsOf(g *Graph[things]) Collection[string, *thing] {
	return Slice(g, "items", func(s *things) []*thing { return s.All }, func(i *thing) string { return i.Name })
}

func updated(t *testing.T, g *Graph[things], all ...*thing) *Reader {
	t.Helper()
	r, err := g.Update(&things{all})
	require.NoError(t, err)
	return r
}

func TestACollectionThatIsSearchedInOrderNeedsNoMap(t *testing.T) {
	g := New[things]("items", Verified())
	in := itemsOf(g)
	before := Map(in, "before", func(r *Reader, k string, _ *thing) (bool, error) {
		_, err := in.Get(r, string(k[0]-1)) // each second one is there
		return err == nil, nil
	})
	var all []*thing
	for c := 'a'; c <= 'z'; c += 2 {
		all = append(all, &thing{Name: string(c)}, &thing{Name: string(c) + "+"})
	}
	updated(t, g, all...)
	assert.Nil(t, tableOf[string](in.c).rows)
	r := updated(t, g, all[1:]...)
	assert.Equal(t, len(all)-1, before.Len(r))
	assert.Nil(t, tableOf[string](in.c).rows)
	for i := range 26 {
		for _, name := range []string{string(rune('a' + i*7%26)), string(rune('a'+i*7%26)) + "+"} {
			_, err := before.Get(r, name)
			assert.Equal(t, (i*7%26)%2 == 0 && name != "a", err == nil, name)
		}
	}
	assert.Len(t, tableOf[string](in.c).rows, len(all)-1, "searches here and there make one")
	r = updated(t, g, all[1], all[0])
	assert.Equal(t, 2, before.Len(r))
	assert.Len(t, tableOf[string](in.c).rows, 2, "it follows from then on")
}

func TestAnEntryIsInNoneOneOrSeveralGroupsByTurns(t *testing.T) {
	g := New[things]("items", Verified())
	groups := GroupBy(itemsOf(g), "groups", func(_ string, i *thing) (all []rune) { return []rune(i.Groups) })
	other := &thing{Name: "z", Groups: "bc"}
	for _, is := range []string{"", "a", "ab", "ba", "aab", "bcd", "b", "", "abcd", "", "c"} {
		r := updated(t, g, &thing{Name: "i", Groups: is}, other)
		for _, group := range "abcd" {
			var members []string
			for k := range groups.Members(r, group).All() {
				members = append(members, k)
			}
			var want []string
			if slices.Contains([]rune(is), group) {
				want = []string{"i"}
			}
			if group == 'b' || group == 'c' {
				want = append(want, "z")
			}
			assert.Equal(t, want, members, "%q in group %c", is, group)
		}
	}
}

func TestALabelSetThatIsAskedForAgainIsComparedWhole(t *testing.T) {
	g := New[things]("items", Verified())
	in := itemsOf(g)
	selecting := BySelector(in, "selectors", func(_ string, i *thing) (string, labels.Selector) {
		return i.Groups, labels.SelectorFromSet(i.Set)
	})
	found := Map(in, "found", func(r *Reader, k string, i *thing) (int, error) {
		return selecting.Matching(r, i.Groups, i.Set).Len(), nil
	})
	set := func(text string) map[string]string {
		s, err := labels.ConvertSelectorToLabelsMap(text)
		require.NoError(t, err)
		return s
	}
	others := []*thing{{Name: "y", Groups: "s", Set: set("a=1")}, {Name: "z", Groups: "s", Set: set("b=1")}}
	for _, c := range []struct {
		scope, set string
		want       int
	}{{"s", "a=1", 2}, {"s", "a=2", 1}, {"s", "b=1", 2}, {"s", "a=1,b=1", 3}, {"t", "a=1,b=1", 1}, {"s", "b=1", 2}, {"s", "", 1}} {
		r := updated(t, g, append([]*thing{{Name: "i", Groups: c.scope, Set: set(c.set)}}, others...)...)
		n, err := found.Get(r, "i")
		require.NoError(t, err)
		assert.Equal(t, c.want, n, "%s in %s", c.set, c.scope)
	}
}

func TestAChangeBehindABlockOfPointersIsSeen(t *testing.T) {
	g := New[things]("items", Verified())
	out := Map(itemsOf(g), "out", func(_ *Reader, _ string, i *thing) (string, error) { return i.Groups, nil })
	var all []*thing
	for i := range 3*blockOf + 5 {
		all = append(all, &thing{Name: string(rune('A' + i))})
	}
	updated(t, g, all...)
	for _, at := range []int{0, blockOf - 1, blockOf, 2*blockOf + 1, len(all) - 1} {
		all = slices.Clone(all)
		all[at] = &thing{Name: all[at].Name, Groups: "new"}
		r := updated(t, g, all...)
		got, err := out.Get(r, all[at].Name)
		require.NoError(t, err)
		assert.Equal(t, "new", got)
		assert.Equal(t, 1, g.Stats().Nodes[1].LastRuns, "of element %d", at)
	}
}

func TestTheFirstEntriesOfACollectionComeInAnyUpdate(t *testing.T) {
	g := New[things]("items", Verified())
	in := itemsOf(g)
	some := Map(in, "some", func(_ *Reader, _ string, i *thing) (string, error) {
		if i.Groups == "" {
			return "", Skip
		}
		return i.Groups, nil
	})
	groups := GroupBy(some, "groups", func(_, in string) []string { return []string{in} })
	sizes := Map(groups.Groups(), "sizes", func(_ *Reader, _ string, is Group[string, string]) (int, error) { return is.Len(), nil })
	for _, step := range []struct {
		a, b  string
		sizes map[string]int
		runs  int // of sizes
	}{
		{sizes: map[string]int{}},
		{b: "x", sizes: map[string]int{"x": 1}, runs: 1},
		{a: "x", b: "x", sizes: map[string]int{"x": 2}, runs: 1},
		{a: "x", b: "y", sizes: map[string]int{"x": 1, "y": 1}, runs: 2},
		{a: "z", b: "y", sizes: map[string]int{"z": 1, "y": 1}, runs: 1},
		{sizes: map[string]int{}},
		{a: "z", sizes: map[string]int{"z": 1}, runs: 1},
	} {
		r := updated(t, g, &thing{Name: "a", Groups: step.a}, &thing{Name: "b", Groups: step.b})
		assert.Equal(t, step.sizes, all(r, sizes))
		assert.Equal(t, step.runs, g.Stats().Nodes[3].LastRuns, "%v", step.sizes)
	}
}
