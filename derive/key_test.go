package derive

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type (
	tag      string
	reversed struct{ n int }
	compound struct {
		Namespace string
		port      uint16
		On        bool
		Parts     [2]tag
		Back      int8
	}
)

func (a reversed) Compare(b reversed) int { return cmp.Compare(b.n, a.n) }

func inOrder[K comparable](t *testing.T, keys ...K) {
	t.Helper()
	compare, err := orderOf[K]()
	require.NoError(t, err)
	for i := range keys {
		for j := range keys {
			assert.Equal(t, cmp.Compare(i, j), compare(keys[i], keys[j]), "%v and %v", keys[i], keys[j])
		}
	}
}

func TestKeysAreOrderedByTheirCompareElseByValueAndFieldByField(t *testing.T) {
	inOrder(t, "", "a", "ab", "b")
	inOrder(t, -2, 0, 10)
	inOrder[int8](t, -2, 0, 10)
	inOrder[uint64](t, 0, 1, 1<<63)
	inOrder(t, false, true)
	inOrder[tag](t, "A", "a")
	inOrder(t, reversed{2}, reversed{1})
	inOrder(t, nameType{Namespace: "a", Name: "z"}, nameType{Namespace: "ab", Name: "a"}, nameType{Namespace: "b"})
	inOrder(t, [2]int{1, 9}, [2]int{2, 0}, [2]int{2, 1})
	inOrder(t, From[string, int]{"a", 2}, From[string, int]{"a", 10}, From[string, int]{"b", 1})
	inOrder(t, compound{}, compound{Back: 1}, compound{Parts: [2]tag{"", "x"}}, compound{On: true}, compound{port: 1}, compound{Namespace: "a"})
	inOrder(t, only{})
}

func TestAKeyIsWrittenWithSlashesBetweenItsParts(t *testing.T) {
	one := 1
	for want, key := range map[string]any{
		"x": "x", "ns/x": nameType{Namespace: "ns", Name: "x"}, "-3": -3, "": only{}, "true": true, "1.5": 1.5, "*int": (*int)(nil), "1": &one,
		"ns/80/false/a/b/-1": compound{"ns", 80, false, [2]tag{"a", "b"}, -1},
		"ns/x/p/7":           From[From[nameType, tag], uint8]{From[nameType, tag]{nameType{Namespace: "ns", Name: "x"}, "p"}, 7},
	} {
		assert.Equal(t, want, keyText(key))
	}
}

func TestEntriesComeInTheOrderOfTheirKeysWheneverTheOrderIsAskedFor(t *testing.T) {
	g := New[world]("g")
	flat := FlatMap(sourceA(g), "flat", func(_ *Reader, _ string, x item, put func(reversed, int)) error {
		for i := range x.N {
			put(reversed{i}, i)
		}
		return nil
	})
	keys := func(r *Reader) (all []From[string, reversed]) {
		for k := range flat.All(r) {
			all = append(all, k)
		}
		return all
	}
	of := func(from string, ns ...int) (all []From[string, reversed]) {
		for _, n := range ns {
			all = append(all, From[string, reversed]{from, reversed{n}})
		}
		return all
	}
	r := update(t, g, world{A: []item{{Key: "y", N: 3}}})
	assert.Equal(t, of("y", 2, 1, 0), keys(r))
	// What is added and goes again before somebody asks for the order is in no order.
	update(t, g, world{A: []item{{Key: "x", N: 2}, {Key: "y", N: 3}}})
	update(t, g, world{A: []item{{Key: "x", N: 1}, {Key: "y", N: 4}}})
	r = update(t, g, world{A: []item{{Key: "y", N: 2}, {Key: "z", N: 1}}})
	assert.Equal(t, slices.Concat(of("y", 1, 0), of("z", 0)), keys(r))
	update(t, g, world{A: []item{{Key: "w", N: 3}}})
	r = update(t, g, world{A: []item{{Key: "v", N: 1}, {Key: "z", N: 2}}})
	assert.Equal(t, slices.Concat(of("v", 0), of("z", 1, 0)), keys(r))
}
