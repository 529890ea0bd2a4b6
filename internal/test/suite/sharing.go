package suite

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
)

var sharingScenarios = []scenario{
	{"G9SlicesAreOrderedByNamespaceThenName", ordered},
	{"WhatDidNotChangeIsTheSamePointerAndTheSameSlice", samePointers},
	{"UpdateIsFalseWhenNothingChanged", falseWhenUnchanged},
	{"AFreshStructGetsEverything", freshStruct},
	{"G10SlicesHaveNoRoomToAppendInPlace", noRoom},
	{"TwoAccumulatorsOfOneClientDoNotTakeFromEachOther", twoAccumulators},
	{"AQueryForAPartIsServedByAWiderWatch", partsOfAWatch},
	{"APredicateLeavesObjectsOut", predicate},
	{"APredicateSeesWhatItsQueryHolds", predicateSees},
}

func ordered(t *testing.T, e *env) {
	elsewhere := e.backend.Namespace(t)
	snapshots := watch[inputs](e, e.client)
	for _, name := range []string{"b", "a-b", "c", "a", "a0"} {
		there := e.configMap(name)
		there.Namespace = elsewhere
		e.foreignCreate(e.configMap(name), there)
	}
	var snap inputs
	var got []string
	await(t, snapshots, &snap, "all objects", func(s *inputs) bool {
		got = got[:0]
		for _, cm := range s.ConfigMaps {
			if cm.Namespace == e.ns || cm.Namespace == elsewhere {
				got = append(got, cm.Namespace+" "+cm.Name)
			}
		}
		return len(got) == 10
	})
	var want []string
	for _, ns := range []string{min(e.ns, elsewhere), max(e.ns, elsewhere)} {
		for _, name := range []string{"a", "a-b", "a0", "b", "c"} {
			want = append(want, ns+" "+name)
		}
	}
	assert.Equal(t, want, got)
}

func samePointers(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("a"), e.configMap("b"), e.service("web"))
	snapshots := e.watchInputs()
	var before, after inputs
	awaitFirst(t, snapshots, &before)
	held := before.ConfigMaps
	e.foreignUpdate(e.configMap("b", "new", "yes"))
	await(t, snapshots, &after, "the change", func(s *inputs) bool { return byName(s.ConfigMaps, "b").Data["new"] == "yes" })
	assert.Same(t, byName(before.ConfigMaps, "a"), byName(after.ConfigMaps, "a"))
	assert.NotSame(t, byName(before.ConfigMaps, "b"), byName(after.ConfigMaps, "b"))
	assert.Empty(t, held[1].Data, "what was delivered is never written to again")
	assert.True(t, sameSlice(before.Services, after.Services), "a kind without changes")
	assert.False(t, sameSlice(before.ConfigMaps, after.ConfigMaps))
}

func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func falseWhenUnchanged(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("a"))
	snapshots := e.watchInputs()
	var snap inputs
	awaitFirst(t, snapshots, &snap)
	for range 3 {
		before := snap
		unchanged(t, snapshots, &snap)
		assert.True(t, sameSlice(before.ConfigMaps, snap.ConfigMaps))
	}
}

func freshStruct(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("a"), e.service("web"))
	snapshots := e.watchInputs()
	var first inputs
	awaitFirst(t, snapshots, &first)
	var fresh inputs
	unchanged(t, snapshots, &fresh)
	assert.Equal(t, first, fresh)
	assert.True(t, sameSlice(first.ConfigMaps, fresh.ConfigMaps))

	e.foreignUpdate(e.configMap("a", "new", "yes"))
	fresh = inputs{}
	await(t, snapshots, &fresh, "the change", func(s *inputs) bool { return s.ConfigMaps[0].Data["new"] == "yes" })
	assert.Len(t, fresh.Services, 1, "every field is set, not only those that changed")
}

func noRoom(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("a"), e.configMap("b"))
	snapshots := e.watchInputs()
	var snap inputs
	awaitFirst(t, snapshots, &snap)
	e.foreignCreate(e.configMap("c"))
	await(t, snapshots, &snap, "the addition", func(s *inputs) bool { return len(s.ConfigMaps) == 3 })
	e.foreignDelete(e.configMap("b"))
	await(t, snapshots, &snap, "the deletion", func(s *inputs) bool { return len(s.ConfigMaps) == 2 })
	assert.Equal(t, 2, cap(snap.ConfigMaps))
	_ = append(snap.ConfigMaps, e.configMap("mine"))
	var again inputs
	unchanged(t, snapshots, &again)
	assert.Equal(t, []string{"a", "c"}, names(again.ConfigMaps))
}

