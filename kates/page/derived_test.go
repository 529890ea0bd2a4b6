package page

import (
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/kates"
)

// item is an object of a graph's snapshot. What is in it is shown nowhere.
type item struct{ Name, Value string }

type items struct{ All []item }

// graphOf declares a graph of the usual nodes, under names that a test may choose.
func graphOf(name, key string, broken error, options ...derive.GraphOption) (*derive.Graph[items], *items) {
	g := derive.New[items](name, options...)
	of := derive.Slice(g, "items", func(s *items) []item { return s.All }, func(i item) string { return i.Name })
	rows := derive.Map(of, "rows", func(r *derive.Reader, _ string, i item) (item, error) {
		n := 0
		for range of.All(r) {
			n++
		}
		return item{i.Name, i.Value + planted}, nil
	})
	derive.Map(of, "broken", func(_ *derive.Reader, _ string, i item) (string, error) { return i.Value, broken })
	derive.Compute(g, "all", func(r *derive.Reader) (int, error) { return rows.Len(r), nil })
	return g, &items{All: []item{{key, planted}, {"prod/b", planted}}}
}

// derived has a page about a graph that has had an Update.
func derived(t *testing.T, g *derive.Graph[items], s *items) Option {
	t.Helper()
	_, err := g.Update(s)
	require.NoError(t, err)
	return func(p *Page) { p.Derived(g) }
}

// graphs has a page about a graph with something in each field, which finds two of its functions
// impure.
func graphs(t *testing.T) Option {
	t.Helper()
	g, s := graphOf("graph", "prod/a", errors.New("the image does not exist"), derive.Audit(10))
	runs := 0
	derive.Compute(g, "impure", func(*derive.Reader) (int, error) { runs++; return runs, nil })
	set := derived(t, g, s)
	_, err := g.Update(&items{All: append([]item{{"prod/a", "another"}}, s.All[1:]...)})
	require.NoError(t, err)
	return set
}

// secretive has a page about a graph whose errors and keys have what nobody may see.
func secretive(t *testing.T) Option {
	g, s := graphOf("graph", planted, fmt.Errorf("refused: %s is weak", planted))
	s.All = append(s.All, item{"prod/a", planted})
	return derived(t, g, s)
}

// graphNamed has a page about a graph of a name, with an entry of a key.
func graphNamed(t *testing.T, name, key string) Option {
	t.Helper()
	g, s := graphOf(name, key, errors.New(key))
	derive.Input(g, name, func(*items) int { return 1 })
	return derived(t, g, s)
}

func TestAPageSaysWhatTheNodesOfAGraphHaveDone(t *testing.T) {
	_, base := serve(t, graphs(t))
	of := dataOf[DerivedPage](t, base+"derived").Graphs
	require.Len(t, of, 1)
	assert.Equal(t, "graph", of[0].Name)
	assert.EqualValues(t, 2, of[0].Updates)
	assert.Positive(t, of[0].ImpureTotal)
	assert.Contains(t, of[0].Impure[0], "impure: ")
	nodes := map[string]NodeRow{}
	for _, n := range of[0].Nodes {
		nodes[n.Name] = n
	}
	rows := nodes["rows"]
	assert.Equal(t, []any{"Map", 2, 0, uint64(4), uint64(1), 2, 1}, []any{rows.Kind, rows.Entries, rows.Invalid, rows.Runs, rows.Equal, rows.LastRuns, rows.LastEqual})
	assert.Equal(t, "all of items", rows.EqualBecause)
	assert.Positive(t, rows.Seconds)
	broken := nodes["broken"]
	assert.Equal(t, []any{0, 2}, []any{broken.Entries, broken.Invalid})
	assert.Contains(t, broken.Example, "the image does not exist")
	row := rowOf(t, ok(t, base+"derived"), ">rows<")
	for _, says := range []string{"Map", ">2<", "4<br>", "2 in the last Update", "1 in the last Update", "all of items"} {
		assert.Contains(t, row, says)
	}
}

