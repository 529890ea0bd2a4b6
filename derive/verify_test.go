package derive

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
)

const undeclared = ", and nothing that it looked up has changed"

// impure declares nodes whose functions return a number that is not in the graph.
var impure = map[string]struct {
	declare           func(g *Graph[world], n func() int)
	random, different string
}{
	"a Map": {
		func(g *Graph[world], n func() int) {
			Map(sourceA(g), "m", func(*Reader, string, item) (item, error) { return item{Ref: "secret", N: n()}, nil })
		},
		"m x: two runs differ at .N: {Key: Ref:secret N:2} and {Key: Ref:secret N:3}",
		"m x: kept {Key: Ref:secret N:0}, a run gives {Key: Ref:secret N:7}: they differ at .N" + undeclared,
	},
	"the error of a Map": {
		func(g *Graph[world], n func() int) {
			Map(sourceA(g), "m", func(*Reader, string, item) (int, error) {
				return 0, []error{errors.New("secret"), Skip, errors.New("secret"), errors.New("other")}[n()%4]
			})
		},
		`m x: two runs differ: the error "secret" and the error "other"`,
		`m x: kept the error "secret", a run gives the error "other": they differ` + undeclared,
	},
	"a FlatMap": {
		func(g *Graph[world], n func() int) {
			FlatMap(sourceA(g), "f", func(_ *Reader, _ string, _ item, put func(string, int)) error { put("k", n()); return nil })
		},
		"f x: two runs differ at [0].val: [{key:k val:2 twice:false}] and [{key:k val:3 twice:false}]",
		"f x: kept [{key:k val:0 twice:false}], a run gives [{key:k val:7 twice:false}]: they differ at [0].val" + undeclared,
	},
	"a Compute": {
		func(g *Graph[world], n func() int) { Compute(g, "c", func(*Reader) (int, error) { return n(), nil }) },
		"c: two runs differ: 2 and 3",
		"c: kept 0, a run gives 7: they differ" + undeclared,
	},
	"a GroupBy": {
		func(g *Graph[world], n func() int) {
			GroupBy(sourceA(g), "i", func(string, item) []int { return []int{n(), 0} })
		},
		"i x: two runs differ at [1]: [0 2] and [0 3]",
		"i x: kept [0], a run gives [0 7]: they differ" + undeclared,
	},
	"a ByLabels": {
		func(g *Graph[world], n func() int) {
			ByLabels(sourceA(g), "l", func(string, item) (string, map[string]string) {
				return "s", labels.Set{"n": strings.Repeat("i", n())}
			})
		},
		"l x: two runs differ at .Labels: {Scope:s Labels:1:n2:ii Selector:} and {Scope:s Labels:1:n3:iii Selector:}",
		"l x: kept {Scope:s Labels:1:n0: Selector:}, a run gives {Scope:s Labels:1:n7:iiiiiii Selector:}: they differ at .Labels" + undeclared,
	},
	"a BySelector": {
		func(g *Graph[world], n func() int) {
			BySelector(sourceA(g), "s", func(string, item) (string, labels.Selector) {
				return "s", labels.SelectorFromSet(labels.Set{"n": strings.Repeat("i", n())})
			})
		},
		"s x: two runs differ at .Selector: {Scope:s Labels: Selector:n=ii} and {Scope:s Labels: Selector:n=iii}",
		"s x: kept {Scope:s Labels: Selector:n=}, a run gives {Scope:s Labels: Selector:n=iiiiiii}: they differ at .Selector" + undeclared,
	},
	"the keys of a Slice": {
		func(g *Graph[world], n func() int) {
			Slice(g, "k", func(w *world) []item { return w.A }, func(item) int { return n() })
		},
		"k: two runs differ: 2 and 3",
		"k: kept 0, a run gives 7: they differ" + undeclared,
	},
}

