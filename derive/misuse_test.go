package derive

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
)

func none(*Reader, string, item) (int, error) { return 0, nil }

func TestAMistakeOfADeclarationIsTheErrorOfEachUpdate(t *testing.T) {
	field := func(w *world) []item { return w.A }
	for want, declare := range map[string]func(g *Graph[world], a Collection[string, item]){
		`two nodes have the name "a"`:       func(g *Graph[world], a Collection[string, item]) { Map(a, "a", none) },
		`a node of kind Map has no name`:    func(g *Graph[world], a Collection[string, item]) { Map(a, "", none) },
		`"m" has no function`:               func(g *Graph[world], a Collection[string, item]) { Map[string, item, int](a, "m", nil) },
		`"f" has no function`:               func(g *Graph[world], a Collection[string, item]) { FlatMap[string, int, item, int](a, "f", nil) },
		`"i" has no function`:               func(g *Graph[world], a Collection[string, item]) { GroupBy[int](a, "i", nil) },
		`"l" has no function`:               func(g *Graph[world], a Collection[string, item]) { ByLabels(a, "l", nil) },
		`"s" has no function`:               func(g *Graph[world], a Collection[string, item]) { BySelector(a, "s", nil) },
		`"c" has no function`:               func(g *Graph[world], a Collection[string, item]) { Compute[int](g, "c", nil) },
		`"n" has no function for its field`: func(g *Graph[world], a Collection[string, item]) { Input[world, int](g, "n", nil) },
		`"o" has no function for its field`: func(g *Graph[world], a Collection[string, item]) { Objects[world, objectType](g, "o", nil) },
		`"k" has no function for its keys`: func(g *Graph[world], a Collection[string, item]) {
			Slice[world, string](g, "k", field, nil)
		},
		`"p": the type of its keys: *int has no order: a key is a string, an integer, a bool, an array or a struct of these, or has a method Compare`: func(g *Graph[world], a Collection[string, item]) {
			Slice(g, "p", field, func(item) *int { return nil })
		},
		`"q": the type of its keys: field F: float64 has no order: a key is a string, an integer, a bool, an array or a struct of these, or has a method Compare`: func(g *Graph[world], a Collection[string, item]) {
			GroupBy(a, "q", func(string, item) []struct{ F float64 } { return nil })
		},
	} {
		g := New[world]("g")
		declare(g, sourceA(g))
		for range 2 {
			_, err := g.Update(&world{})
			assert.EqualError(t, err, `derive: graph "g": `+want)
		}
	}
}

func TestNothingIsDeclaredAfterTheFirstUpdate(t *testing.T) {
	for want, declare := range map[string]func(a Collection[string, item], x Index[string, string, item]){
		`"m" is declared after the first Update`: func(a Collection[string, item], _ Index[string, string, item]) { Map(a, "m", none) },
		`ChangesOf("a") is called after the first Update`: func(a Collection[string, item], _ Index[string, string, item]) {
			ChangesOf(a)
		},
	} {
		g := New[world]("g")
		a := sourceA(g)
		x := GroupBy(a, "x", func(_ string, x item) []string { return []string{x.Ref} })
		update(t, g, world{})
		declare(a, x)
		_, err := g.Update(&world{})
		assert.EqualError(t, err, `derive: graph "g": `+want)
	}
}

func TestKeysAreNotAskedForAfterTheFirstUpdate(t *testing.T) {
	g := New[world]("g")
	x := GroupBy(sourceA(g), "x", func(_ string, x item) []string { return []string{x.Ref} })
	update(t, g, world{})
	assert.PanicsWithError(t, `derive: the keys of "x" are asked for after the first Update: call Keys before it`, func() { x.Keys() })
	update(t, g, world{A: []item{{Key: "k"}}})
}

func TestKeysIsOneNodeHoweverOftenItIsAskedFor(t *testing.T) {
	g := New[world]("g")
	x := GroupBy(sourceA(g), "x", func(_ string, x item) []string { return []string{x.Ref} })
	assert.Equal(t, x.Keys(), x.Keys())
	r := update(t, g, world{A: []item{{Key: "p", Ref: "1"}, {Key: "q", Ref: "2"}, {Key: "r", Ref: "2"}}})
	assert.Equal(t, map[string]struct{}{"1": {}, "2": {}}, all(r, x.Keys()))
}

