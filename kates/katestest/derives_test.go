package katestest_test

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/internal/test/suite/judged"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

type (
	graphOfThings = derive.Graph[things]
	mapsOfThings  = derive.Collection[types.NamespacedName, *kates.ConfigMap]
	nameOfThing   = types.NamespacedName
)

// graphOn returns a function that declares a graph on the config maps of a snapshot.
func graphOn(declare func(g *graphOfThings, maps mapsOfThings)) func() *graphOfThings {
	return func() *graphOfThings {
		g := derive.New[things]("things")
		declare(g, derive.Objects(g, "maps", func(s *things) []*kates.ConfigMap { return s.ConfigMaps }))
		return g
	}
}

// threeSnapshots share a, whose pointer stays. In the second b changes and c comes; in the third a
// has gone and b is as it was.
func threeSnapshots() (all []*things) {
	a, b := thing("a", "1"), thing("b", "2")
	a.Labels, b.Labels = map[string]string{"app": "x"}, map[string]string{"app": "y"}
	other := thing("b", "3")
	other.Labels = map[string]string{"app": "x"}
	return []*things{
		{ConfigMaps: []*kates.ConfigMap{a, b}},
		{ConfigMaps: []*kates.ConfigMap{a, other, thing("c", "1")}},
		{ConfigMaps: []*kates.ConfigMap{b}},
	}
}

func TestAPureGraphOfEveryKindOfNodeDerives(t *testing.T) {
	runs := 0
	build := graphOn(func(g *graphOfThings, maps mapsOfThings) {
		runs++
		secrets := derive.Slice(g, "secrets", func(s *things) []*kates.Secret { return s.Secrets }, func(s *kates.Secret) string { return s.Name })
		number := derive.Input(g, "number", func(s *things) int { return len(s.ConfigMaps) })
		byApp := derive.GroupBy(maps, "by app", func(_ nameOfThing, m *kates.ConfigMap) []string {
			if m.Name == "c" {
				panic("c is in no group")
			}
			return []string{m.Labels["app"]}
		})
		keys := byApp.Keys()
		labeled := derive.ByLabels(maps, "labels", func(k nameOfThing, m *kates.ConfigMap) (string, map[string]string) { return k.Namespace, m.Labels })
		selecting := derive.BySelector(maps, "selectors", func(k nameOfThing, m *kates.ConfigMap) (string, labels.Selector) {
			return k.Namespace, labels.SelectorFromSet(m.Labels)
		})
		out := derive.Map(maps, "out", func(r *derive.Reader, k nameOfThing, m *kates.ConfigMap) (derive.Group[nameOfThing, *kates.ConfigMap], error) {
			if m.Data["x"] == "3" {
				return derive.Group[nameOfThing, *kates.ConfigMap]{}, errors.New("three is refused")
			}
			return labeled.Select(r, k.Namespace, labels.SelectorFromSet(m.Labels)), nil
		})
		flat := derive.FlatMap(maps, "flat", func(r *derive.Reader, k nameOfThing, m *kates.ConfigMap, put func(string, int)) error {
			for name := range m.Labels {
				put(name, byApp.Members(r, m.Labels[name]).Len()+selecting.Matching(r, k.Namespace, m.Labels).Len())
			}
			return nil
		})
		derive.Compute(g, "sum", func(r *derive.Reader) (string, error) {
			n, err := number.Get(r)
			return fmt.Sprint(n, out.Len(r), flat.Len(r), keys.Len(r), secrets.Len(r)), err
		})
	})
	katestest.Derives(t, build, threeSnapshots()...)
	assert.Equal(t, 3+5, runs, "from scratch, and in five orders")
	katestest.Derives(t, build, threeSnapshots()[0])
}

