package snapshot_test

import (
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

func TestG9SlicesAreOrderedByNamespaceThenName(t *testing.T) {
	b := compile[services](t, "Services")
	table := b.NewTable(0)
	var changes []tables.Change
	for _, key := range [][2]string{{"b", "a"}, {"a-b", "a"}, {"a", "z"}, {"", "z"}, {"a", "aa"}, {"a", "a"}} {
		changes = append(changes, changeOf(b, 0, typed(key[0], key[1], 80)))
	}
	given := slices.Clone(changes)
	table.Apply(changes)
	require.Equal(t, []string{"/z", "a/a", "a/aa", "a/z", "a-b/a", "b/a"}, names(servicesOf(table)))
	require.Equal(t, given, changes, "Apply leaves its argument alone")
}

func TestWhatDidNotChangeIsTheSamePointer(t *testing.T) {
	b := compile[services](t, "Services")
	table := tableOf(b, 100)
	before := servicesOf(table)

	changed := typed("ns", numbered(50), 81)
	diffs, _ := table.Apply([]tables.Change{
		changeOf(b, 0, changed),
		{Key: object.KeyOf(before[10])},
		changeOf(b, 0, typed("ns", "a", 80)),
	})
	after := servicesOf(table)
	require.Equal(t, []tables.Diff{
		{Key: object.KeyOf(after[0]), New: after[0]},
		{Key: object.KeyOf(before[10]), Old: before[10]},
		{Key: object.KeyOf(changed), Old: before[50], New: changed},
	}, diffs)
	require.Len(t, after, 100)
	for i, s := range before {
		switch {
		case i < 10:
			require.Same(t, s, after[i+1])
		case i == 50:
			require.Same(t, changed, after[i])
		case i > 10:
			require.Same(t, s, after[i])
		}
	}
}

func TestWithoutADiffTheSliceStaysTheVerySame(t *testing.T) {
	b := compile[services](t, "Services")
	table := tableOf(b, 10)
	before := servicesOf(table)
	same, ok := table.Get(object.KeyOf(before[3]))
	require.True(t, ok)

	invisible := []tables.Change{
		{Key: tables.Key{Name: "never was"}},
		{Key: object.KeyOf(before[3]), Row: &same},
		{Key: tables.Key{Name: "excluded"}, Row: &tables.Row{Source: typed("", "excluded", 1), Excluded: true}},
		{Key: tables.Key{Name: "bad"}, Row: &tables.Row{Source: typed("", "bad", 1), Err: errors.New("bad")}},
	}
	for _, changes := range [][]tables.Change{nil, invisible} {
		diffs, _ := table.Apply(changes)
		require.Empty(t, diffs)
		require.Same(t, unsafe.SliceData(before), unsafe.SliceData(servicesOf(table)))
	}
	require.Equal(t, 10, table.Len())
	require.Equal(t, 12, table.Held())

	table.Apply([]tables.Change{changeOf(b, 0, typed("ns", numbered(3), 81))})
	require.NotSame(t, unsafe.SliceData(before), unsafe.SliceData(servicesOf(table)))
}

func TestWithoutADiffTheMapStaysTheVerySame(t *testing.T) {
	type byString struct{ Services map[string]*corev1.Service }
	b := compile[byString](t, "Services")
	table := tableOf(b, 3)
	before := table.Value().UnsafePointer()
	table.Apply([]tables.Change{{Key: tables.Key{Name: "never was"}}})
	require.Equal(t, before, table.Value().UnsafePointer())
	table.Apply([]tables.Change{{Key: tables.Key{Namespace: "ns", Name: numbered(0)}}})
	require.NotEqual(t, before, table.Value().UnsafePointer())
}

func TestAnEqualStructOfTheSameSourceIsNoDiff(t *testing.T) {
	type values struct{ Plain []plain }
	b := compile[values](t, "Plain")
	table := b.NewTable(0)
	u := untyped("prod", "web", 80)
	for i, want := range []int{1, 0} {
		diffs, _ := table.Apply([]tables.Change{changeOf(b, 0, u)})
		require.Len(t, diffs, want, "pass %d", i)
	}
}

func TestANewValueOfTheSameSourceIsADiff(t *testing.T) {
	b := compile[services](t, "Services")
	table := b.NewTable(0)
	u := untyped("prod", "web", 80)
	table.Apply([]tables.Change{changeOf(b, 0, u)})
	diffs, _ := table.Apply([]tables.Change{changeOf(b, 0, u)})
	require.Equal(t, []tables.Diff{{Key: object.KeyOf(u), Old: u, New: u}}, diffs)
}

func TestG10DeliveredSlicesHaveNoSpareCapacity(t *testing.T) {
	b := compile[services](t, "Services")
	table := b.NewTable(0)
	for i := range 100 {
		table.Apply([]tables.Change{changeOf(b, 0, typed("ns", numbered(i*7%100), 80))})
		require.Equal(t, i+1, len(servicesOf(table)))
		require.Equal(t, i+1, cap(servicesOf(table)))
	}
}

func TestG8AnObjectThatDoesNotDecodeIsLeftOutAndJoinsWhenHealed(t *testing.T) {
	b := compile[services](t, "Services")
	table := b.NewTable(0)
	good, bad := untyped("prod", "good", 80), untyped("prod", "bad", 80)
	table.Apply([]tables.Change{changeOf(b, 0, good), changeOf(b, 0, bad)})

	broken := untyped("prod", "bad", 80)
	broken.Object["spec"] = "none"
	diffs, invalidChanged := table.Apply([]tables.Change{changeOf(b, 0, broken)})
	require.Equal(t, []tables.Diff{{Key: object.KeyOf(bad), Old: bad}}, diffs)
	require.True(t, invalidChanged)
	require.Equal(t, []string{"prod/good"}, names(servicesOf(table)))
	invalid := table.Invalid()
	require.Len(t, invalid, 1)
	require.Same(t, broken, invalid[0].Source)
	require.ErrorContains(t, invalid[0].Err, `convert Service "prod/bad" to *v1.Service`)

	_, invalidChanged = table.Apply([]tables.Change{changeOf(b, 0, broken)})
	require.False(t, invalidChanged, "the same object is in the same error")

	diffs, invalidChanged = table.Apply([]tables.Change{changeOf(b, 0, bad)})
	require.Equal(t, []tables.Diff{{Key: object.KeyOf(bad), New: bad}}, diffs)
	require.True(t, invalidChanged)
	require.Equal(t, []string{"prod/bad", "prod/good"}, names(servicesOf(table)))
	require.Empty(t, table.Invalid())
}

// uncomparable is an error that panics when compared with ==, as aggregates of field errors do.
type uncomparable []string

func (u uncomparable) Error() string { return u[0] }

func TestErrorsOfAnyTypeAreComparedByText(t *testing.T) {
	b := compile[services](t, "Services")
	table := b.NewTable(0)
	s := typed("prod", "web", 80)
	for _, step := range []struct {
		text    string
		changed bool
	}{{"a", true}, {"a", false}, {"b", true}} {
		_, changed := table.Apply([]tables.Change{
			{Key: object.KeyOf(s), Row: &tables.Row{Source: s, Err: uncomparable{step.text}}},
		})
		require.Equal(t, step.changed, changed)
	}
	require.EqualError(t, table.Invalid()[0].Err, "b")
}

func TestAllStopsWhenItsReaderDoes(t *testing.T) {
	b := compile[services](t, "Services")
	table := tableOf(b, 2)
	for _, name := range []string{"a", "z"} { // one before the shown rows, one after them
		table.Apply([]tables.Change{
			{Key: tables.Key{Namespace: "ns", Name: name}, Row: &tables.Row{Source: typed("ns", name, 1), Excluded: true}},
		})
	}
	for limit := 1; limit <= 4; limit++ {
		n := 0
		for range table.All() {
			if n++; n == limit {
				break
			}
		}
		require.Equal(t, limit, n)
	}
}
