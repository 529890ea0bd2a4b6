package derive

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type ruled struct {
	Rules  []rule
	Suffix string
}

type rule struct {
	Name, App string
	Value     int
}

// statsOf returns the figures of a node.
func statsOf(t *testing.T, g Any, name string) NodeStats {
	t.Helper()
	for _, n := range g.Stats().Nodes {
		if n.Name == name {
			return n
		}
	}
	require.Fail(t, "there is no such node", name)
	return NodeStats{}
}

func TestTheFirstRunOfAnEntryIsNewAndNotForNothing(t *testing.T) {
	g := New[ruled]("counted")
	rules := Slice(g, "rules", func(w *ruled) []rule { return w.Rules }, func(r rule) string { return r.Name })
	Map(rules, "skipped", func(*Reader, string, rule) (int, error) { return 0, Skip })
	flat := FlatMap(rules, "flat", func(*Reader, string, rule, func(string, int)) error { return nil })
	Compute(g, "computed", func(r *Reader) (int, error) { return flat.Len(r), Skip })
	update := func(rules ...rule) {
		t.Helper()
		_, err := g.Update(&ruled{Rules: rules})
		require.NoError(t, err)
	}
	equal := func() (all []int) {
		for _, name := range []string{"skipped", "flat", "computed"} {
			n := statsOf(t, g, name)
			all = append(all, n.LastEqual)
			assert.LessOrEqual(t, n.Equal, n.Runs, name)
		}
		return all
	}
	update(rule{"a", "x", 1}, rule{"b", "x", 1})
	assert.Equal(t, []int{0, 0, 0}, equal(), "nothing was there before")
	update(rule{"a", "x", 2}, rule{"b", "x", 1})
	assert.Equal(t, []int{1, 1, 0}, equal(), "the run of a has given what there was")
	assert.Equal(t, "rules a", statsOf(t, g, "skipped").EqualBecause)
	assert.Equal(t, "rules a", statsOf(t, g, "flat").EqualBecause)
	update(rule{"b", "x", 1})
	assert.Equal(t, []int{0, 0, 0}, equal(), "what goes does not run")
}

// The race detector judges it.
func TestAnExplanationIsMadeByAnyGoroutineWhileTheGraphIsUpdatedAndReset(t *testing.T) {
	g := New[ruled]("explained")
	rules := Slice(g, "rules", func(w *ruled) []rule { return w.Rules }, func(r rule) string { return r.Name })
	Map(rules, "out", func(r *Reader, _ string, x rule) (int, error) { return rules.Len(r), nil })
	var end atomic.Bool
	var explaining sync.WaitGroup
	explaining.Go(func() {
		for !end.Load() {
			g.Explain("out", "a")
		}
	})
	for range 500 {
		_, err := g.Update(&ruled{Rules: []rule{{"a", "x", 1}}})
		require.NoError(t, err)
		require.NoError(t, g.Reset())
	}
	_, err := g.Update(&ruled{Rules: []rule{{"a", "x", 1}}})
	require.NoError(t, err)
	assert.True(t, g.Explain("out", "a").Found)
	end.Store(true)
	explaining.Wait()
}

func TestAnExplanationSaysThatAnEntryIsNewAndThenWhatMadeItRun(t *testing.T) {
	g := New[ruled]("explained")
	rules := Slice(g, "rules", func(w *ruled) []rule { return w.Rules }, func(r rule) string { return r.Name })
	suffix := Input(g, "suffix", func(w *ruled) string { return w.Suffix })
	Map(rules, "out", func(r *Reader, _ string, x rule) (string, error) {
		s, err := suffix.Get(r)
		return x.App + s, err
	})
	for _, c := range []struct {
		world ruled
		why   string
	}{
		{ruled{Rules: []rule{{"a", "x", 1}}}, "it is new"},
		{ruled{Rules: []rule{{"a", "y", 1}}}, "rules a"},
		{ruled{Rules: []rule{{"a", "y", 1}}, Suffix: "!"}, "suffix"},
	} {
		_, err := g.Update(&c.world)
		require.NoError(t, err)
		assert.Equal(t, c.why, g.Explain("out", "a").Because)
	}
}