func TestAPageSaysWhatAnEntryLookedUpAndWhyItRan(t *testing.T) {
	_, base := serve(t, graphs(t))
	of := dataOf[DerivedPage](t, base+"derived?graph=graph&node=rows&key=prod%2Fb").Entry
	assert.Equal(t, &EntryRow{
		Graph: "graph", Node: "rows", Key: "prod/b", Found: true, LookedUp: []string{"all of items"}, Because: "all of items", Ran: 2,
	}, of)
	body := ok(t, base+"derived?graph=graph&node=rows&key=prod%2Fb")
	assert.Contains(t, body, "What it looked up")
	assert.Contains(t, body, `value="prod/b"`, "the form keeps what was asked")
	of = dataOf[DerivedPage](t, base+"derived?graph=graph&node=broken&key=prod%2Fa").Entry
	assert.Equal(t, "the image does not exist", of.Error)
	assert.Contains(t, ok(t, base+"derived?graph=graph&node=rows&key=none"), "There is no such entry.")
	assert.Contains(t, ok(t, base+"derived?graph=none&node=rows&key=prod%2Fa"), "There is no such entry.")
	assert.Contains(t, ok(t, base+"derived?graph=graph&node=rows"), "Give the key of an entry.")
	assert.Contains(t, ok(t, base+"derived?graph=graph&node=items&key=prod%2Fa"), "No function makes it.")
}

func TestAPageSaysThatAGraphIsBusy(t *testing.T) {
	g, s := graphOf("graph", "prod/a", nil)
	running, end := make(chan struct{}), make(chan struct{})
	wait := false
	derive.Compute(g, "slow", func(*derive.Reader) (int, error) {
		if wait {
			close(running)
			<-end
		}
		return 0, nil
	})
	_, base := serve(t, derived(t, g, s))
	wait = true
	require.NoError(t, g.Reset())
	done := make(chan error, 1)
	go func() {
		_, err := g.Update(s)
		done <- err
	}()
	<-running
	body := ok(t, base+"derived?graph=graph&node=rows&key=prod%2Fa")
	of := dataOf[DerivedPage](t, base+"derived?graph=graph&node=rows&key=prod%2Fa")
	close(end)
	require.NoError(t, <-done)
	assert.Contains(t, body, "An Update is running. Ask again.")
	assert.True(t, of.Entry.Busy)
	assert.EqualValues(t, 1, of.Graphs[0].Updates, "the figures are of the last one")
}

func TestAGraphTakesThePlaceOfOneOfItsName(t *testing.T) {
	first, s := graphOf("graph", "prod/a", nil)
	second, _ := graphOf("graph", "prod/a", nil)
	other, _ := graphOf("other", "prod/a", nil)
	_, base := serve(t, derived(t, first, s), derived(t, other, s), derived(t, second, s))
	_, err := second.Update(s)
	require.NoError(t, err)
	of := dataOf[DerivedPage](t, base+"derived").Graphs
	require.Len(t, of, 2)
	assert.Equal(t, "other", of[0].Name)
	assert.Equal(t, "graph", of[1].Name)
	assert.EqualValues(t, 2, of[1].Updates)
}

func TestNamesOfEntriesAreLeftOutWithRedact(t *testing.T) {
	_, base := serve(t, secretive(t), Redact(func(*kates.Unstructured) {}))
	for _, address := range []string{"", "derived", "derived?graph=graph&node=items&key=prod%2Fb", "derived?graph=graph&node=broken&key=prod%2Fa"} {
		clean(t, address, ok(t, base+address))
	}
	of := dataOf[DerivedPage](t, base+"derived?graph=graph&node=rows&key=prod%2Fa").Entry
	assert.Equal(t, []string{textLeftOut}, of.LookedUp)
	assert.Equal(t, "it is new", of.Because, "it quotes nothing")
}

func TestImpureFunctionsAndInvalidEntriesAreProblems(t *testing.T) {
	p, base := serve(t, graphs(t))
	found := causes(p)
	assert.Equal(t, Wrong, found["impure"].Effect)
	assert.Contains(t, found["impure"].Detail, "impure: ")
	assert.Contains(t, found["impure"].Do, "katestest.Derives")
	assert.Equal(t, Wrong, found["derive-invalid"].Effect)
	assert.Contains(t, found["derive-invalid"].What, "“broken” of the graph “graph” has 2 invalid entries")
	assert.Contains(t, found["derive-invalid"].Detail, "the image does not exist")
	to, err := url.Parse(base)
	require.NoError(t, err)
	to, err = to.Parse(found["derive-invalid"].Link)
	require.NoError(t, err)
	assert.Contains(t, idsOf(t, ok(t, to.String())), "graph-graph", "the link leads to the graph")
}

