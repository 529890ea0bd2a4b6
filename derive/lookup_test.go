package derive

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// getter declares a Map over B that looks up keys of a collection, and returns the answers as
// texts.
func getter[K comparable, V any](g *Graph[world], c Collection[K, V], key func(item) K) (Collection[string, string], *journal) {
	j := &journal{}
	return Map(sourceB(g), "getter", func(r *Reader, k string, x item) (string, error) {
		j.ran(k)
		v, err := c.Get(r, key(x))
		if err != nil {
			return err.Error(), nil
		}
		return fmt.Sprint(v), nil
	}), j
}

func TestAnAbsentKeyOfAnInputWhoseFlatMapFailsIsThatErrorUntilItHeals(t *testing.T) {
	g := New[world]("g")
	flat := FlatMap(sourceA(g), "flat", func(_ *Reader, _ string, x item, put func(string, int)) error {
		put("some", x.N)
		if x.Ref != "" {
			return errors.New(x.Ref)
		}
		return nil
	})
	out, j := getter(g, flat, func(x item) From[string, string] { return From[string, string]{"x", x.Ref} })
	w := world{B: []item{{Key: "1", Ref: "some"}, {Key: "2", Ref: "any"}}}
	see := func(some, other string, ran ...string) {
		t.Helper()
		r := update(t, g, w)
		assert.Equal(t, map[string]string{"1": some, "2": other}, all(r, out))
		assert.ElementsMatch(t, ran, j.since())
		require.NoError(t, g.Verify())
		j.since()
	}
	absent := ErrNone.Error()
	see(absent, absent, "1", "2")
	w.A = []item{{Key: "x", N: 1}}
	see("1", absent, "1")
	w.A = []item{{Key: "x", N: 2}}
	see("2", absent, "1")
	w.A = []item{{Key: "x", N: 2, Ref: "oops"}}
	see("flat x/some: oops", "flat x/any: oops", "1", "2")
	w.A = []item{{Key: "x", N: 3, Ref: "oops"}}
	see("flat x/some: oops", "flat x/any: oops")
	w.A = []item{{Key: "x", N: 3, Ref: "other"}}
	see("flat x/some: other", "flat x/any: other", "1", "2")
	w.A = nil
	see(absent, absent, "1", "2")
	w.A = []item{{Key: "x", N: 3, Ref: "other"}}
	see("flat x/some: other", "flat x/any: other", "1", "2")
	w.A = []item{{Key: "x", N: 3}}
	see("3", absent, "1", "2")
	w.B = nil
	update(t, g, w)
	assert.Empty(t, flat.c.absent)
}

func TestTheErrorOfAFlatMapIsAtTheKeyWithAZeroKey(t *testing.T) {
	g := New[world]("g")
	flat := FlatMap(sourceA(g), "flat", func(_ *Reader, _ string, x item, put func(string, int)) error {
		if put("", x.N); x.Ref != "" {
			return errors.New(x.Ref)
		}
		return nil
	})
	zero := From[string, string]{From: "x"}
	for _, w := range []item{{"x", "", 1}, {"x", "oops", 1}, {"x", "", 2}, {"x", "oops", 3}} {
		r := update(t, g, world{A: []item{w}})
		v, err := flat.Get(r, zero)
		if w.Ref == "" {
			require.NoError(t, err)
			assert.Equal(t, w.N, v)
			continue
		}
		assert.EqualError(t, err, "flat x/: oops")
		assert.Equal(t, map[From[string, string]]string{zero: "oops"}, invalid(r, flat))
		assert.Empty(t, all(r, flat))
	}
}

// The input of an entry is absent, there without an entry, there with one, or invalid. Whoever has
// asked for it runs when this changes, in one Update or over several.
func TestAKeyWithoutAnEntryIsAskedForLikeAnyOther(t *testing.T) {
	states := map[string]struct {
		a    []item
		want string
	}{
		"absent":     {nil, ErrNone.Error()},
		"skipped":    {[]item{{"x", "skip", 0}}, ErrNone.Error()},
		"skipped as": {[]item{{"x", "skip", 1}}, ErrNone.Error()},
		"there":      {[]item{{"x", "", 1}}, "1"},
		"other":      {[]item{{"x", "", 2}}, "2"},
		"invalid":    {[]item{{"x", "bad", 0}}, "made x: bad"},
		"twice":      {[]item{{"x", "", 1}, {"x", "", 2}}, "made x: a x: the key is there twice"},
	}
	for from, before := range states {
		for to, after := range states {
			for between, some := range states {
				g := New[world]("g")
				made := Map(sourceA(g), "made", func(_ *Reader, _ string, x item) (int, error) {
					switch x.Ref {
					case "skip":
						return 0, Skip
					case "bad":
						return 0, errors.New("bad")
					}
					return x.N, nil
				})
				out, j := getter(g, made, func(item) string { return "x" })
				b := []item{{Key: "1"}}
				last := ""
				for _, state := range []struct {
					a    []item
					want string
				}{before, some, after, before} {
					r := update(t, g, world{A: state.a, B: b})
					require.Equal(t, map[string]string{"1": state.want}, all(r, out), "%s, %s, %s", from, between, to)
					require.Equal(t, state.want != last, len(j.since()) == 1, "it runs if the answer is another: %s, %s, %s", from, between, to)
					last = state.want
				}
			}
		}
	}
}

