package suite

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
)

var selectorScenarios = []scenario{
	{"ObjectsMoveIntoAndOutOfALabelSelector", labelMoves},
	{"G4OwnWritesMoveObjectsIntoAndOutOfALabelSelector", ownLabelMoves},
	{"AFieldSelectorOnTheNameShowsOneObject", nameSelector},
	{"ObjectsMoveIntoAndOutOfAFieldSelector", foreignFieldMoves},
	{"G4OwnWritesMoveObjectsIntoAndOutOfAFieldSelector", ownFieldMoves},
	{"G4OwnWritesMoveObjectsIntoAndOutOfAlternatives", ownAlternativeMoves},
	{"AFieldThatIsNotSelectableIsRefusedInTheServersWords", unselectable},
	{"ANamespaceShowsItsObjectsOnly", namespaces},
	{"OneKindMayBeQueriedTwiceInOneSnapshot", twoQueriesOfOneKind},
}

// selected is a snapshot, with deltas, of the ConfigMaps that a query selects.
type selected struct {
	ConfigMaps []*corev1.ConfigMap
	Deltas     []*kates.Delta
}

func (e *env) watchSelected(query kates.Query) (*kates.Snapshots[selected], *selected) {
	e.t.Helper()
	query.Name, query.Namespace = "ConfigMaps", e.ns
	snapshots := watch[selected](e, e.client, query)
	var snap selected
	awaitFirst(e.t, snapshots, &snap)
	return snapshots, &snap
}

func labelMoves(t *testing.T, e *env) {
	e.foreignCreate(e.labelled("in", "app", "web"), e.labelled("out", "app", "db"))
	snapshots, snap := e.watchSelected(kates.Query{LabelSelector: "app=web"})
	assert.Equal(t, []string{"in"}, names(snap.ConfigMaps))
	assert.Equal(t, []string{"add in"}, deltaNames(snap.Deltas))

	e.foreignUpdate(e.labelled("out", "app", "web"))
	awaitEach(t, snapshots, snap, "the object that moves in", func() bool { return true })
	assert.Equal(t, []string{"in", "out"}, names(snap.ConfigMaps))
	assert.Equal(t, []string{"add out"}, deltaNames(snap.Deltas))

	e.foreignUpdate(e.labelled("in", "app", "db"))
	awaitEach(t, snapshots, snap, "the object that moves out", func() bool { return true })
	assert.Equal(t, []string{"out"}, names(snap.ConfigMaps))
	assert.Equal(t, []string{"delete in"}, deltaNames(snap.Deltas))

	e.foreignUpdate(e.labelled("in", "app", "web", "again", "yes"))
	awaitEach(t, snapshots, snap, "the object that comes back", func() bool { return true })
	assert.Equal(t, []string{"in", "out"}, names(snap.ConfigMaps))
	assert.Equal(t, []string{"add in"}, deltaNames(snap.Deltas))

	e.foreignDelete(e.configMap("in"))
	awaitEach(t, snapshots, snap, "the deletion", func() bool { return true })
	assert.Equal(t, []string{"delete in"}, deltaNames(snap.Deltas))
}

