package derive

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAResultThatEqualsTheLastOneStopsHereAndTheOldValueStays(t *testing.T) {
	g := New[world]("g")
	var j journal
	even := Map(sourceA(g), "even", func(_ *Reader, k string, x item) (*int, error) {
		j.ran("even", k)
		if n := x.N % 2; n == 0 {
			return &n, nil
		}
		return nil, fmt.Errorf("%d is odd", x.N%4)
	})
	Map(even, "out", func(_ *Reader, k string, x *int) (int, error) { j.ran("out", k); return *x, nil })
	r := update(t, g, world{A: []item{{Key: "x", N: 2}}})
	old, err := even.Get(r, "x")
	require.NoError(t, err)
	j.since()
	r = update(t, g, world{A: []item{{Key: "x", N: 4}}})
	assert.Equal(t, []string{"even x"}, j.since())
	now, _ := even.Get(r, "x")
	assert.Same(t, old, now)
	stats := g.Stats().Nodes
	assert.Equal(t, 1, stats[1].LastEqual)
	assert.Zero(t, stats[2].LastRuns)

	r = update(t, g, world{A: []item{{Key: "x", N: 1}}})
	_, first := even.Get(r, "x")
	r = update(t, g, world{A: []item{{Key: "x", N: 5}}})
	_, second := even.Get(r, "x")
	assert.Same(t, errors.Unwrap(first), errors.Unwrap(second), "errors are equal if their texts are: the old one stays")
	assert.Equal(t, []string{"even x", "even x"}, j.since())
	r = update(t, g, world{A: []item{{Key: "x", N: 7}}})
	assert.Equal(t, map[string]string{"x": "3 is odd"}, invalid(r, even))
}

func TestAnEntryGoesWithItsInputInTheSameUpdateWithWhatItHasPutAndAsked(t *testing.T) {
	g := New[world]("g")
	b := sourceB(g)
	flat := FlatMap(sourceA(g), "flat", func(r *Reader, _ string, x item, put func(int, string)) error {
		for i := range x.N {
			put(i, x.Key)
		}
		_, _ = b.Get(r, "absent")
		return nil
	})
	second := Map(flat, "second", func(_ *Reader, k From[string, int], v string) (string, error) { return v, nil })
	third := GroupBy(second, "third", func(_ From[string, int], v string) []string { return []string{v} })
	r := update(t, g, world{A: []item{{Key: "x", N: 2}, {Key: "y", N: 1}}})
	assert.Len(t, all(r, second), 3)
	assert.Len(t, b.c.absent, 1)
	r = update(t, g, world{A: []item{{Key: "y", N: 1}}})
	assert.Equal(t, map[From[string, int]]string{{"y", 0}: "y"}, all(r, second))
	assert.Zero(t, third.Members(r, "x").Len())
	r = update(t, g, world{})
	assert.Empty(t, all(r, second))
	assert.Empty(t, b.c.absent)
}

func TestAKeyThatComesBackIsANewEntry(t *testing.T) {
	g := New[world]("g")
	var j journal
	Map(sourceA(g), "out", func(_ *Reader, k string, x item) (int, error) { j.ran(k); return x.N, nil })
	for range 3 {
		update(t, g, world{A: []item{{Key: "x", N: 1}}})
		assert.Equal(t, []string{"x"}, j.since())
		assert.Equal(t, "it is new", g.Explain("out", "x").Because)
		update(t, g, world{})
		assert.False(t, g.Explain("out", "x").Found)
	}
}

func TestAnObjectUnderItsOldNameInTheNextSnapshotIsAChangedInput(t *testing.T) {
	g := New[world]("g")
	objects := Objects(g, "objects", func(w *world) []*objectType { return w.Objects })
	out := Map(objects, "out", func(_ *Reader, _ nameType, o *objectType) (string, error) { return o.Labels["app"], nil })
	update(t, g, world{Objects: []*objectType{object("x", "1")}})
	r := update(t, g, world{Objects: []*objectType{object("x", "2")}})
	assert.Equal(t, map[nameType]string{{Namespace: "ns", Name: "x"}: "2"}, all(r, out))
	assert.Equal(t, "objects ns/x", g.Explain("out", "ns/x").Because)
}