// impure are functions that break the rules, each with what the error says.
var impure = map[string]struct {
	declare func(g *graphOfThings, maps mapsOfThings)
	says    string // a format of the error: * is anything
}{
	"a clock": {func(_ *graphOfThings, maps mapsOfThings) {
		derive.Map(maps, "out", func(*derive.Reader, nameOfThing, *kates.ConfigMap) (time.Time, error) { return time.Now(), nil })
	}, `snapshot 1 of 3, from scratch: derive: graph "things": out default/a: two runs differ*`},
	"a variable that counts": {func(g *graphOfThings, maps mapsOfThings) {
		calls := 0
		derive.Compute(g, "out", func(*derive.Reader) (int, error) { calls++; return calls, nil })
	}, `snapshot 1 of 3, from scratch: derive: graph "things": out: two runs differ: 2 and 3`},
	"a variable that remembers": {func(_ *graphOfThings, maps mapsOfThings) {
		seen := map[string]bool{}
		derive.Map(maps, "out", func(_ *derive.Reader, k nameOfThing, _ *kates.ConfigMap) (string, error) {
			defer func() { seen[k.Name] = true }()
			return map[bool]string{false: "first", true: "again"}[seen[k.Name]], nil
		})
	}, `snapshot 1 of 3, from scratch: derive: graph "things": out default/a: kept first, a run gives again: they differ, and nothing that it looked up has changed*`},
	"the order of a map": {func(_ *graphOfThings, maps mapsOfThings) {
		many := map[string]bool{}
		for i := range 5000 {
			many[fmt.Sprint(i)] = true
		}
		derive.Map(maps, "out", func(*derive.Reader, nameOfThing, *kates.ConfigMap) (all []string, _ error) {
			for range 20 { // so often they are not the same by chance
				for k := range many {
					all = append(all, k)
					break
				}
			}
			return all, nil
		})
	}, `snapshot 1 of 3, from scratch: derive: graph "things": out default/a: two runs differ at [*`},
	"a write to an object": {func(_ *graphOfThings, maps mapsOfThings) {
		derive.Map(maps, "out", func(_ *derive.Reader, _ nameOfThing, m *kates.ConfigMap) (string, error) {
			m.Data["x"] = "written"
			return m.Data["x"], nil
		})
	}, `snapshot 1 of 3, from scratch: a function of the graph writes to what it is given: ConfigMaps[0] (default/a): "*Data:(map[string]string)map[x:1] *" is "*Data:(map[string]string)map[x:written] *" now`},
	"a write to a slice of the snapshot": {func(g *graphOfThings, _ mapsOfThings) {
		derive.Input(g, "backwards", func(s *things) int {
			sort.Slice(s.ConfigMaps, func(i, j int) bool { return s.ConfigMaps[i].Name > s.ConfigMaps[j].Name })
			return 0
		})
	}, `snapshot 1 of 3, from scratch: a function of the graph writes to what it is given: ConfigMaps[0] (default/a): *`},
	"a write to a value": {func(_ *graphOfThings, maps mapsOfThings) {
		lists := derive.Map(maps, "lists", func(*derive.Reader, nameOfThing, *kates.ConfigMap) ([]string, error) { return []string{"b", "a"}, nil })
		derive.Map(maps, "out", func(r *derive.Reader, k nameOfThing, _ *kates.ConfigMap) (string, error) {
			list, err := lists.Get(r, k)
			sort.Strings(list)
			return strings.Join(list, ","), err
		})
	}, `snapshot 1 of 3, from scratch: derive: graph "things": lists default/a: the value was changed after it was returned: no value is written to*`},
	"an Equal that hides what a reader uses": {func(_ *graphOfThings, maps mapsOfThings) {
		type both struct{ Name, X string }
		mid := derive.Map(maps, "mid", func(_ *derive.Reader, k nameOfThing, m *kates.ConfigMap) (both, error) {
			return both{k.Name, m.Data["x"]}, nil
		}, derive.Equal(func(a, b both) bool { return a.Name == b.Name }))
		derive.Map(mid, "out", func(_ *derive.Reader, _ nameOfThing, b both) (string, error) { return b.X, nil })
	}, "snapshot 2 of 3, forwards, after snapshot 1:\nout default/b: the graph has 2, an evaluation from scratch gives 3: they differ\n" +
		"maybe because mid default/b counts as equal by the Equal of its node, and differs at .X"},
	"an index by a variable": {func(g *graphOfThings, maps mapsOfThings) {
		group := "first"
		derive.GroupBy(maps, "groups", func(nameOfThing, *kates.ConfigMap) []string { return []string{group} })
		derive.Compute(g, "out", func(*derive.Reader) (int, error) { group = "later"; return 0, nil })
	}, `snapshot 1 of 3, from scratch: derive: graph "things": groups default/a: kept [first], a run gives [later]: *`},
}

