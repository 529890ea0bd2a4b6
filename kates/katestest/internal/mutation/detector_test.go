package mutation

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/collect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thing returns an object whose JSON has the same length for each n below 1000.
func thing(n int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"kind": "Thing", "metadata": map[string]any{"name": fmt.Sprintf("t%03d", n)}, "n": int64(1),
	}}
}

var size = len(mustEncode(thing(0)))

func mustEncode(value any) []byte {
	text, err := encode(value)
	if err != nil {
		panic(err)
	}
	return text
}

func write(o *unstructured.Unstructured) { o.Object["n"] = int64(2) }

var clock = regexp.MustCompile(` \(\d\d:\d\d:\d\d\.\d{3}\)`)

// foundSoFar is what the detector has found, before the end.
func (d *Detector) foundSoFar() (all []string) {
	for _, f := range d.findings {
		all = append(all, clock.ReplaceAllString(f.String(), ""))
	}
	return all
}

func (w *Watch) snapshot() { w.Delivered(collect.Delivery{Moment: collect.NewSnapshot}) }

func TestASnapshotLooksAtWhatWasNotLookedAtForLongest(t *testing.T) {
	d := New(Limits{Look: 3 * size, Held: 1 << 20})
	w := d.Watching("snap")
	var all []*unstructured.Unstructured
	for n := range 10 {
		all = append(all, thing(n))
		w.Shown("Things", all[n], all[n])
	}
	w.snapshot() // 0, 1, 2
	write(all[1])
	write(all[8])
	w.snapshot() // 3, 4, 5
	w.snapshot() // 6, 7, 8
	assert.Equal(t, []string{
		`somebody wrote to a shared object: Thing t008 of query "Things": n: first seen in snapshot 3 of snap; unchanged when it was handed out first`,
	}, d.foundSoFar())
	w.snapshot() // 9, 0, 1
	assert.Equal(t, []string{
		`somebody wrote to a shared object: Thing t001 of query "Things": n: first seen in snapshot 4 of snap; unchanged in snapshot 1 of snap`,
	}, d.foundSoFar()[1:])
	assert.Len(t, d.End(), 2)
}

func TestWhatNoWatchShowsIsLetGoBeforeWhatIsShown(t *testing.T) {
	d := New(Limits{Look: 0, Held: 4 * size})
	w := d.Watching("snap")
	old, shown := thing(0), thing(1)
	w.Shown("Things", shown, shown)
	w.Shown("Things", old, old)
	w.Shown("Things", thing(0), thing(0)) // another version, in two values
	write(old)
	assert.Equal(t, 4*size, d.held)
	assert.Empty(t, d.foundSoFar())
	newest := thing(2)
	w.Shown("Things", newest, newest)
	assert.Equal(t, 4*size, d.held)
	assert.Equal(t, []string{`somebody wrote to a shared object: Thing t000 of query "Things": n: ` +
		`first seen when it was let go, since the test shows more than can be held; unchanged when it was handed out first`}, d.foundSoFar())
	write(shown)
	assert.Len(t, d.End(), 2, "what is shown is still held")
}

func TestWhatIsShownForLongestIsLetGoInTheEnd(t *testing.T) {
	d := New(Limits{Look: 0, Held: 2 * size})
	w := d.Watching("snap")
	first := thing(0)
	w.Shown("Things", first, first)
	write(first)
	for n := 1; n < 10; n++ {
		w.Shown("Things", thing(n), thing(n))
	}
	assert.Len(t, d.foundSoFar(), 1)
	assert.Equal(t, 2*size, d.held)
}

func TestADetectorHoldsNoMoreThanItsLimit(t *testing.T) {
	d := New(Limits{Look: 10 * size, Held: 10 * size})
	w := d.Watching("snap")
	for n := range 20_000 {
		o := thing(n % 3)
		if n%100 < 50 {
			o = thing(n % 100) // they come and go
		}
		w.Shown("Things", o, o)
		w.snapshot()
		if n%100 < 50 {
			w.Gone("Things", o)
		}
		require.LessOrEqual(t, d.held, 10*size)
	}
	assert.LessOrEqual(t, len(d.known), 10)
	assert.LessOrEqual(t, len(d.shown), 2000)
	assert.LessOrEqual(t, len(d.former), 2000)
	assert.Empty(t, d.End())
}

