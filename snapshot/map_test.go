package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
)

type byUID struct{ Services map[types.UID]*corev1.Service }

func servicesByUID(table *tables.Table) map[types.UID]*corev1.Service {
	return table.Value().Interface().(map[types.UID]*corev1.Service)
}

func TestOfRowsWithOneKeyInAMapTheFirstIsShownWhateverCameBefore(t *testing.T) {
	b := compile[byUID](t, "Services")
	table := tableOf(b, 10)
	servicesByUID(table)
	of := func(name string) *corev1.Service {
		s := typed("ns", name, 80)
		s.UID = "uid-ns/" + types.UID(numbered(5))
		return s
	}
	first, last := of("a"), of("z")
	five, _ := table.Get(tables.Key{Namespace: "ns", Name: numbered(5)})
	for _, step := range []struct {
		change tables.Change
		want   any
	}{
		{changeOf(b, 0, last), five.Source},
		{changeOf(b, 0, first), first},
		{tables.Change{Key: object.KeyOf(first)}, five.Source},
		{tables.Change{Key: object.KeyOf(five.Source)}, last},
	} {
		table.Apply([]tables.Change{step.change})
		m := servicesByUID(table)
		require.Len(t, m, 10)
		require.Same(t, step.want, m[last.UID])
	}
}

func TestG10AMapThatWasDeliveredIsNotTheOneThatChanges(t *testing.T) {
	b := compile[byUID](t, "Services")
	table := tableOf(b, 1000)
	before := servicesByUID(table)
	changed, added, gone := typed("ns", numbered(7), 81), typed("ns", "a", 80), numbered(9)
	table.Apply([]tables.Change{
		changeOf(b, 0, changed), changeOf(b, 0, added), {Key: tables.Key{Namespace: "ns", Name: gone}},
	})
	after := servicesByUID(table)
	require.Len(t, before, 1000)
	require.EqualValues(t, 80, before[changed.UID].Spec.Ports[0].Port)
	require.NotContains(t, before, added.UID)
	require.Len(t, after, 1000)
	require.Same(t, changed, after[changed.UID])
	require.Same(t, added, after[added.UID])
	require.NotContains(t, after, types.UID("uid-ns/"+gone))
	for uid, s := range before {
		if uid != changed.UID && s.Name != gone {
			require.Same(t, s, after[uid])
		}
	}
}

func TestChangesBetweenTwoValuesOfAMapAreAllInTheSecond(t *testing.T) {
	b := compile[byUID](t, "Services")
	table := tableOf(b, 10)
	servicesByUID(table)
	table.Apply([]tables.Change{changeOf(b, 0, typed("ns", numbered(1), 81))})
	table.Apply([]tables.Change{changeOf(b, 0, typed("ns", numbered(2), 81))})
	m := servicesByUID(table)
	for i, port := range []int32{80, 81, 81, 80} {
		require.Equal(t, port, m[types.UID("uid-ns/"+numbered(i))].Spec.Ports[0].Port)
	}
}

func TestAValueOfAnotherTypeThanTheFieldsPanicsWithTheTableAsItWas(t *testing.T) {
	table := tableOf(compile[services](t, "Services"), 10)
	before := servicesOf(table)
	require.Panics(t, func() {
		s := typed("ns", "a", 80)
		table.Apply([]tables.Change{{Key: object.KeyOf(s), Row: &tables.Row{Source: s, Value: &corev1.Pod{}}}})
	})
	require.Equal(t, before, servicesOf(table))
	require.Equal(t, 10, table.Len())
}