func twoAccumulators(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("a"))
	query := kates.Query{Name: "ConfigMaps", Kind: "cm", Namespace: e.ns}
	one, two := accumulate[selected](e, e.client, query), accumulate[selected](e, e.client, query)
	var first, second selected
	awaitFirst(t, one, &first)
	awaitFirst(t, two, &second)
	require.NoError(t, e.client.Create(e.ctx, e.configMap("b"), nil))
	now(t, one, &first)
	assert.Equal(t, []string{"add b"}, deltaNames(one.deltas))
	unchanged(t, one, &first)
	now(t, two, &second)
	assert.Equal(t, []string{"add b"}, deltaNames(two.deltas))
	assert.Equal(t, names(first.ConfigMaps), names(second.ConfigMaps))

	one.Close()
	require.NoError(t, e.client.Delete(e.ctx, e.configMap("b"), nil))
	now(t, two, &second)
	assert.Equal(t, []string{"a"}, names(second.ConfigMaps), "the end of one is not the end of the other")
}

func predicate(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("keep", "keep", "yes"), e.configMap("drop"))
	accumulator := accumulate[struct{ ConfigMaps []*corev1.ConfigMap }](e, e.client, kates.Query{Name: "ConfigMaps", Kind: "cm", Namespace: e.ns})
	kept := func(u *kates.Unstructured) bool {
		data, _ := u.Object["data"].(map[string]any)
		return data["keep"] == "yes"
	}
	var snap struct{ ConfigMaps []*corev1.ConfigMap }
	var deltas []*kates.Delta
	filtered := &filteredSource[struct{ ConfigMaps []*corev1.ConfigMap }]{accumulator.Accumulator, kept, &deltas}
	awaitFirst(t, filtered, &snap)
	assert.Equal(t, []string{"keep"}, names(snap.ConfigMaps))
	assert.Equal(t, []string{"add keep"}, deltaNames(deltas))

	e.foreignUpdate(e.configMap("drop", "still", "dropped"))
	e.foreignUpdate(e.configMap("keep", "keep", "no"))
	awaitEach(t, filtered, &snap, "the object that no longer passes", func() bool { return len(snap.ConfigMaps) == 0 })
	assert.Equal(t, []string{"delete keep"}, deltaNames(deltas), "one that never passed gives no delta")
}

func predicateSees(t *testing.T, e *env) {
	cm := e.configMap("cm", "dropped", "1", "kept", "2")
	cm.Labels = map[string]string{"app": "a"}
	e.foreignCreate(cm)
	// Neither field type has labels: a predicate sees the object before it is converted.
	type view struct {
		Data map[string]string `json:"data"`
	}
	type views struct{ Whole, Transformed, Metadata []view }
	all := kates.Query{Kind: "configmaps", Namespace: e.ns, FieldSelector: "metadata.name=cm"}
	whole, transformed, metadata := all, all, all
	whole.Name, transformed.Name, metadata.Name = "Whole", "Transformed", "Metadata"
	transformed.Transform = kates.DropFields("data.dropped")
	metadata.MetadataOnly = true
	for name, c := range map[string]struct {
		query kates.Query
		data  any
	}{
		"as the server has it": {whole, map[string]any{"dropped": "1", "kept": "2"}},
		"after the transform":  {transformed, map[string]any{"kept": "2"}},
		"its metadata":         {metadata, nil},
	} {
		acc, err := e.client.Watch(e.ctx, c.query)
		require.NoError(t, err)
		var seen []*kates.Unstructured
		judge := func(u *kates.Unstructured) bool {
			seen = append(seen, u.DeepCopy())
			return true
		}
		from := &filteredSource[views]{acc, judge, nil}
		var snap views
		awaitFirst[views](t, from, &snap)
		require.Len(t, seen, 1, name)
		assert.Equal(t, "a", seen[0].GetLabels()["app"], name)
		assert.Equal(t, c.data, seen[0].Object["data"], name)
	}
}
