package derive

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNodesAreEvaluatedInTheOrderOfTheirDeclarationEachOnce(t *testing.T) {
	g := New[world]("g")
	var j journal
	a := sourceA(g)
	left := Map(a, "left", func(_ *Reader, k string, x item) (int, error) { j.ran("left", k); return x.N + 1, nil })
	right := Map(a, "right", func(_ *Reader, k string, x item) (int, error) { j.ran("right", k); return x.N + 1, nil })
	sum := Map(left, "sum", func(r *Reader, k string, x int) (int, error) {
		j.ran("sum", k)
		y, err := right.Get(r, k)
		return x - y, err
	})
	for n := range 3 {
		r := update(t, g, world{A: []item{{Key: "x", N: n}}})
		assert.Equal(t, []string{"left x", "right x", "sum x"}, j.since())
		assert.Equal(t, map[string]int{"x": 0}, all(r, sum), "a diamond shows no state between two snapshots")
	}
}

func TestToReadALaterNodeOrItsOwnIsAnErrorOfTheEntry(t *testing.T) {
	g := New[world]("g")
	a := sourceA(g)
	var own, later Collection[string, int]
	own = Map(a, "own", func(r *Reader, k string, x item) (int, error) {
		if x.N == 0 {
			return own.Len(r), nil
		}
		return later.Get(r, k)
	})
	later = Map(a, "later", func(*Reader, string, item) (int, error) { return 1, nil })
	r := update(t, g, world{A: []item{{Key: "x"}, {Key: "y", N: 1}}})
	assert.Equal(t, map[string]string{
		"x": `the function of own panicked: derive: "own" reads "own", which is not declared before it`,
		"y": `the function of own panicked: derive: "own" reads "later", which is not declared before it`,
	}, invalid(r, own))
	assert.Equal(t, map[string]int{"x": 1, "y": 1}, all(r, later))
}

// asking declares a Map over B whose function looks at A, and notes its runs.
func asking(g *Graph[world], look func(a Collection[string, item], byRef Index[string, string, item], r *Reader, x item) int) (Collection[string, int], *journal) {
	j := &journal{}
	a := sourceA(g)
	byRef := GroupBy(a, "by ref", func(_ string, x item) []string { return []string{x.Ref} })
	return Map(sourceB(g), "out", func(r *Reader, k string, x item) (int, error) {
		j.ran(k)
		return look(a, byRef, r, x), nil
	}), j
}

var twoItems = []item{{"p", "g", 1}, {"q", "h", 1}}

// questions are look-ups, and the changes of A that do not and do change their answers.
var questions = map[string]struct {
	look        func(a Collection[string, item], byRef Index[string, string, item], r *Reader, x item) int
	quiet, loud []item
}{
	"an entry": {
		look: func(a Collection[string, item], _ Index[string, string, item], r *Reader, _ item) int {
			x, _ := a.Get(r, "p")
			return x.N
		},
		quiet: []item{{"p", "g", 1}, {"q", "h", 2}}, loud: []item{{"p", "g", 2}, {"q", "h", 1}},
	},
	"an absent key": {
		look: func(a Collection[string, item], _ Index[string, string, item], r *Reader, _ item) int {
			x, _ := a.Get(r, "z")
			return x.N
		},
		quiet: []item{{"p", "g", 2}, {"y", "g", 1}}, loud: append(twoItems[:2:2], item{"z", "g", 1}),
	},
	"a group": {
		look: func(_ Collection[string, item], byRef Index[string, string, item], r *Reader, _ item) int {
			return byRef.Members(r, "g").Len()
		},
		quiet: []item{{"p", "g", 1}, {"q", "h", 2}, {"s", "h", 2}}, loud: []item{{"p", "g", 1}, {"q", "g", 1}},
	},
	"an empty group": {
		look: func(_ Collection[string, item], byRef Index[string, string, item], r *Reader, _ item) int {
			return byRef.Members(r, "none").Len()
		},
		quiet: []item{{"p", "h", 1}}, loud: []item{{"p", "none", 1}, {"q", "h", 1}},
	},
	"the keys of groups": {
		look: func(_ Collection[string, item], byRef Index[string, string, item], r *Reader, _ item) int {
			return byRef.Groups().Len(r)
		},
		quiet: twoItems, loud: []item{{"p", "g", 2}, {"q", "h", 1}},
	},
	"all": {
		look: func(a Collection[string, item], _ Index[string, string, item], r *Reader, _ item) int {
			return a.Len(r)
		},
		quiet: twoItems, loud: []item{{"p", "g", 1}, {"q", "h", 2}},
	},
	"nothing": {
		look:  func(Collection[string, item], Index[string, string, item], *Reader, item) int { return 0 },
		quiet: nil, loud: nil,
	},
}

