package derive

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// folded is equal by its last digit.
type folded struct{ N int }

func (a folded) Equal(b folded) bool { return a.N%10 == b.N%10 }

// pointed is equal by its last digit, behind a pointer.
type pointed struct{ N int }

func (a *pointed) Equal(b *pointed) bool { return a.N%10 == b.N%10 }

// other has an Equal with another type.
type other struct{ N []int }

func (a other) Equal(int) bool { panic("not this one") }

// shape is an interface with an Equal of its own.
type shape interface {
	Equal(other shape) bool
	area() int
}

type square struct{ Side, Serial int }

func (s square) Equal(other shape) bool { return s.area() == other.area() }
func (s square) area() int              { return s.Side * s.Side }

type slab struct{ Area int }

func (s *slab) Equal(other shape) bool { return s.area() == other.area() }
func (s *slab) area() int              { return s.Area }

func equalTo[V any](a, b V, o ...Option[V]) bool { return equalOf(o)(a, b) }

func TestValuesAreEqualByTheOptionElseTheirMethodElseTheirContent(t *testing.T) {
	assert.True(t, equalTo(folded{1}, folded{11}))
	assert.False(t, equalTo(folded{1}, folded{2}))
	assert.False(t, equalTo(folded{1}, folded{11}, Equal(func(a, b folded) bool { return a == b })), "the option goes first")
	assert.True(t, equalTo(&pointed{1}, &pointed{11}))
	assert.False(t, equalTo[*pointed](&pointed{1}, nil), "the method of a pointer that is nil is not called")
	assert.False(t, equalTo[*pointed](nil, &pointed{1}))
	assert.True(t, equalTo[*pointed](nil, nil))
	assert.False(t, equalTo(pointed{1}, pointed{11}), "a value does not have the method of its pointer")
	assert.True(t, equalTo(other{[]int{1}}, other{[]int{1}}))
	assert.True(t, equalTo([]int{1}, []int{1}))
	assert.False(t, equalTo[[]int]([]int{}, nil), "as reflect.DeepEqual")
	assert.True(t, equalTo(&item{N: 1}, &item{N: 1}))
	assert.True(t, equalTo[any](item{N: 1}, item{N: 1}))
	assert.True(t, equalTo([2]item{}, [2]item{}))
	assert.False(t, equalTo([2]item{}, [2]item{{N: 1}}))
	assert.True(t, equalTo(struct{}{}, struct{}{}))
	assert.True(t, equalTo[error](nil, nil))
	assert.True(t, equalTo[shape](square{1, 1}, square{1, 2}), "the method of an interface")
	assert.True(t, equalTo[shape](square{2, 1}, &slab{4}))
	assert.False(t, equalTo[shape](square{2, 1}, &slab{5}))
	assert.False(t, equalTo[shape](square{}, nil))
	assert.False(t, equalTo[shape](nil, &slab{}))
	assert.False(t, equalTo[shape](&slab{}, (*slab)(nil)))
	assert.True(t, equalTo[shape](nil, nil))
}

func TestAFunctionAndANaNEqualNothing(t *testing.T) {
	assert.False(t, equalTo(math.NaN(), math.NaN()))
	assert.False(t, equalTo([]float64{math.NaN()}, []float64{math.NaN()}))
	f := func() {}
	assert.False(t, equalTo(f, f))
	g := New[world]("g")
	out := Map(sourceA(g), "out", func(*Reader, string, item) (float64, error) { return math.NaN(), nil })
	after := Map(out, "after", func(_ *Reader, _ string, x float64) (bool, error) { return math.IsNaN(x), nil })
	for n := range 3 {
		r := update(t, g, world{A: []item{{Key: "x", N: n}}})
		assert.Equal(t, map[string]bool{"x": true}, all(r, after))
		assert.Zero(t, g.Stats().Nodes[1].LastEqual)
	}
}

func TestAnElementIsTheSameIfItPointsToTheSameElseIfItIsEqual(t *testing.T) {
	p := &pointed{1}
	assert.True(t, sameOf[*pointed]()(p, p))
	assert.False(t, sameOf[*pointed]()(p, &pointed{1}))
	m := map[string]any{"a": 1}
	assert.True(t, sameOf[map[string]any]()(m, m))
	assert.False(t, sameOf[map[string]any]()(m, map[string]any{"a": 1}))
	assert.True(t, sameOf[folded]()(folded{1}, folded{11}))
	assert.True(t, sameOf[[]int]()([]int{1}, []int{1}))
}

func TestWhatIsNilHasNoKey(t *testing.T) {
	type snapshot struct {
		maps  []map[string]any
		any   []any
		items []*item
	}
	g := New[snapshot]("g")
	maps := Slice(g, "maps", func(s *snapshot) []map[string]any { return s.maps }, func(m map[string]any) string { return m["k"].(string) })
	anys := Slice(g, "any", func(s *snapshot) []any { return s.any }, func(x any) string { return x.(item).Key })
	items := Slice(g, "items", func(s *snapshot) []*item { return s.items }, func(x *item) string { return x.Key })
	for _, s := range []snapshot{
		{[]map[string]any{nil, {"k": "x"}}, []any{nil, item{Key: "x"}}, []*item{nil, {Key: "x"}, nil}},
		{[]map[string]any{{"k": "x"}}, []any{item{Key: "x"}}, []*item{{Key: "x"}}},
		{[]map[string]any{{"k": "x"}, nil}, []any{item{Key: "x"}, nil}, []*item{{Key: "x"}, nil}},
	} {
		r := update(t, g, s)
		assert.Equal(t, [3]int{1, 1, 1}, [3]int{maps.Len(r), anys.Len(r), items.Len(r)})
	}
	r := update(t, g, snapshot{})
	assert.Equal(t, [3]int{}, [3]int{maps.Len(r), anys.Len(r), items.Len(r)})
}