// declared declares one of these. Its number is 0 until the test changes it.
func declared(t *testing.T, declare func(g *Graph[world], n func() int), o ...GraphOption) (*Graph[world], *func() int) {
	number := func() int { return 0 }
	g := New[world]("g", o...)
	declare(g, func() int { return number() })
	update(t, g, world{A: []item{{Key: "x"}}})
	require.NoError(t, g.Verify())
	return g, &number
}

// rising returns another number each time.
func rising(from int) func() int {
	return func() int {
		from++
		return from - 1
	}
}

func TestVerifyFindsAFunctionThatIsNotDeterministic(t *testing.T) {
	for what, c := range impure {
		t.Run(what, func(t *testing.T) {
			g, number := declared(t, c.declare)
			*number = rising(2)
			assert.EqualError(t, g.Verify(), `derive: graph "g": `+c.random)
		})
	}
}

func TestVerifyFindsAnInputThatIsNotDeclared(t *testing.T) {
	for what, c := range impure {
		t.Run(what, func(t *testing.T) {
			g, number := declared(t, c.declare)
			*number = func() int { return 7 }
			want := `derive: graph "g": ` + c.different
			assert.EqualError(t, g.Verify(), want)

			g, number = declared(t, c.declare, Verified())
			*number = func() int { return 7 }
			_, err := g.Update(&world{A: []item{{Key: "x"}}})
			assert.EqualError(t, err, want, "the finding is the error of the Update")
			*number = func() int { return 0 }
			update(t, g, world{A: []item{{Key: "x"}}})
		})
	}
}

func TestAuditFindsBothAndLeavesOutValues(t *testing.T) {
	for what, c := range impure {
		t.Run(what, func(t *testing.T) {
			w := world{A: []item{{Key: "x"}}}
			g, number := declared(t, c.declare, Audit(3))
			assert.Empty(t, g.Stats().Impure)
			*number = func() int { return 7 }
			update(t, g, w)
			*number = rising(2)
			update(t, g, w)
			stats := g.Stats()
			assert.NotZero(t, stats.ImpureTotal)
			require.Len(t, stats.Impure, int(stats.ImpureTotal))
			name, _, _ := strings.Cut(c.random, ":")
			text := strings.Join(stats.Impure, "\n")
			assert.Contains(t, text, name+": a run gives another result than the one that is kept")
			assert.Contains(t, text, name+": two runs differ")
			for _, value := range []string{"secret", "iii", "7"} {
				assert.NotContains(t, text, value)
			}
		})
	}
}

func TestAuditTakesEachEntryInTurnAndKeepsTheLastFindings(t *testing.T) {
	g := New[world]("g", Audit(2))
	n := 0
	var j journal
	Map(sourceA(g), "m", func(_ *Reader, k string, _ item) (int, error) {
		j.ran(k)
		n++
		return n, nil
	})
	w := world{A: []item{{Key: "v"}, {Key: "w"}, {Key: "x"}, {Key: "y"}, {Key: "z"}}}
	update(t, g, w)
	j.since()
	for range 30 {
		update(t, g, w)
	}
	seen := map[string]int{}
	for _, k := range j.since() {
		seen[k]++
	}
	assert.Len(t, seen, 5)
	for k, n := range seen {
		assert.InDelta(t, 12, n, 2, "%s: 60 of 10 rows, of which each second one is an element of the source", k)
	}
	assert.Len(t, g.Stats().Impure, maxFindings)
	assert.Greater(t, g.Stats().ImpureTotal, uint64(maxFindings))
}

func TestVerifyListsAtMostTwentyFindings(t *testing.T) {
	g := New[world]("g")
	n := 0
	Map(sourceA(g), "m", func(*Reader, string, item) (int, error) { n++; return n, nil })
	var w world
	for k := range 30 {
		w.A = append(w.A, item{Key: string(rune('A' + k))})
	}
	update(t, g, w)
	err := g.Verify()
	require.ErrorContains(t, err, ", and maybe more")
	assert.Equal(t, maxFindings, strings.Count(err.Error(), "two runs differ"))
}