func TestDerivesNamesTheSnapshotTheNodeTheKeyAndWhatDiffers(t *testing.T) {
	for name, c := range impure {
		t.Run(name, func(t *testing.T) {
			failure := judged.Failure(t, func(tb testing.TB) { katestest.Derives(tb, graphOn(c.declare), threeSnapshots()...) })
			require.True(t, strings.HasPrefix(failure, "katestest.Derives: "), failure)
			assert.True(t, matches(c.says, strings.TrimPrefix(failure, "katestest.Derives: ")), failure)
		})
	}
}

// matches reports whether a text has a form, in which * is anything.
func matches(form, text string) bool {
	parts := strings.Split(form, "*")
	text, is := strings.CutPrefix(text, parts[0])
	for _, part := range parts[1:] {
		if !is {
			return false
		}
		if part == "" {
			continue
		}
		_, text, is = strings.Cut(text, part)
	}
	return is && (text == "" || parts[len(parts)-1] == "")
}

func TestDerivesFindsWhatShowsOnlyInAnotherOrder(t *testing.T) {
	type both struct{ X, Y string }
	of := func(x, y string) *things {
		m := thing("a", x)
		m.Data["y"] = y
		return &things{ConfigMaps: []*kates.ConfigMap{m}}
	}
	build := graphOn(func(_ *graphOfThings, maps mapsOfThings) {
		mid := derive.Map(maps, "mid", func(_ *derive.Reader, _ nameOfThing, m *kates.ConfigMap) (both, error) {
			return both{m.Data["x"], m.Data["y"]}, nil
		}, derive.Equal(func(a, b both) bool { return a.X == b.X }))
		derive.Map(mid, "out", func(_ *derive.Reader, _ nameOfThing, b both) (string, error) { return b.Y, nil })
	})
	failure := judged.Failure(t, func(tb testing.TB) { katestest.Derives(tb, build, of("1", "p"), of("2", "q"), of("1", "r")) })
	assert.Contains(t, failure, "snapshot 3 of 3, with skips, after snapshot 1:\nout default/a: the graph has p, an evaluation from scratch gives r")
}

func TestDerivesSaysWhatIsWrongWithItsArguments(t *testing.T) {
	pure := graphOn(func(*graphOfThings, mapsOfThings) {})
	first := true
	for says, of := range map[string]func(tb testing.TB){
		"there is no snapshot": func(tb testing.TB) { katestest.Derives(tb, pure) },
		"snapshot 2 is nil":    func(tb testing.TB) { katestest.Derives(tb, pure, &things{}, nil) },
		"returned no graph":    func(tb testing.TB) { katestest.Derives(tb, func() *graphOfThings { return nil }, &things{}) },
		`two nodes have the name "maps"`: func(tb testing.TB) {
			katestest.Derives(tb, graphOn(func(g *graphOfThings, _ mapsOfThings) { derive.Input(g, "maps", func(*things) int { return 0 }) }), &things{})
		},
		"declares other nodes each time": func(tb testing.TB) {
			katestest.Derives(tb, graphOn(func(g *graphOfThings, _ mapsOfThings) {
				if first {
					derive.Input(g, "number", func(*things) int { return 0 })
				}
				first = false
			}), &things{})
		},
	} {
		assert.Contains(t, judged.Failure(t, of), says)
	}
}

func TestTheSnapshotsOfASequenceAreForDerives(t *testing.T) {
	client := katestest.NewServer(t, katestest.WithObjects(thing("a", "1"))).Client(t)
	seq := katestest.NewSequence[things](t, client)
	seq.Step("b comes", func(ctx context.Context) error { return client.Create(ctx, thing("b", "2"), nil) })
	seq.Step("a goes", func(ctx context.Context) error { return client.Delete(ctx, thing("a", ""), nil) })
	shown := seq.Snapshots()
	require.Len(t, shown, 3)
	assert.Len(t, shown[1].ConfigMaps, 2)
	assert.Same(t, shown[0].ConfigMaps[0], shown[1].ConfigMaps[0], "what has not changed keeps its pointer")
	katestest.Derives(t, graphOn(func(g *graphOfThings, maps mapsOfThings) {
		derive.Compute(g, "number", func(r *derive.Reader) (int, error) { return maps.Len(r), nil })
	}), shown...)
}