func TestAnEntryRunsWhenAnAnswerHasChangedAndNotElse(t *testing.T) {
	for what, c := range questions {
		t.Run(what, func(t *testing.T) {
			g := New[world]("g")
			_, j := asking(g, c.look)
			b := []item{{Key: "x"}}
			update(t, g, world{A: twoItems, B: b})
			assert.Equal(t, []string{"x"}, j.since(), "it is new")
			update(t, g, world{A: append(twoItems[:0:0], twoItems...), B: append(b[:0:0], b...)})
			assert.Empty(t, j.since(), "other slices with the same elements")
			update(t, g, world{A: c.quiet, B: b})
			assert.Empty(t, j.since())
			update(t, g, world{A: twoItems, B: b})
			j.since()
			update(t, g, world{A: c.loud, B: b})
			if c.loud == nil {
				assert.Empty(t, j.since())
				return
			}
			assert.Equal(t, []string{"x"}, j.since())
			require.NoError(t, g.Verify())
		})
	}
}

func TestAnEntryRunsOnceHoweverManyCausesThereAre(t *testing.T) {
	g := New[world]("g")
	out, j := asking(g, func(a Collection[string, item], byRef Index[string, string, item], r *Reader, x item) int {
		y, _ := a.Get(r, "p")
		z, _ := a.Get(r, "z")
		return x.N + y.N + z.N + byRef.Members(r, "g").Len() + a.Len(r)
	})
	update(t, g, world{A: []item{{"p", "g", 1}}, B: []item{{Key: "x"}}})
	j.since()
	r := update(t, g, world{A: []item{{"p", "g", 2}, {"z", "g", 10}}, B: []item{{Key: "x", N: 100}}})
	assert.Equal(t, []string{"x"}, j.since())
	assert.Equal(t, map[string]int{"x": 116}, all(r, out))
}

func TestAnEntryIsLinkedWithWhatItsLastRunHasAskedAndNothingElse(t *testing.T) {
	g := New[world]("g")
	var j journal
	a := sourceA(g)
	Map(sourceB(g), "out", func(r *Reader, k string, x item) (int, error) {
		j.ran(k)
		y, err := a.Get(r, x.Ref)
		return y.N, err
	})
	update(t, g, world{A: []item{{Key: "p"}, {Key: "q"}}, B: []item{{Key: "x", Ref: "p"}}})
	assert.Equal(t, []string{"a p"}, g.Explain("out", "x").LookedUp)
	update(t, g, world{A: []item{{Key: "p"}, {Key: "q"}}, B: []item{{Key: "x", Ref: "q"}}})
	assert.Equal(t, []string{"a q"}, g.Explain("out", "x").LookedUp)
	j.since()
	update(t, g, world{A: []item{{Key: "p", N: 1}, {Key: "q"}}, B: []item{{Key: "x", Ref: "q"}}})
	assert.Empty(t, j.since(), "p is not asked for any more")
	update(t, g, world{A: []item{{Key: "p", N: 1}, {Key: "q", N: 1}}, B: []item{{Key: "x", Ref: "q"}}})
	assert.Equal(t, []string{"x"}, j.since())
}

func TestAQuestionAboutAnAbsentKeyIsForgottenWithItsLastAsker(t *testing.T) {
	g := New[world]("g")
	a := sourceA(g)
	Map(sourceB(g), "out", func(r *Reader, _ string, x item) (int, error) {
		_, err := a.Get(r, x.Ref)
		if !errors.Is(err, ErrNone) {
			return 0, errors.New("it is there")
		}
		return 1, nil
	})
	update(t, g, world{B: []item{{Key: "x", Ref: "p"}, {Key: "y", Ref: "p"}}})
	assert.Len(t, a.c.absent, 1, "two ask one question")
	update(t, g, world{B: []item{{Key: "x", Ref: "p"}, {Key: "y", Ref: "q"}}})
	assert.Len(t, a.c.absent, 2)
	update(t, g, world{B: []item{{Key: "x", Ref: "p"}}})
	assert.Len(t, a.c.absent, 1)
	update(t, g, world{A: []item{{Key: "p"}}, B: []item{{Key: "x", Ref: "p"}}})
	assert.Empty(t, a.c.absent)
	assert.Equal(t, []string{"out x"}, g.Explain("a", "p").AskedBy)
}

func TestTheLinksOfAnEntryAreInTheOrderInWhichItsLastRunHasAsked(t *testing.T) {
	g := New[world]("g")
	a := sourceA(g)
	Map(sourceB(g), "out", func(r *Reader, _ string, x item) (n int, err error) {
		for _, k := range x.Ref {
			y, _ := a.Get(r, string(k))
			n += y.N
		}
		return n, nil
	})
	items := []item{{Key: "p"}, {Key: "q"}, {Key: "r"}}
	for _, keys := range []string{"pqr", "rqp", "prq", "qzpr", "zq", "zpqy", "", "rp", "pqr"} {
		update(t, g, world{A: items, B: []item{{"x", keys, 1}, {"y", "rqzp", 1}}})
		var want []string
		for _, k := range keys {
			text := "a " + string(k)
			if k > 'r' {
				text += " (absent)"
			}
			want = append(want, text)
		}
		assert.Equal(t, want, g.Explain("out", "x").LookedUp, keys)
	}
}