func TestAWrappedSkipIsASkip(t *testing.T) {
	g := New[world]("g", Verified())
	text := Input(g, "text", func(w *world) string { return w.Text })
	wrapped := fmt.Errorf("no route: %w", errors.Join(errors.New("other"), Skip))
	first := Map(sourceA(g), "first", func(_ *Reader, _ string, x item) (int, error) { return x.N, wrapped })
	value := Compute(g, "value", func(r *Reader) (int, error) {
		x, _ := text.Get(r)
		if x == "skip" {
			return 0, wrapped
		}
		return len(x), nil
	})
	r := update(t, g, world{A: []item{{Key: "x"}}, Text: "skip"})
	assert.Empty(t, all(r, first))
	assert.Empty(t, invalid(r, first))
	_, err := value.Get(r)
	assert.Equal(t, ErrNone, err)
	r = update(t, g, world{A: []item{{Key: "x"}}, Text: "four"})
	n, err := value.Get(r)
	require.NoError(t, err)
	assert.Equal(t, 4, n)
}

// A Skip is no reason of an invalid entry. So no EntryError has one, whatever passes errors on.
func TestNoErrorOfALookUpIsASkip(t *testing.T) {
	g := New[world]("g")
	first := Map(sourceA(g), "first", func(_ *Reader, _ string, x item) (int, error) {
		switch x.N {
		case 0:
			return 0, Skip
		case 1:
			return 0, fmt.Errorf("wrapped: %w", Skip)
		}
		panic(Skip)
	})
	flat := FlatMap(first, "flat", func(*Reader, string, int, func(int, int)) error { return Skip })
	second := Map(sourceB(g), "second", func(r *Reader, k string, x item) (int, error) {
		if _, err := flat.Get(r, From[string, int]{x.Ref, 1}); err != nil && err != ErrNone {
			return 0, err
		}
		return first.Get(r, x.Ref)
	})
	r := update(t, g, world{
		A: []item{{Key: "p"}, {Key: "q", N: 1}, {Key: "r", N: 2}},
		B: []item{{Key: "1", Ref: "p"}, {Key: "2", Ref: "q"}, {Key: "3", Ref: "r"}, {Key: "4", Ref: "absent"}},
	})
	assert.Equal(t, map[string]string{
		"1": ErrNone.Error(), "2": ErrNone.Error(), "4": ErrNone.Error(),
		"3": "flat r/1: first r: the function of first panicked: no entry for this input",
	}, invalid(r, second))
	for _, k := range []string{"1", "2", "3", "4"} {
		_, err := second.Get(r, k)
		assert.Error(t, err)
		assert.NotErrorIs(t, err, Skip)
	}
}

func TestAValueIsAskedForAlsoWhileItHasNone(t *testing.T) {
	g := New[world]("g")
	text := Input(g, "text", func(w *world) string { return w.Text })
	value := Compute(g, "value", func(r *Reader) (int, error) {
		switch x, _ := text.Get(r); x {
		case "skip":
			return 0, Skip
		case "bad":
			return 0, errors.New("bad")
		default:
			return len(x), nil
		}
	})
	var j journal
	out := Compute(g, "out", func(r *Reader) (string, error) {
		j.ran("out")
		n, err := value.Get(r)
		return fmt.Sprint(n, " ", err), nil
	})
	for i, step := range []struct{ text, want string }{
		{"skip", "0 no entry with this key"}, {"one", "3 <nil>"}, {"bad", "0 value: bad"}, {"skip", "0 no entry with this key"}, {"bad", "0 value: bad"},
		{"two", "3 <nil>"}, {"", "0 <nil>"}, {"skip", "0 no entry with this key"},
	} {
		r := update(t, g, world{Text: step.text})
		got, err := out.Get(r)
		require.NoError(t, err)
		assert.Equal(t, step.want, got)
		assert.Len(t, j.since(), 1)
		if i == 4 {
			require.NoError(t, g.Reset())
		}
	}
}

func TestValuesAfterAResetAreThoseOfAFirstUpdate(t *testing.T) {
	g := New[world]("g")
	text := Input(g, "text", func(w *world) string { return w.Text })
	var j journal
	size := Compute(g, "size", func(r *Reader) (int, error) {
		j.ran("size")
		x, err := text.Get(r)
		return len(x), err
	})
	for range 3 {
		r := update(t, g, world{Text: "abc"})
		n, err := size.Get(r)
		require.NoError(t, err)
		assert.Equal(t, 3, n)
		assert.Equal(t, []string{"size"}, j.since())
		assert.Equal(t, []string{"size"}, g.Explain("text", "").AskedBy)
		update(t, g, world{Text: "abc"})
		assert.Empty(t, j.since())
		require.NoError(t, g.Reset())
	}
}

func TestAGroupThatIsKeptDoesNotChange(t *testing.T) {
	g := New[world]("g")
	byRef := GroupBy(sourceA(g), "by ref", func(_ string, x item) []string { return []string{x.Ref} })
	r := update(t, g, world{A: []item{{"x", "g", 1}, {"y", "g", 2}}})
	kept := byRef.Members(r, "g")
	r = update(t, g, world{A: []item{{"x", "g", 5}, {"z", "g", 3}}})
	var ns []int
	for _, x := range kept.All() {
		ns = append(ns, x.N)
	}
	assert.Equal(t, []int{1, 2}, ns)
	assert.Equal(t, []string{"x", "z"}, keysOf(byRef.Members(r, "g")))
	assert.False(t, kept.Equal(byRef.Members(r, "g")))
	assert.True(t, kept.Equal(kept))
	update(t, g, world{A: []item{{"x", "h", 5}}})
	assert.Equal(t, []string{"x", "y"}, keysOf(kept))
}