func TestAReaderReadsItsOwnGraphUntilTheNextUpdate(t *testing.T) {
	g, other := New[world]("g"), New[world]("other")
	a := sourceA(g)
	index := GroupBy(a, "index", func(_ string, x item) []string { return nil })
	labeled := ByLabels(a, "labeled", func(string, item) (string, map[string]string) { return "", nil })
	selecting := BySelector(a, "selecting", func(string, item) (string, labels.Selector) { return "", nil })
	text := Input(g, "text", func(w *world) string { return w.Text })
	changes := ChangesOf(a)
	sourceA(other)
	foreign := update(t, other, world{})
	old := update(t, g, world{A: []item{{Key: "x"}}})
	late := a.All(old)
	now := update(t, g, world{A: []item{{Key: "x"}}})
	for what, read := range map[string]func(r *Reader){
		"a":         func(r *Reader) { a.Len(r) },
		"index":     func(r *Reader) { index.Members(r, "") },
		"labeled":   func(r *Reader) { labeled.Select(r, "", nil) },
		"selecting": func(r *Reader) { selecting.Matching(r, "", nil) },
		"text":      func(r *Reader) { _, _ = text.Get(r) },
	} {
		assert.PanicsWithError(t, `derive: "`+what+`" is read with a Reader that is nil`, func() { read(nil) })
		assert.PanicsWithError(t, `derive: "`+what+`" is read with a Reader of the graph "other"`, func() { read(foreign) })
		assert.PanicsWithError(t, `derive: "`+what+`" is read with a Reader that has ended`, func() { read(old) })
		assert.NotPanics(t, func() { read(now) })
	}
	const ended = `derive: "a" is read with a Reader that has ended`
	assert.PanicsWithError(t, ended, func() { changes.All(old) })
	assert.PanicsWithError(t, ended, func() {
		for range late {
			t.Error("an iteration goes on after its Reader has ended")
		}
	})
}

func TestWhatNoGraphHasMadeCannotBeReadOrDeclaredOn(t *testing.T) {
	const want = "derive: a collection or value that no graph has made is read"
	g := New[world]("g")
	r := update(t, g, world{})
	for _, read := range []func(){
		func() { _, _ = Collection[string, int]{}.Get(r, "") },
		func() { Collection[string, int]{}.All(r) },
		func() { _, _ = Value[int]{}.Get(r) },
		func() { Index[int, string, int]{}.Members(r, 0) },
		func() { Index[int, string, int]{}.Keys().Len(r) },
		func() { Labeled[string, int]{}.Select(r, "", nil) },
		func() { Selecting[string, int]{}.Matching(r, "", nil) },
	} {
		assert.PanicsWithError(t, want, read)
	}
	assert.PanicsWithError(t, `derive: "m" is declared on a collection that no graph has made`, func() {
		Map(Collection[string, item]{}, "m", none)
	})
	assert.PanicsWithError(t, "derive: ChangesOf of a collection that no graph has made", func() { ChangesOf(Collection[string, item]{}) })
}

func TestOneUpdateAtATime(t *testing.T) {
	g := New[world]("g")
	var errs []error
	Map(sourceA(g), "out", func(*Reader, string, item) (int, error) {
		_, err := g.Update(&world{})
		errs = append(errs, err, g.Reset(), g.Verify())
		return 0, nil
	})
	update(t, g, world{A: []item{{Key: "x"}}})
	require.Len(t, errs, 3)
	assert.EqualError(t, errs[0], `derive: graph "g": another Update is running`)
	assert.EqualError(t, errs[1], `derive: graph "g": Reset during an Update`)
	assert.EqualError(t, errs[2], `derive: graph "g": Verify during an Update`)
}

func TestASnapshotIsNotNil(t *testing.T) {
	_, err := New[world]("g").Update(nil)
	assert.EqualError(t, err, `derive: graph "g": Update of a nil snapshot`)
}

func TestAfterAnErrorTheNextUpdateIsAFirstOne(t *testing.T) {
	g := New[world]("g")
	var j journal
	a := Slice(g, "a", func(w *world) []item {
		if w.Text == "bad" {
			panic("boom")
		}
		return w.A
	}, itemKey)
	out := Map(a, "out", func(_ *Reader, k string, x item) (int, error) { j.ran(k); return x.N, nil })
	w := world{A: []item{{Key: "x"}}}
	last := update(t, g, w)
	j.since()
	bad := w
	bad.Text = "bad"
	_, err := g.Update(&bad)
	require.EqualError(t, err, `derive: graph "g": the field or the key of a panicked: boom`)
	assert.Panics(t, func() { out.Len(last) }, "the results of before have ended")
	assert.EqualError(t, g.Verify(), `derive: graph "g": Verify before an Update that succeeds`)
	assert.False(t, g.Explain("out", "x").Found)
	r := update(t, g, w)
	assert.Equal(t, []string{"x"}, j.since())
	assert.Equal(t, map[string]int{"x": 0}, all(r, out))
}