func TestAnEntryThatIsInvalidBecauseOfAnotherIsNoProblemOfItsOwn(t *testing.T) {
	g := derive.New[items]("graph")
	of := derive.Slice(g, "items", func(s *items) []item { return s.All }, func(i item) string { return i.Name })
	first := derive.Map(of, "first", func(_ *derive.Reader, _ string, i item) (string, error) { return "", errors.New("refused") })
	derive.Map(first, "second", func(_ *derive.Reader, _ string, s string) (string, error) { return s, nil })
	derive.Compute(g, "third", func(r *derive.Reader) (string, error) { return first.Get(r, "a") })
	p, _ := serve(t, derived(t, g, &items{All: []item{{"a", "1"}, {"b", "1"}}}))
	n := 0
	for _, of := range p.stateNow("").problems {
		if of.Cause == "derive-invalid" {
			n++
			assert.Contains(t, of.What, "“first”")
		}
	}
	assert.Equal(t, 1, n)
}

// wasting is what is wrong with a graph of so many items, of which the first changes three times.
func wasting(t *testing.T, n int, declare func(of derive.Collection[string, item])) map[string]Problem {
	t.Helper()
	g := derive.New[items]("graph")
	declare(derive.Slice(g, "items", func(s *items) []item { return s.All }, func(i item) string { return i.Name }))
	s := &items{}
	for i := range n {
		s.All = append(s.All, item{fmt.Sprintf("i%06d", i), ""})
	}
	p := New(derived(t, g, s))
	p.Close() // no samples but these
	p.history.series = nil
	now := time.Now()
	for i := range 4 {
		p.takeSample(now.Add(time.Duration(i-4) * time.Second))
		s = &items{All: append([]item{{s.All[0].Name, fmt.Sprint(i)}}, s.All[1:]...)}
		_, err := g.Update(s)
		require.NoError(t, err)
	}
	return causes(p)
}

func TestRunsForNothingAreExpensiveAndThePageSaysWhatToDo(t *testing.T) {
	all := func(of derive.Collection[string, item]) {
		derive.Map(of, "rows", func(r *derive.Reader, _ string, i item) (string, error) {
			return fmt.Sprint(i.Value, of.Len(r)), nil
		})
	}
	p := wasting(t, 1000, all)["wasted-runs"]
	assert.Equal(t, Expensive, p.Effect)
	assert.Contains(t, p.What, "“rows” of the graph “graph” ran 3\u202f000 times in the last minutes, and 2\u202f997 times it gave what was there")
	assert.Equal(t, "all of items", p.Detail)
	assert.Contains(t, p.Do, "Get, or with an index")
	assert.NotContains(t, wasting(t, 100, all), "wasted-runs", "few runs cost nothing")

	p = wasting(t, 1000, func(of derive.Collection[string, item]) {
		first := derive.Map(of, "first", func(_ *derive.Reader, _ string, i item) (item, error) { return i, nil })
		derive.Map(of, "rows", func(r *derive.Reader, _ string, i item) (string, error) {
			x, err := first.Get(r, "i000000")
			return x.Name, err
		})
	})["wasted-runs"]
	assert.Equal(t, "first i000000", p.Detail)
	assert.Contains(t, p.Do, "an Equal")

	assert.NotContains(t, wasting(t, 1000, func(of derive.Collection[string, item]) {
		first := derive.Map(of, "first", func(_ *derive.Reader, _ string, i item) (item, error) { return i, nil })
		derive.Map(of, "rows", func(r *derive.Reader, _ string, i item) (string, error) {
			x, err := first.Get(r, "i000000")
			return i.Name + x.Value, err
		})
	}), "wasted-runs", "each run has given something else")
}
