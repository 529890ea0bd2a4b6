package derive

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listed writes changes as key, old, new or error.
func listed[K comparable, V any](r *Reader, f *Changes[K, V]) (all [][]any) {
	for ch := range f.All(r) {
		row := []any{ch.Key, nil, nil}
		if ch.Old != nil {
			row[1] = *ch.Old
		}
		if ch.New != nil {
			row[2] = *ch.New
		}
		if ch.Err != nil {
			row[2] = ch.Err.Error()
		}
		all = append(all, row)
	}
	return all
}

func following(o ...GraphOption) (*Graph[world], *Changes[string, int]) {
	g := New[world]("g", o...)
	return g, ChangesOf(Map(sourceA(g), "out", func(_ *Reader, _ string, x item) (int, error) {
		if x.Ref != "" {
			return 0, assert.AnError
		}
		return x.N, nil
	}))
}

func TestChangesAreTheNetDifferenceSinceDone(t *testing.T) {
	g, f := following()
	r := update(t, g, world{A: []item{{Key: "x", N: 1}, {Key: "y", N: 1}}})
	assert.Equal(t, [][]any{{"x", nil, 1}, {"y", nil, 1}}, listed(r, f), "all entries before the first Done")
	assert.Equal(t, [][]any{{"x", nil, 1}, {"y", nil, 1}}, listed(r, f), "they stay until Done")
	f.Done()
	assert.Empty(t, listed(r, f))
	update(t, g, world{A: []item{{Key: "x", N: 2}, {Key: "z", N: 1}}})
	r = update(t, g, world{A: []item{{Key: "w", N: 5}, {Key: "x", N: 1}, {Key: "y", N: 7}}})
	assert.Equal(t, [][]any{{"w", nil, 5}, {"y", 1, 7}}, listed(r, f), "x is what it was; z has come and gone; y has gone and come")
	r = update(t, g, world{A: []item{{Key: "x", N: 1, Ref: "bad"}}})
	const bad = "out x: assert.AnError general error for testing"
	assert.Equal(t, [][]any{{"x", 1, bad}, {"y", 1, nil}}, listed(r, f))
	f.Done()
	r = update(t, g, world{A: []item{{Key: "x", N: 4}}})
	assert.Equal(t, [][]any{{"x", nil, 4}}, listed(r, f), "what was invalid has no old value")
}

func TestChangesOutliveResetAndAnUpdateThatFails(t *testing.T) {
	g, f := following()
	update(t, g, world{A: []item{{Key: "x", N: 1}, {Key: "y", N: 1}, {Key: "z", N: 1}}})
	f.Done()
	require.NoError(t, g.Reset())
	r := update(t, g, world{A: []item{{Key: "x", N: 1}, {Key: "y", N: 2}}})
	assert.Equal(t, [][]any{{"y", 1, 2}, {"z", 1, nil}}, listed(r, f))
	f.Done()
	_, err := g.Update(nil)
	require.Error(t, err)
	g.c.unsound = true
	r = update(t, g, world{A: []item{{Key: "y", N: 2}}})
	assert.Equal(t, [][]any{{"x", 1, nil}}, listed(r, f))
}

func TestChangesOfAFlatMapAndOfGroups(t *testing.T) {
	g := New[world]("g")
	a := sourceA(g)
	flat := ChangesOf(FlatMap(a, "flat", func(_ *Reader, _ string, x item, put func(int, int)) error {
		for i := range x.N {
			put(i, i)
		}
		return nil
	}))
	groups := ChangesOf(GroupBy(a, "groups", func(_ string, x item) []string { return []string{x.Ref} }).Groups())
	update(t, g, world{A: []item{{"x", "p", 1}, {"y", "q", 1}}})
	flat.Done()
	groups.Done()
	r := update(t, g, world{A: []item{{"x", "p", 2}, {"y", "p", 0}}})
	assert.Equal(t, [][]any{{From[string, int]{"x", 1}, nil, 1}, {From[string, int]{"y", 0}, 0, nil}}, listed(r, flat))
	var keys []string
	for ch := range groups.All(r) {
		keys = append(keys, ch.Key)
	}
	assert.Equal(t, []string{"p", "q"}, keys)
}

func TestWhatComesAndGoesBetweenTwoDoneCostsNoMemory(t *testing.T) {
	g, f := following()
	for i := range 100 {
		update(t, g, world{A: []item{{Key: string(rune('A' + i))}}})
	}
	assert.Len(t, f.was, 1)
}
