package derive

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unionWorld is the snapshot of these tests.
type unionWorld struct{ Left, Right []rule }

// unionOf declares a union of what two functions make, which fail for values of 3.
func unionOf(g *Graph[unionWorld]) Collection[Nth[string], int] {
	value := func(_ *Reader, _ string, x rule) (int, error) {
		switch x.Value {
		case 3:
			return 0, errors.New("three")
		case 4:
			return 0, Skip
		}
		return x.Value, nil
	}
	key := func(r rule) string { return r.Name }
	left := Map(Slice(g, "left", func(w *unionWorld) []rule { return w.Left }, key), "left values", value)
	right := Map(Slice(g, "right", func(w *unionWorld) []rule { return w.Right }, key), "right values", value)
	return Union("both", left, right)
}

func TestAUnionHasTheEntriesOfAllInTheOrderOfTheCollections(t *testing.T) {
	g := New[unionWorld]("g", Verified())
	both := unionOf(g)
	byValue := GroupBy(both, "by value", func(_ Nth[string], n int) []int { return []int{n} })
	changes := ChangesOf(both)
	r, err := g.Update(&unionWorld{Left: []rule{{Name: "b", Value: 1}, {Name: "c", Value: 3}}, Right: []rule{{Name: "a", Value: 2}, {Name: "b", Value: 1}}})
	require.NoError(t, err)
	var keys []Nth[string]
	for k := range both.All(r) {
		keys = append(keys, k)
	}
	assert.Equal(t, []Nth[string]{{0, "b"}, {1, "a"}, {1, "b"}}, keys)
	assert.Equal(t, 2, byValue.Members(r, 1).Len(), "one index holds them all")
	_, err = both.Get(r, Nth[string]{0, "c"})
	require.EqualError(t, err, "both 0/c: left values c: three")
	assert.True(t, g.Explain("both", "1/a").Found)
	changes.Done()

	r, err = g.Update(&unionWorld{Left: []rule{{Name: "c", Value: 5}}, Right: []rule{{Name: "a", Value: 2}, {Name: "b", Value: 1}}})
	require.NoError(t, err)
	var news []string
	for ch := range changes.All(r) {
		news = append(news, fmt.Sprint(ch.Key, ch.Old != nil, ch.New != nil))
	}
	assert.Equal(t, []string{"{0 b} true false", "{0 c} false true"}, news, "and no others")
	changes.Done()

	for _, n := range []int{6, 5} {
		r, err = g.Update(&unionWorld{Left: []rule{{Name: "c", Value: n}}, Right: []rule{{Name: "a", Value: 2}, {Name: "b", Value: 1}}})
		require.NoError(t, err)
	}
	for ch := range changes.All(r) {
		assert.Fail(t, "this is again what it was", "%v", ch.Key)
	}
}

func TestAUnionOfChangingCollectionsIsThatOfAFreshGraph(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func() (all []rule) {
		for _, name := range []string{"a", "b", "c", "d"} {
			if n := random.IntN(6); n > 0 {
				all = append(all, rule{Name: name, Value: n})
			}
		}
		return all
	}
	state := func(r *Reader, c Collection[Nth[string], int]) map[string]string {
		valid := maps.Collect(c.All(r))
		out := map[string]string{"len": fmt.Sprint(c.Len(r), len(valid))}
		for k, v := range valid {
			out[fmt.Sprint(k)] = fmt.Sprint(v)
		}
		for k, err := range c.Invalid(r) {
			out[fmt.Sprint(k)] = err.Error()
		}
		return out
	}
	g := New[unionWorld]("g", Verified())
	both := unionOf(g)
	for range 2000 {
		w := &unionWorld{Left: some(), Right: some()}
		r, err := g.Update(w)
		require.NoError(t, err)
		fresh := New[unionWorld]("fresh")
		other := unionOf(fresh)
		want, err := fresh.Update(w)
		require.NoError(t, err)
		require.Equal(t, state(want, other), state(r, both))
	}
}

func TestAUnionIsOfCollectionsOfOneGraph(t *testing.T) {
	one, other := New[unionWorld]("one"), New[unionWorld]("other")
	a, b := unionOf(one), unionOf(other)
	assert.PanicsWithError(t, `derive: "all" is a union of nothing`, func() { Union[string, int]("all") })
	assert.PanicsWithError(t, `derive: "all": collection 1 is of another graph, or of none`, func() { Union("all", a, b) })
	assert.Panics(t, func() { Union("all", Collection[Nth[string], int]{}) })
}
