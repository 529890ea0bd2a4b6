package derive

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/labels"
)

func TestExplainTellsWhatWasLookedUpWhyItRanAndWhoAsks(t *testing.T) {
	g := New[world]("g")
	text := Input(g, "text", func(w *world) string { return w.Text })
	a := sourceA(g)
	byRef := GroupBy(a, "by ref", func(_ string, x item) []string { return []string{x.Ref} })
	labeled := ByLabels(a, "labels", func(_ string, x item) (string, map[string]string) { return "s", labels.Set{"app": x.Ref} })
	selecting := BySelector(a, "selectors", func(_ string, x item) (string, labels.Selector) { return "s", labels.Everything() })
	flat := FlatMap(a, "flat", func(r *Reader, _ string, x item, put func(string, int)) error {
		put("one", x.N)
		return nil
	})
	Map(sourceB(g), "out", func(r *Reader, k string, x item) (int, error) {
		_, _ = a.Get(r, "p")
		_, _ = a.Get(r, "z")
		_, _ = flat.Get(r, From[string, string]{"p", "two"})
		a.Len(r)
		byRef.Members(r, "g")
		labeled.Select(r, "s", labels.SelectorFromSet(labels.Set{"app": "g"}))
		labeled.Select(r, "s", labels.Everything())
		selecting.Matching(r, "s", labels.Set{"app": "g"})
		_, _ = text.Get(r)
		_, _ = a.Get(r, "p")
		return 1, nil
	})
	w := world{A: []item{{"p", "g", 1}}, B: []item{{Key: "x"}}}
	update(t, g, w)
	assert.Equal(t, Explanation{Node: "out", Key: "x", Found: true, Because: "it is new", Ran: 1, LookedUp: []string{
		"a p", "a z (absent)", "flat p/two (absent)", "flat p (whether it fails)", "all of a", "by ref g",
		`labels app=g in "s"`, `labels everything in "s"`, `selectors app=g in "s"`, "text",
	}}, g.Explain("out", "x"))
	assert.Equal(t, Explanation{Node: "a", Key: "p", Found: true, AskedBy: []string{"out x"}}, g.Explain("a", "p"))
	assert.Equal(t, Explanation{Node: "text", Found: true, AskedBy: []string{"out x"}}, g.Explain("text", ""))
	assert.Equal(t, Explanation{Node: "flat", Key: "p/one", Found: true, Because: "it is new", Ran: 1}, g.Explain("flat", "p/one"))
	for _, none := range [][2]string{{"out", "y"}, {"none", "x"}, {"labels", "x"}, {"text", "x"}} {
		assert.Equal(t, Explanation{Node: none[0], Key: none[1]}, g.Explain(none[0], none[1]))
	}
	w.Text = "other"
	update(t, g, w)
	assert.Equal(t, "text", g.Explain("out", "x").Because)
	assert.EqualValues(t, 2, g.Explain("out", "x").Ran)
	w.B = []item{{Key: "x", N: 1}}
	update(t, g, w)
	assert.Equal(t, "b x", g.Explain("out", "x").Because)
}

func TestExplainNamesACauseThatIsGone(t *testing.T) {
	g := New[world]("g")
	a := sourceA(g)
	Map(sourceB(g), "out", func(r *Reader, k string, x item) (int, error) {
		y, _ := a.Get(r, x.Ref)
		return y.N, nil
	})
	update(t, g, world{A: []item{{Key: "p"}}, B: []item{{Key: "x", Ref: "p"}}})
	update(t, g, world{B: []item{{Key: "x", Ref: "p"}}})
	assert.Equal(t, "a p (gone)", g.Explain("out", "x").Because)
	update(t, g, world{A: []item{{Key: "p"}}, B: []item{{Key: "x", Ref: "p"}}})
	assert.Equal(t, "a p", g.Explain("out", "x").Because)
	// It runs because p is another. It does not ask for p any more: its input is another too.
	update(t, g, world{A: []item{{Key: "p", N: 1}}, B: []item{{Key: "x", Ref: "q"}}})
	assert.Equal(t, "a p", g.Explain("out", "x").Because)
	update(t, g, world{B: []item{{Key: "x", Ref: "q"}}})
	assert.Equal(t, "a (an entry that is gone)", g.Explain("out", "x").Because)
}