func TestAnErrorOrAPanicMakesTheEntryInvalidAndWhatIsMadeOfItForTheSameReason(t *testing.T) {
	g := New[world]("g", Verified())
	oops := errors.New("oops")
	var j journal
	first := Map(sourceA(g), "first", func(_ *Reader, k string, x item) (int, error) {
		switch x.N {
		case 1:
			return 0, oops
		case 2:
			panic("boom")
		}
		return x.N, nil
	})
	second := Map(first, "second", func(_ *Reader, k string, x int) (int, error) { j.ran(k); return x, nil })
	groups := GroupBy(first, "groups", func(string, int) []int { return []int{0} })
	third := Map(second, "third", func(r *Reader, k string, x int) (int, error) { return x, nil })
	r := update(t, g, world{A: []item{{Key: "w"}, {Key: "x", N: 1}, {Key: "y", N: 2}}})
	assert.Equal(t, map[string]string{"x": "oops", "y": "the function of first panicked: boom"}, invalid(r, first))
	assert.Equal(t, map[string]string{"x": "first x: oops", "y": "first y: the function of first panicked: boom"}, invalid(r, second))
	assert.Equal(t, map[string]int{"w": 0}, all(r, third))
	assert.Equal(t, []string{"w"}, keysOf(groups.Members(r, 0)), "an invalid entry is in no group")
	_, err := third.Get(r, "x")
	require.ErrorIs(t, err, oops)
	entry := (*EntryError)(nil)
	require.ErrorAs(t, err, &entry)
	assert.Equal(t, EntryError{"third", "x", entry.Err}, *entry)
	assert.NotContains(t, j.since(), "x", "the function does not run for an invalid input")
	stats := g.Stats().Nodes
	assert.Equal(t, [2]int{1, 2}, [2]int{stats[2].Entries, stats[2].Invalid})
	assert.Equal(t, 1, stats[2].LastRuns, "an invalid input is no run")

	r = update(t, g, world{A: []item{{Key: "w"}, {Key: "x", N: 3}, {Key: "y", N: 4}}})
	assert.Equal(t, map[string]int{"w": 0, "x": 3, "y": 4}, all(r, third), "it runs again when its input is another")
	assert.Equal(t, 3, groups.Members(r, 0).Len())
}

type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

func TestAnErrorThatCannotBeReadIsAPanicOfTheFunction(t *testing.T) {
	g := New[world]("g")
	out := Map(sourceA(g), "out", func(_ *Reader, k string, x item) (int, error) {
		return 0, (*brokenError)(nil)
	})
	for n := range 2 {
		r := update(t, g, world{A: []item{{Key: "x", N: n}}})
		assert.Contains(t, invalid(r, out)["x"], "the function of out panicked: runtime error: invalid memory address")
	}
}

func TestAKeyThatIsTwiceInASliceOrPutTwiceIsInvalid(t *testing.T) {
	g := New[world]("g", Verified())
	a := sourceA(g)
	flat := FlatMap(a, "flat", func(_ *Reader, _ string, x item, put func(string, int)) error {
		put("one", 1)
		for range x.N {
			put("many", x.N)
		}
		for i := range 12 { // more than are looked for one by one
			put(fmt.Sprint(i), i)
		}
		put("11", 0)
		return nil
	})
	r := update(t, g, world{A: []item{{Key: "x", N: 2}, {Key: "y", N: 1}, {Key: "x", N: 3}}})
	assert.Equal(t, map[string]string{"x": "the key is there twice"}, invalid(r, a))
	assert.Equal(t, map[From[string, string]]string{
		{"x", ""}: "a x: the key is there twice", {"y", "11"}: "the key is there twice",
	}, invalid(r, flat))
	r = update(t, g, world{A: []item{{Key: "x", N: 2}, {Key: "y", N: 1}}})
	assert.Empty(t, invalid(r, a))
	assert.Equal(t, "the key is there twice", invalid(r, flat)[From[string, string]{"x", "many"}])
	one, err := flat.Get(r, From[string, string]{"x", "one"})
	require.NoError(t, err)
	assert.Equal(t, 1, one)
}

func TestEntriesOfDifferentInputsCannotHaveOneKey(t *testing.T) {
	g := New[world]("g")
	flat := FlatMap(sourceA(g), "flat", func(_ *Reader, _ string, x item, put func(string, int)) error {
		put("same", x.N)
		return nil
	})
	r := update(t, g, world{A: []item{{Key: "x", N: 1}, {Key: "y", N: 2}}})
	assert.Equal(t, map[From[string, string]]int{{"x", "same"}: 1, {"y", "same"}: 2}, all(r, flat))
}
