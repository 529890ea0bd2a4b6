package katestest_test

import (
	"fmt"
	"testing"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/kates/katestest"
)

// printing is a test that prints how it fails.
type printing struct{ testing.TB }

func (printing) Helper()           {}
func (printing) Error(args ...any) { fmt.Println(args...) }

// A price list forgets a change of a price, because its Equal compares names alone.
func ExampleDerives() {
	type item struct {
		Name  string
		Price int
	}
	type snapshot struct{ Items []item }
	build := func() *derive.Graph[snapshot] {
		g := derive.New[snapshot]("price list")
		items := derive.Slice(g, "items", func(s *snapshot) []item { return s.Items }, func(i item) string { return i.Name })
		sold := derive.Map(items, "sold", func(_ *derive.Reader, _ string, i item) (item, error) { return i, nil },
			derive.Equal(func(a, b item) bool { return a.Name == b.Name }))
		derive.Map(sold, "lines", func(_ *derive.Reader, _ string, i item) (string, error) {
			return fmt.Sprintf("%s: %d €", i.Name, i.Price), nil
		})
		return g
	}
	t := printing{} // in a test: t
	katestest.Derives(t, build, &snapshot{Items: []item{{"tea", 3}}}, &snapshot{Items: []item{{"tea", 4}}})
	// Output:
	// katestest.Derives: snapshot 2 of 2, forwards, after snapshot 1:
	// lines tea: the graph has tea: 3 €, an evaluation from scratch gives tea: 4 €: they differ
	// maybe because sold tea counts as equal by the Equal of its node, and differs at .Price
}