func ownLabelMoves(t *testing.T, e *env) {
	snapshots, snap := e.watchSelected(kates.Query{LabelSelector: "app=web"})
	label := func(name, app string) {
		t.Helper()
		patch := []byte(`{"metadata":{"labels":{"app":"` + app + `"}}}`)
		if err := e.client.Patch(e.ctx, e.configMap(name), kates.MergePatchType, patch, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.client.Create(e.ctx, e.labelled("cm", "app", "db"), nil); err != nil {
		t.Fatal(err)
	}
	unchanged(t, snapshots, snap)
	for range 3 {
		label("cm", "web")
		now(t, snapshots, snap)
		assert.Equal(t, []string{"cm"}, names(snap.ConfigMaps))
		assert.Equal(t, []string{"add cm"}, deltaNames(snap.Deltas))
		label("cm", "db")
		now(t, snapshots, snap)
		assert.Empty(t, snap.ConfigMaps)
		assert.Equal(t, []string{"delete cm"}, deltaNames(snap.Deltas))
	}
}

func nameSelector(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("one"), e.configMap("two"))
	snapshots, snap := e.watchSelected(kates.Query{FieldSelector: "metadata.name=two"})
	assert.Equal(t, []string{"two"}, names(snap.ConfigMaps))
	e.foreignCreate(e.configMap("three"))
	e.foreignUpdate(e.configMap("two", "seen", "yes"))
	await(t, snapshots, snap, "the object selected", func(s *selected) bool { return s.ConfigMaps[0].Data["seen"] == "yes" })
	assert.Equal(t, []string{"two"}, names(snap.ConfigMaps))
}

// byHostname watches the Hosts of one hostname.
type byHostname struct {
	Hosts  []*hostType `kates:"hosts.getambassador.io"`
	Deltas []*kates.Delta
}

func (e *env) watchHostname(hostname string) (*kates.Snapshots[byHostname], *byHostname) {
	e.t.Helper()
	snapshots := watch[byHostname](e, e.client, kates.Query{Name: "Hosts", Namespace: e.ns, FieldSelector: "spec.hostname=" + hostname})
	var snap byHostname
	awaitFirst(e.t, snapshots, &snap)
	return snapshots, &snap
}

func ownFieldMoves(t *testing.T, e *env) {
	snapshots, snap := e.watchHostname("in.example")
	require.NoError(t, e.client.Create(e.ctx, e.host("h", "out.example"), nil))
	unchanged(t, snapshots, snap)
	for range 3 {
		require.NoError(t, e.client.Patch(e.ctx, e.host("h", ""), kates.MergePatchType, []byte(`{"spec":{"hostname":"in.example"}}`), nil))
		now(t, snapshots, snap)
		assert.Equal(t, []string{"add h"}, deltaNames(snap.Deltas))
		require.NoError(t, e.client.Patch(e.ctx, e.host("h", ""), kates.MergePatchType, []byte(`{"spec":{"hostname":"out.example"}}`), nil))
		now(t, snapshots, snap)
		assert.Equal(t, []string{"delete h"}, deltaNames(snap.Deltas))
		assert.Empty(t, snap.Hosts)
	}
}

// ownAlternativeMoves: the client judges alternatives itself, so it reads which fields of a custom
// kind the server declares.
func ownAlternativeMoves(t *testing.T, e *env) {
	type either struct {
		Hosts  []*kates.Unstructured `kates:"hosts.getambassador.io"`
		Deltas []*kates.Delta
	}
	snapshots := watch[either](e, e.client, kates.Query{Name: "Hosts", Namespace: e.ns, AnyOf: []kates.Selection{
		{FieldSelector: "spec.hostname=in.example"}, {LabelSelector: "in"},
	}})
	var snap either
	awaitFirst(t, snapshots, &snap)
	require.NoError(t, e.client.Create(e.ctx, e.host("h", "out.example"), nil))
	unchanged(t, snapshots, &snap)
	for range 2 {
		for _, step := range []struct{ patch, delta string }{
			{`{"spec":{"hostname":"in.example"}}`, "add h"},
			{`{"metadata":{"labels":{"in":"yes"}}}`, "update h"}, // both select it
			{`{"spec":{"hostname":"out.example"}}`, "update h"},
			{`{"metadata":{"labels":{"in":null}}}`, "delete h"},
		} {
			require.NoError(t, e.client.Patch(e.ctx, e.host("h", ""), kates.MergePatchType, []byte(step.patch), nil))
			now(t, snapshots, &snap)
			assert.Equal(t, []string{step.delta}, deltaNames(snap.Deltas), step.patch)
		}
		assert.Empty(t, snap.Hosts)
	}
}

func foreignFieldMoves(t *testing.T, e *env) {
	e.foreignCreate(e.host("a", "in.example"), e.host("b", "out.example"))
	snapshots, snap := e.watchHostname("in.example")
	assert.Equal(t, []string{"a"}, names(snap.Hosts))
	e.foreignUpdate(e.host("b", "in.example"))
	awaitEach(t, snapshots, snap, "the object that moves in", func() bool { return true })
	assert.Equal(t, []string{"add b"}, deltaNames(snap.Deltas))
	e.foreignUpdate(e.host("a", "out.example"))
	awaitEach(t, snapshots, snap, "the object that moves out", func() bool { return true })
	assert.Equal(t, []string{"delete a"}, deltaNames(snap.Deltas))
	assert.Equal(t, []string{"b"}, names(snap.Hosts))
}

func namespaces(t *testing.T, e *env) {
	elsewhere := e.backend.Namespace(t)
	there := e.configMap("cm")
	there.Namespace = elsewhere
	snapshots, snap := e.watchSelected(kates.Query{})
	e.foreignCreate(there, e.configMap("cm"))
	await(t, snapshots, snap, "the object of the namespace", func(s *selected) bool { return len(s.ConfigMaps) > 0 })
	assert.Equal(t, []string{"cm"}, names(snap.ConfigMaps))
	assert.Equal(t, e.ns, snap.ConfigMaps[0].Namespace)

	// An empty namespace means all namespaces, whatever the client's default is.
	everywhere := watch[inputs](e, e.client)
	var all inputs
	await(t, everywhere, &all, "both namespaces", func(s *inputs) bool {
		seen := map[string]bool{}
		for _, cm := range s.ConfigMaps {
			seen[cm.Namespace] = true
		}
		return seen[e.ns] && seen[elsewhere]
	})
}

func twoQueriesOfOneKind(t *testing.T, e *env) {
	type both struct {
		Web []*corev1.ConfigMap
		All map[string]*corev1.ConfigMap
	}
	e.foreignCreate(e.labelled("a", "app", "web"), e.labelled("b", "app", "db"))
	snapshots := watch[both](e, e.client, kates.Query{Name: "Web", Namespace: e.ns, LabelSelector: "app=web"}, kates.Query{Name: "All", Namespace: e.ns})
	var snap both
	awaitFirst(t, snapshots, &snap)
	assert.Equal(t, []string{"a"}, names(snap.Web))
	assert.Len(t, snap.All, 2)
	assert.Contains(t, snap.All, "b", "the key is the name where the query is of one namespace")
}

func unselectable(t *testing.T, e *env) {
	for selector, kinds := range map[string]map[string]string{
		"spec.nosuch=x": {
			"pods": "field label not supported: spec.nosuch", "secrets": "field label not supported: spec.nosuch",
			"jobs":       `field label "spec.nosuch" not supported for Job`,
			"configmaps": `"spec.nosuch" is not a known field selector: only "metadata.name", "metadata.namespace"`,
			"ingresses":  `"spec.nosuch" is not a known field selector: only "metadata.name", "metadata.namespace"`,
		},
		"metadata.namespace!=x": {"nodes": "field label not supported: metadata.namespace"},
	} {
		for kind, says := range kinds {
			for _, q := range []kates.Query{{FieldSelector: selector}, {AnyOf: []kates.Selection{{FieldSelector: selector}}}} {
				q.Name, q.Kind = "Q", kind
				_, err := e.client.Watch(e.ctx, q)
				require.ErrorContains(t, err, says, kind)
				assert.ErrorContains(t, err, `query "Q": field selector "`+selector+`"`)
				_, err = kates.NewLister[*kates.Unstructured](e.ctx, e.client, q)
				assert.ErrorContains(t, err, says, kind)
				assert.ErrorContains(t, e.client.List(e.ctx, q, &[]*kates.Unstructured{}), says, kind)
				assert.ErrorContains(t, e.client.DeleteAll(e.ctx, q), says, kind)
			}
		}
	}
	for kind, selector := range map[string]string{
		"pods": "status.phase=Running,metadata.namespace=" + e.ns, "jobs": "status.successful=1", "nodes": "spec.unschedulable=true",
		"namespaces": "metadata.name=none", "clusterroles": "metadata.namespace=" + e.ns, "configmaps": "metadata.namespace=" + e.ns,
	} {
		assert.NoError(t, e.client.List(e.ctx, kates.Query{Kind: kind, FieldSelector: selector}, &[]*kates.Unstructured{}), kind)
	}
}