func TestAfterAFunctionEndsItsGoroutineTheNextUpdateIsAFirstOne(t *testing.T) {
	g := New[world]("g")
	var j journal
	var kept *Reader
	a := sourceA(g)
	out := Map(sourceB(g), "out", func(r *Reader, k string, x item) (int, error) {
		j.ran(k)
		_, _ = a.Get(r, "absent")
		if kept = r; x.N == 1 {
			runtime.Goexit()
		}
		return x.N, nil
	})
	update(t, g, world{B: []item{{Key: "x"}, {Key: "y"}}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = g.Update(&world{B: []item{{Key: "x", N: 1}, {Key: "y"}}})
	}()
	<-done
	assert.PanicsWithError(t, `derive: "a" is read with a Reader that has ended`, func() { a.Len(kept) })
	j.since()
	r := update(t, g, world{B: []item{{Key: "x", N: 2}, {Key: "y"}}})
	assert.Equal(t, []string{"x", "y"}, j.since())
	assert.Equal(t, map[string]int{"x": 2, "y": 0}, all(r, out))
}

func TestAReaderOfAFunctionEndsWithItsRun(t *testing.T) {
	g := New[world]("g")
	a := sourceA(g)
	var kept *Reader
	var put func(int, int)
	FlatMap(sourceB(g), "out", func(r *Reader, _ string, _ item, p func(int, int)) error {
		kept, put = r, p
		return nil
	})
	update(t, g, world{B: []item{{Key: "x"}}})
	assert.PanicsWithError(t, `derive: "a" is read with a Reader that has ended`, func() { a.Len(kept) })
	assert.PanicsWithError(t, `derive: "out": put is called after its function has returned`, func() { put(1, 1) })
}

func TestChangesAreNotReadInAFunction(t *testing.T) {
	g := New[world]("g")
	a := sourceA(g)
	changes := ChangesOf(a)
	out := Map(a, "out", func(r *Reader, _ string, _ item) (int, error) {
		for range changes.All(r) {
			return 0, errors.New("it reads")
		}
		return 0, nil
	})
	r := update(t, g, world{A: []item{{Key: "x"}}})
	assert.Equal(t, map[string]string{"x": `the function of out panicked: derive: the changes of "a" are read in a function`}, invalid(r, out))
}

func TestAnEqualOfAnInputThatPanicsIsTheErrorOfTheUpdate(t *testing.T) {
	g := New[world]("g")
	text := Input(g, "text", func(w *world) string { return w.Text }, Equal(func(a, b string) bool {
		if b == "bad" {
			panic("boom")
		}
		return a == b
	}))
	update(t, g, world{Text: "x"})
	_, err := g.Update(&world{Text: "bad"})
	require.EqualError(t, err, `derive: graph "g": the field or the key of text panicked: boom`)
	r := update(t, g, world{Text: "bad"})
	got, err := text.Get(r)
	require.NoError(t, err)
	assert.Equal(t, "bad", got, "a first Update compares with nothing")
}

func TestAnEqualThatPanicsMakesItsEntryInvalid(t *testing.T) {
	g := New[world]("g")
	equal := Equal(func(a, b int) bool {
		if b == 13 {
			panic("boom")
		}
		return a == b
	})
	a := sourceA(g)
	made := Map(a, "made", func(_ *Reader, _ string, x item) (int, error) { return x.N, nil }, equal)
	put := FlatMap(a, "put", func(_ *Reader, _ string, x item, put func(int, int)) error { put(0, x.N); return nil }, equal)
	update(t, g, world{A: []item{{Key: "x", N: 1}}})
	r := update(t, g, world{A: []item{{Key: "x", N: 13}}})
	assert.Equal(t, map[string]string{"x": "the function of made panicked: boom"}, invalid(r, made))
	assert.Equal(t, map[From[string, int]]string{{"x", 0}: "the function of put panicked: boom"}, invalid(r, put))
	r = update(t, g, world{A: []item{{Key: "x", N: 2}}})
	assert.Equal(t, map[string]int{"x": 2}, all(r, made))
	assert.Equal(t, map[From[string, int]]int{{"x", 0}: 2}, all(r, put))
}