func TestVerifyFindsAValueThatWasChangedAfterItWasReturned(t *testing.T) {
	const changed = ": the value was changed after it was returned: no value is written to"
	for name, declare := range map[string]func(g *Graph[world], v []int){
		"m x": func(g *Graph[world], v []int) {
			Map(sourceA(g), "m", func(*Reader, string, item) ([]int, error) { return v, nil })
		},
		"f x/1": func(g *Graph[world], v []int) {
			FlatMap(sourceA(g), "f", func(_ *Reader, _ string, _ item, put func(int, []int)) error { put(1, v); return nil })
		},
		"c": func(g *Graph[world], v []int) { Compute(g, "c", func(*Reader) ([]int, error) { return v, nil }) },
	} {
		v := []int{1}
		g := New[world]("g", Verified())
		declare(g, v)
		w := world{A: []item{{Key: "x"}}}
		update(t, g, w)
		update(t, g, w)
		v[0] = 2
		_, err := g.Update(&w)
		assert.EqualError(t, err, `derive: graph "g": `+name+changed)

		g = New[world]("g", Audit(3))
		declare(g, v)
		update(t, g, w)
		v[0] = 3
		update(t, g, w)
		assert.Contains(t, g.Stats().Impure, name+changed)
	}
}

func TestVerifyAcceptsWhatTheEqualOfANodeDoesNotTellApart(t *testing.T) {
	g := New[world]("g", Verified())
	n := 0
	coarse := Equal(func(a, b item) bool { return a.Key == b.Key })
	a := sourceA(g)
	Map(a, "m", func(_ *Reader, _ string, x item) (item, error) { n++; x.N = n; return x, nil }, coarse)
	FlatMap(a, "f", func(_ *Reader, _ string, x item, put func(string, item)) error {
		n++
		x.N = n
		for k := range map[string]bool{"p": true, "q": true, "r": true} {
			put(k, x)
		}
		return nil
	}, coarse)
	for range 20 {
		update(t, g, world{A: []item{{Key: "x", N: n}}})
	}
}

// A link that is lost shows as an input that is not declared.
func TestVerifyFindsALostLink(t *testing.T) {
	g := New[world]("g")
	a := sourceA(g)
	Map(sourceB(g), "out", func(r *Reader, _ string, _ item) (int, error) {
		x, err := a.Get(r, "p")
		return x.N, err
	})
	w := world{A: []item{{Key: "p", N: 1}}, B: []item{{Key: "x"}}}
	update(t, g, w)
	find(a.c, "p").first = asker{}
	w.A = []item{{Key: "p", N: 2}}
	_, err := g.Update(&w)
	require.NoError(t, err)
	assert.EqualError(t, g.Verify(), `derive: graph "g": out x: kept 1, a run gives 2: they differ`+undeclared)
	assert.NotEmpty(t, g.c.faults())
}

func TestAnEqualThatPanicsInVerifyIsAFindingAndNoPanic(t *testing.T) {
	g := New[world]("g")
	n := 0
	Map(sourceA(g), "m", func(*Reader, string, item) (int, error) { return n, nil }, Equal(func(a, b int) bool {
		if n > 0 {
			panic("boom")
		}
		return a == b
	}))
	update(t, g, world{A: []item{{Key: "x"}}})
	require.NoError(t, g.Verify())
	n = 1
	assert.ErrorContains(t, g.Verify(), "m x: two runs differ")
}

// keyless has an Equal that does not look at its key.
type keyless struct {
	Key string
	N   int
}

func (a keyless) Equal(b keyless) bool { return a.N == b.N }

func TestVerifyFindsAnEqualThatHidesTheKey(t *testing.T) {
	g := New[[]keyless]("g")
	Slice(g, "k", func(s *[]keyless) []keyless { return *s }, func(x keyless) string { return x.Key })
	update(t, g, []keyless{{"a", 1}})
	update(t, g, []keyless{{"b", 1}})
	assert.EqualError(t, g.Verify(), `derive: graph "g": k: kept a, a run gives b: they differ`+undeclared)
}