func TestAVersionThatIsShownAgainIsHeldOnce(t *testing.T) {
	d := New(Default)
	w, other := d.Watching("snap"), d.Watching("other")
	o := thing(0)
	for range 10 {
		w.Shown("Things", o, o.Object) // an untyped object and its content are the same
		other.Shown("Others", o, o)
		w.Lent("a function", "Things", o, nil)()
	}
	assert.Equal(t, size, d.held)
	write(o)
	other.snapshot()
	assert.Equal(t, []string{`somebody wrote to a shared object: Thing t000 of the queries ["Others" "Things"]: n: ` +
		`first seen in snapshot 1 of other; unchanged when a function of query "Things" returned`}, d.foundSoFar())
}

func TestTwoValuesThatShareMemoryAreOneFinding(t *testing.T) {
	d := New(Default)
	w := d.Watching("snap")
	o := thing(0)
	made := map[string]any{"n": int64(1), "metadata": o.Object["metadata"]}
	w.Shown("Things", o, made)
	o.SetName("x")
	assert.Len(t, d.End(), 1)
	assert.Contains(t, d.End()[0], "Thing t000")
}

func TestAValueThatIsNoJSONAnyMoreHasChanged(t *testing.T) {
	d := New(Default)
	w := d.Watching("snap")
	raw := json.RawMessage(`{"a":1}`)
	w.Shown("Things", thing(0), raw)
	raw[0] = 'x'
	require.Len(t, d.End(), 1)
	assert.Contains(t, d.End()[0], "it is no JSON any more")
}

type panicking struct{ when *bool }

func (p panicking) MarshalJSON() ([]byte, error) {
	if *p.when {
		panic("this type does not work")
	}
	return []byte(`1`), nil
}

func TestATypeThatPanicsIsNoReasonToPanic(t *testing.T) {
	d := New(Default)
	w := d.Watching("snap")
	now := true
	w.Shown("Things", thing(0), &panicking{&now})
	assert.Empty(t, d.End(), "it was never read")
	now = false
	w.Shown("Things", thing(0), &panicking{&now})
	now = true
	assert.Len(t, d.End(), 1)
}

func TestTheFieldsOfAChangeArePathsWithoutValues(t *testing.T) {
	for _, c := range []struct {
		before string
		now    any
		fields string
	}{
		{`{"a":[1,{"b":"secret"}]}`, map[string]any{"a": []any{1, map[string]any{"b": "other"}}}, "a[1].b"},
		{`{"a":[1]}`, map[string]any{"a": []any{1, 2}, "c": nil}, "a, c"},
		{`{"a":9007199254740992}`, map[string]any{"a": int64(9007199254740993)}, "a"},
		{`{}`, nil, "all of it"},
		{`{"a":1}`, map[string]any{"a": 1}, ""},
	} {
		assert.Equal(t, c.fields, compare([]byte(c.before+"\n"), c.now), c.before)
	}
}

func TestOfManyElementsThatHaveMovedSomeAreNamed(t *testing.T) {
	d := New(Default)
	w := d.Watching("snap")
	all := make([]*int, 20)
	for i := range all {
		all[i] = new(int)
	}
	w.Delivered(collect.Delivery{Moment: collect.NewSnapshot, Filled: []collect.Filled{{Query: "Things", Value: reflect.ValueOf(all)}}})
	slices.Reverse(all)
	assert.Equal(t, `somebody wrote to a shared slice, that of query "Things": [0], [1], [2], [3], [4], …: `+
		`first seen when the test ended; unchanged in snapshot 1 of snap`, clock.ReplaceAllString(d.End()[0], ""))
}

func TestAnElementIsAnotherOnlyIfItsOwnJSONIs(t *testing.T) {
	type element struct {
		Name   string
		hidden int
	}
	all := []element{{Name: "a"}, {Name: "b"}}
	before := copyOf(reflect.ValueOf(all))
	all[0].hidden = 1
	assert.Empty(t, changedElements(before, reflect.ValueOf(all)))
	all[1].Name = "c"
	assert.Equal(t, []string{"[1] (Name)"}, changedElements(before, reflect.ValueOf(all)))
	contents := []any{map[string]any{}, nil}
	before = copyOf(reflect.ValueOf(contents))
	contents[0] = map[string]any{}
	assert.Equal(t, []string{"[0]"}, changedElements(before, reflect.ValueOf(contents)))
}