func TestExplainOfAnInvalidEntryAndOfAValue(t *testing.T) {
	g := New[world]("g")
	oops := errors.New("oops")
	text := Input(g, "text", func(w *world) string { return w.Text })
	sum := Compute(g, "sum", func(r *Reader) (int, error) {
		x, _ := text.Get(r)
		if x == "" {
			return 0, oops
		}
		return len(x), nil
	})
	Compute(g, "twice", func(r *Reader) (int, error) {
		x, err := sum.Get(r)
		return 2 * x, err
	})
	update(t, g, world{})
	assert.Equal(t, Explanation{Node: "sum", Found: true, Err: oops, LookedUp: []string{"text"}, Because: "it is new", Ran: 1, AskedBy: []string{"twice"}},
		g.Explain("sum", ""))
	update(t, g, world{Text: "x"})
	assert.Equal(t, "text", g.Explain("sum", "").Because)
	assert.Equal(t, "sum", g.Explain("twice", "").Because)
}

func TestExplainListsAtMostAHundredAskers(t *testing.T) {
	g := New[world]("g")
	a := sourceA(g)
	Map(sourceB(g), "out", func(r *Reader, k string, x item) (int, error) {
		_, err := a.Get(r, "p")
		return 0, err
	})
	w := world{A: []item{{Key: "p"}}}
	for i := range 150 {
		w.B = append(w.B, item{Key: fmt.Sprintf("%03d", i)})
	}
	update(t, g, w)
	assert.Len(t, g.Explain("a", "p").AskedBy, 100)
}

func TestExplainAndStatsMayBeCalledFromAnyGoroutineAtAnyTime(t *testing.T) {
	g := New[world]("g", Audit(2))
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = g.Explain("out", "x")
					_ = g.Explain("flat", "x/0")
					_ = g.Stats()
				}
			}
		})
	}
	busy := false
	text := Input(g, "text", func(w *world) string { return w.Text })
	a := sourceA(g)
	flat := FlatMap(a, "flat", func(_ *Reader, _ string, x item, put func(int, int)) error { put(0, x.N); return nil })
	out := Map(a, "out", func(r *Reader, k string, x item) (int, error) {
		busy = busy || g.Explain("out", k).Busy
		y, _ := flat.Get(r, From[string, int]{k, x.N % 2})
		_, _ = text.Get(r)
		return x.N + y, nil
	})
	for n := range 300 {
		r, err := g.Update(&world{A: []item{{Key: "x", N: n}}, Text: fmt.Sprint(n % 3)})
		if assert.NoError(t, err); n%7 == 0 {
			assert.NoError(t, g.Verify())
			assert.Equal(t, 1, out.Len(r))
			assert.NoError(t, g.Reset())
		}
	}
	close(stop)
	all.Wait()
	assert.True(t, busy, "an Update runs")
	assert.EqualValues(t, 300, g.Stats().Updates)
}

func TestStatsCountEntriesRunsAndRunsForNothing(t *testing.T) {
	g := New[world]("g")
	assert.Equal(t, Stats{Graph: "g"}, g.Stats())
	a := sourceA(g)
	Map(a, "map", func(_ *Reader, _ string, x item) (int, error) { return x.N / 10, nil })
	FlatMap(a, "flat", func(_ *Reader, _ string, x item, put func(int, int)) error {
		for i := range x.N % 10 {
			put(i, 0)
		}
		return nil
	})
	GroupBy(a, "groups", func(_ string, x item) []int {
		if x.Ref == "bad" {
			panic("boom")
		}
		return []int{x.N}
	})
	counts := func() (all [][6]int) {
		for _, n := range g.Stats().Nodes {
			all = append(all, [6]int{n.Entries, n.Invalid, int(n.Runs), int(n.Equal), n.LastRuns, n.LastEqual})
		}
		return all
	}
	update(t, g, world{A: []item{{Key: "x", N: 12}, {Key: "y", N: 20}}})
	assert.Equal(t, [][6]int{{2, 0, 0, 0, 0, 0}, {2, 0, 2, 0, 2, 0}, {2, 0, 2, 0, 2, 0}, {2, 0, 2, 0, 2, 0}}, counts())
	update(t, g, world{A: []item{{Key: "x", N: 12, Ref: "bad"}}})
	assert.Equal(t, [][6]int{{1, 0, 0, 0, 0, 0}, {1, 0, 3, 1, 1, 1}, {2, 0, 3, 1, 1, 1}, {0, 1, 3, 0, 1, 0}}, counts())
	assert.EqualError(t, g.Stats().Nodes[3].Example, "groups x: the function of groups panicked: boom")
	assert.Equal(t, []string{"Slice", "Map", "FlatMap", "GroupBy"}, []string{g.Stats().Nodes[0].Kind, g.Stats().Nodes[1].Kind, g.Stats().Nodes[2].Kind, g.Stats().Nodes[3].Kind})
}
