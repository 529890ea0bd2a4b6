package derive

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
)

// A program whose keys, groups, labels and look-ups are ever new ones holds what there is now.
func TestALongRunDoesNotGrowWhatIsHeld(t *testing.T) {
	g := New[world]("g")
	a, b := sourceA(g), sourceB(g)
	byRef := GroupBy(a, "by ref", func(_ string, x item) []string { return []string{x.Ref} })
	labeled := ByLabels(a, "labels", func(_ string, x item) (string, map[string]string) {
		return x.Ref, map[string]string{x.Ref: x.Key}
	})
	selecting := BySelector(b, "selectors", func(_ string, x item) (string, labels.Selector) {
		return "", labels.SelectorFromSet(labels.Set{x.Ref: "v"})
	})
	flat := FlatMap(a, "flat", func(_ *Reader, _ string, x item, put func(string, int)) error { put(x.Ref, x.N); return nil })
	out := Map(b, "out", func(r *Reader, k string, x item) (int, error) {
		_, _ = a.Get(r, x.Ref)
		_, _ = flat.Get(r, From[string, string]{x.Ref, k})
		labeled.Select(r, x.Ref, labels.SelectorFromSet(labels.Set{x.Ref: x.Key}))
		selecting.Matching(r, "", map[string]string{x.Ref: "v"})
		return byRef.Members(r, x.Ref).Len(), nil
	})
	ChangesOf(out)
	random := rand.New(rand.NewPCG(1, 2))
	serial := 0
	next := func() (all []item) {
		for range 5 + random.IntN(5) {
			serial++
			all = append(all, item{fmt.Sprintf("k%07d", serial), fmt.Sprint("r", serial-random.IntN(10)), random.IntN(3)})
		}
		return all
	}
	for range 3000 {
		r := update(t, g, world{A: next(), B: next()})
		labeled.Select(r, "x", labels.SelectorFromSet(labels.Set{fmt.Sprint("once", serial): ""}))
	}
	held := map[string]int{
		"rows": int(tableOf[string](a.c).size), "groups": int(tableOf[string](&byRef.n.collection).size), "rows of flat": int(tableOf[From[string, string]](flat.c).size),
		"absent keys": len(a.c.absent) + len(flat.c.absent), "selections": len(labeled.n.selections) + len(selecting.n.selections),
		"keys of labels": len(labeled.n.board.wanted) + len(selecting.n.board.wanted),
		"places":         len(labeled.n.board.sets) + len(selecting.n.board.sets) + len(selecting.n.board.selectors),
		"changes":        len(out.c.followers[0].(*Changes[string, int]).was), "posts": len(labeled.n.posts),
		"askers": a.c.whole.askers(), "impure": len(g.c.impure),
	}
	for what, n := range held {
		assert.Less(t, n, 150, what)
	}
	update(t, g, world{})
	assert.Empty(t, a.c.absent)
	assert.Empty(t, labeled.n.selections)
	assert.Empty(t, labeled.n.board.all)
	assert.Empty(t, selecting.n.board.selectors)
	assert.Equal(t, [2]int{}, [2]int{len(tableOf[string](a.c).rows), len(tableOf[From[string, string]](flat.c).rows)})
}

func TestTheRowOfADepartedKeyIsGivenToAnotherInTheNextUpdateAtTheEarliest(t *testing.T) {
	g := New[world]("g")
	a := sourceA(g)
	out := Map(a, "out", func(_ *Reader, k string, _ item) (string, error) { return k, nil })
	update(t, g, world{A: []item{{Key: "x"}}})
	r := update(t, g, world{A: []item{{Key: "y"}}})
	assert.Equal(t, map[string]string{"y": "y"}, all(r, out))
	assert.EqualValues(t, 2, tableOf[string](a.c).size, "y does not have the row that x has left")
	r = update(t, g, world{A: []item{{Key: "z"}}})
	assert.Equal(t, map[string]string{"z": "z"}, all(r, out))
	assert.EqualValues(t, 2, tableOf[string](a.c).size, "z has the row of x")
}

func TestTheGraphBeginsAgainBeforeTheNumbersOfRunsRunOut(t *testing.T) {
	before := lastNumber
	lastNumber = 20
	defer func() { lastNumber = before }()
	g := New[world]("g")
	a := sourceA(g)
	var j journal
	out := Map(a, "out", func(r *Reader, k string, x item) (int, error) {
		j.ran(k)
		y, err := a.Get(r, x.Ref)
		return x.N + y.N, err
	})
	firsts := 0
	for n := range 30 {
		was := g.c.rec.number
		r := update(t, g, world{A: []item{{"x", "y", n}, {"y", "x", n}, {"z", "z", 0}}})
		assert.Equal(t, map[string]int{"x": 2 * n, "y": 2 * n, "z": 0}, all(r, out))
		if len(j.since()) == 3 {
			firsts++
			assert.True(t, n == 0 || was > lastNumber)
		}
		require.Less(t, g.c.rec.number, lastNumber+10)
	}
	assert.Greater(t, firsts, 2)
}
