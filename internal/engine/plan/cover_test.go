package plan

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

var boxes = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Box {
	return Box{
		Namespace: rapid.SampledFrom([]string{"", "n1", "n2", "n3", "n4"}).Draw(t, "namespace"),
		Name:      rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(t, "name"),
	}
}), 0, 8)

// covers reports whether some boxes are disjoint, and have each of others.
func covers(cover, of []Box) bool {
	for i, b := range cover {
		if slices.ContainsFunc(cover[i+1:], b.Overlaps) {
			return false
		}
	}
	return !slices.ContainsFunc(of, func(b Box) bool { return !slices.ContainsFunc(cover, b.In) })
}

func TestACoverIsDisjointAndHasEachBoxInWhateverOrderTheyCome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := boxes.Draw(t, "boxes")
		cover := Cover(all)
		if !covers(cover, all) {
			t.Fatalf("%v is no cover of %v", cover, all)
		}
		if again := Cover(rapid.Permutation(all).Draw(t, "in another order")); !slices.Equal(cover, again) {
			t.Fatalf("%v, and in another order %v", cover, again)
		}
		if again := Cover(cover); !slices.Equal(cover, again) {
			t.Fatalf("%v covers itself, not %v", cover, again)
		}
	})
}

// A cover that somebody draws has boxes that are as wide, or wider.
func TestNoCoverIsNarrower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, other := boxes.Draw(t, "boxes"), boxes.Draw(t, "another cover")
		if !covers(other, all) {
			other = Cover(append(slices.Clone(all), other...))
		}
		for _, b := range Cover(all) {
			if !slices.ContainsFunc(other, b.In) {
				t.Fatalf("%v of the cover of %v does not lie in %v", b, all, other)
			}
		}
	})
}

func TestBoxesAreWidenedOnlyWhereTheyOverlap(t *testing.T) {
	for name, c := range map[string]struct{ boxes, cover []Box }{
		"none":                      {nil, nil},
		"names in one namespace":    {[]Box{{"n", "b"}, {"n", "a"}}, []Box{{"n", "a"}, {"n", "b"}}},
		"namespaces":                {[]Box{{"m", ""}, {"n", ""}}, []Box{{"m", ""}, {"n", ""}}},
		"a name in its namespace":   {[]Box{{"n", "a"}, {"n", ""}, {"m", "a"}}, []Box{{"m", "a"}, {"n", ""}}},
		"a name everywhere":         {[]Box{{"n", "a"}, {"", "a"}, {"", "b"}}, []Box{{"", "a"}, {"", "b"}}},
		"a namespace and a name":    {[]Box{{"n", ""}, {"", "a"}, {"m", "b"}}, []Box{{"", ""}}},
		"one that joins all others": {[]Box{{"m", "a"}, {"n", "b"}, {"", "b"}, {"m", ""}}, []Box{{"", ""}}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.cover, Cover(c.boxes)) })
	}
}
