package suite

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/kates"
)

var runtimeScenarios = []scenario{
	{"G1AQueryThatIsAddedAppearsWhole", addedQuery},
	{"G7AQueryThatIsRemovedLeavesWithItsDeltas", removedQuery},
	{"AQueryOverASetOfNamespacesFollowsTheSet", namespaceSet},
	{"G4AQueryOverSelectedNamespacesFollowsTheirLabels", selectedNamespaces},
	{"G4AUnionOfSelectorsIsOneQuery", union},
	{"QueriesThatCannotBeMeantAreErrors", impossibleQueries},
	{"NamespacesOfAKindThatIsInNoneAreAnErrorAtOnce", namespacesOfNone},
	{"G4AReaderShowsOwnWritesWithoutARequest", reader},
}

type mixed struct {
	ConfigMaps []*corev1.ConfigMap
	Secrets    []*corev1.Secret `kates:",later"`
	Deltas     []*kates.Delta
}

func (e *env) secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: e.meta(name)}
}

func addedQuery(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("c"), e.secret("s"))
	snapshots := watch[mixed](e, e.client, kates.Query{Name: "ConfigMaps", Namespace: e.ns})
	var snap mixed
	awaitFirst(t, snapshots, &snap)
	require.NoError(t, snapshots.Add(e.ctx, kates.Query{Name: "Secrets", Namespace: e.ns}))
	await(t, snapshots, &snap, "the secrets", func(s *mixed) bool { return s.Secrets != nil })
	assert.Equal(t, []string{"s"}, names(snap.Secrets))
	assert.Equal(t, []string{"add s"}, deltaNames(snap.Deltas))
	assert.Equal(t, []string{"c"}, names(snap.ConfigMaps))
	require.NoError(t, e.client.Create(e.ctx, e.secret("own"), nil))
	now(t, snapshots, &snap)
	assert.Equal(t, []string{"own", "s"}, names(snap.Secrets))
	assert.ErrorContains(t, snapshots.Add(e.ctx, kates.Query{Name: "Secrets"}), "already")
	assert.ErrorContains(t, snapshots.Add(e.ctx, kates.Query{Name: "Deltas", Kind: "svc"}), `query "Deltas"`)
	assert.ErrorContains(t, snapshots.Add(e.ctx, kates.Query{Name: "Pods", Kind: "pods"}), `query "Pods"`)
}

func removedQuery(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("c"), e.secret("s"))
	snapshots := watch[mixed](e, e.client, kates.Query{Name: "ConfigMaps", Namespace: e.ns})
	var snap mixed
	awaitFirst(t, snapshots, &snap)
	require.NoError(t, snapshots.Remove(e.ctx, "ConfigMaps"))
	require.NoError(t, snapshots.Add(e.ctx, kates.Query{Name: "Secrets", Namespace: e.ns}))
	now(t, snapshots, &snap)
	assert.Nil(t, snap.ConfigMaps)
	assert.Contains(t, deltaNames(snap.Deltas), "delete c")
	if len(snap.Secrets) == 0 {
		await(t, snapshots, &snap, "the secrets", func(s *mixed) bool { return len(s.Secrets) == 1 })
	}
	assert.ErrorContains(t, snapshots.Remove(e.ctx, "ConfigMaps"), `query "ConfigMaps"`)
	assert.Len(t, snapshots.Status().Queries, 1)
}

// in returns a config map in another namespace.
func (e *env) in(namespace, name string, labels ...string) *corev1.ConfigMap {
	c := e.labelled(name, labels...)
	c.Namespace = namespace
	return c
}

// makeNamespaces makes namespaces whose names begin with the scenario's.
func (e *env) makeNamespaces(names ...string) {
	for _, name := range names {
		ns := &corev1.Namespace{}
		ns.Name = e.ns + name
		_, err := e.foreign.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).
			Create(e.ctx, asUnstructured(e.t, ns), metav1.CreateOptions{})
		require.NoError(e.t, err)
	}
}

func namespaceSet(t *testing.T, e *env) {
	e.makeNamespaces("-1", "-2", "-3")
	for _, n := range []string{"-1", "-2", "-3"} {
		e.foreignCreate(e.in(e.ns+n, "in"+n))
	}
	q := kates.Query{Name: "ConfigMaps", Namespaces: []string{e.ns + "-1", e.ns + "-2"}}
	snapshots := watch[selected](e, e.client, q)
	var snap selected
	awaitFirst(t, snapshots, &snap)
	assert.Equal(t, []string{"in-1", "in-2"}, names(snap.ConfigMaps))
	var listed []*corev1.ConfigMap
	list := q
	list.Kind = "configmaps"
	require.NoError(t, e.client.List(e.ctx, list, &listed))
	assert.Equal(t, []string{"in-1", "in-2"}, names(listed))

	require.NoError(t, e.client.Create(e.ctx, e.in(e.ns+"-2", "own"), nil))
	require.NoError(t, e.client.Create(e.ctx, e.in(e.ns+"-3", "elsewhere"), nil))
	now(t, snapshots, &snap)
	assert.Equal(t, []string{"add own"}, deltaNames(snap.Deltas))

	q.Namespaces = []string{e.ns + "-3", e.ns + "-2"}
	require.NoError(t, snapshots.Replace(e.ctx, q))
	await(t, snapshots, &snap, "the third namespace", func(s *selected) bool {
		assert.Equal(t, slices.Contains(names(s.ConfigMaps), "in-1"), !slices.Contains(names(s.ConfigMaps), "in-3"))
		return slices.Contains(names(s.ConfigMaps), "in-3")
	})
	assert.Equal(t, []string{"in-2", "own", "elsewhere", "in-3"}, names(snap.ConfigMaps))
}

func selectedNamespaces(t *testing.T, e *env) {
	e.makeNamespaces("-1", "-2")
	e.foreignCreate(e.in(e.ns+"-1", "one"), e.in(e.ns+"-2", "two"))
	label := func(name, team string) {
		t.Helper()
		ns := &corev1.Namespace{}
		ns.Name = e.ns + name
		patch := []byte(`{"metadata":{"labels":{"team":"` + team + `"}}}`)
		require.NoError(t, e.client.Patch(e.ctx, ns, kates.MergePatchType, patch, nil))
	}
	label("-1", e.ns)
	q := kates.Query{Name: "ConfigMaps", NamespaceSelector: "team=" + e.ns, FieldSelector: "metadata.name!=kube-root-ca.crt"}
	snapshots := watch[selected](e, e.client, q)
	var snap selected
	awaitFirst(t, snapshots, &snap)
	assert.Equal(t, []string{"one"}, names(snap.ConfigMaps))
	label("-2", e.ns)
	now(t, snapshots, &snap)
	assert.Equal(t, []string{"add two"}, deltaNames(snap.Deltas))
	label("-1", "another")
	now(t, snapshots, &snap)
	assert.Equal(t, []string{"delete one"}, deltaNames(snap.Deltas))
	var listed []*corev1.ConfigMap
	q.Kind = "configmaps"
	require.NoError(t, e.client.List(e.ctx, q, &listed))
	assert.Equal(t, []string{"two"}, names(listed))
}

func union(t *testing.T, e *env) {
	e.foreignCreate(e.labelled("a", "app", "a"), e.labelled("b", "app", "b"), e.labelled("c", "app", "c"))
	q := kates.Query{Name: "ConfigMaps", Namespace: e.ns, AnyOf: []kates.Selection{{LabelSelector: "app=a"}, {LabelSelector: "app in (a,b)"}}}
	snapshots := watch[selected](e, e.client, q)
	var snap selected
	awaitFirst(t, snapshots, &snap)
	assert.Equal(t, []string{"a", "b"}, names(snap.ConfigMaps))
	var listed []*corev1.ConfigMap
	list := q
	list.Kind = "configmaps"
	require.NoError(t, e.client.List(e.ctx, list, &listed))
	assert.Equal(t, []string{"a", "b"}, names(listed))
	label := func(name, app string) {
		t.Helper()
		patch := []byte(`{"metadata":{"labels":{"app":"` + app + `"}}}`)
		require.NoError(t, e.client.Patch(e.ctx, e.configMap(name), kates.MergePatchType, patch, nil))
		now(t, snapshots, &snap)
	}
	label("a", "b")
	assert.Equal(t, []string{"update a"}, deltaNames(snap.Deltas))
	label("a", "z")
	assert.Equal(t, []string{"delete a"}, deltaNames(snap.Deltas))
	label("c", "a")
	assert.Equal(t, []string{"add c"}, deltaNames(snap.Deltas))
	require.NoError(t, e.client.Delete(e.ctx, e.configMap("c"), nil))
	now(t, snapshots, &snap)
	assert.Equal(t, []string{"delete c"}, deltaNames(snap.Deltas))
	e.foreignDelete(e.configMap("b"))
	await(t, snapshots, &snap, "the deletion", func(s *selected) bool { return len(s.ConfigMaps) == 0 })
}

func impossibleQueries(t *testing.T, e *env) {
	for text, q := range map[string]kates.Query{
		"both a Namespace and Namespaces": {Namespace: "a", Namespaces: []string{"b"}},
		"goes with neither":               {Namespace: "a", NamespaceSelector: "a=b"},
		"is empty":                        {Namespaces: []string{""}},
		"AnyOf is empty":                  {AnyOf: []kates.Selection{}},
		"namespace selector":              {NamespaceSelector: "a in"},
		"label selector":                  {AnyOf: []kates.Selection{{LabelSelector: "a in"}}},
	} {
		q.Name, q.Kind = "ConfigMaps", "configmaps"
		_, err := e.client.Watch(e.ctx, q)
		assert.ErrorContains(t, err, text)
		assert.ErrorContains(t, e.client.List(e.ctx, q, &[]*corev1.ConfigMap{}), text)
	}
}

// namespacesOfNone names namespaces of a kind whose objects are in none.
func namespacesOfNone(t *testing.T, e *env) {
	type tenants struct{ Tenants []*kates.Unstructured }
	acc := accumulate[tenants](e, e.client, kates.Query{Name: "Tenants", Kind: "tenants"})
	for what, q := range map[string]kates.Query{
		"a namespace": {Namespace: e.ns}, "namespaces": {Namespaces: []string{e.ns}},
		"no namespaces": {Namespaces: []string{}}, "a selector": {NamespaceSelector: "a=b"},
	} {
		for _, q.Optional = range []bool{false, true} {
			q.Name, q.Kind = "Tenants", "tenants.example.kates.io"
			replaced := acc.Replace(e.ctx, q)
			q.Name = "More"
			_, watched := e.client.Watch(e.ctx, q)
			_, opened := kates.NewLister[*kates.Unstructured](e.ctx, e.client, q)
			for call, err := range map[string]error{
				"Watch": watched, "NewLister": opened, "Replace": replaced, "Add": acc.Add(e.ctx, q),
				"List": e.client.List(e.ctx, q, &[]*kates.Unstructured{}), "DeleteAll": e.client.DeleteAll(e.ctx, q),
			} {
				assert.ErrorContains(t, err, "tenants are in no namespace", "%s with %s", call, what)
			}
		}
	}
	require.Len(t, acc.Status().Queries, 1)
	var snap tenants
	awaitFirst(t, acc, &snap)
	require.NoError(t, acc.Status().Err(), "the query that was to be replaced goes on")
}

func reader(t *testing.T, e *env) {
	e.foreignCreate(e.labelled("a", "app", "a"), e.labelled("b", "app", "b"))
	r, err := kates.NewLister[*corev1.ConfigMap](e.ctx, e.client, kates.Query{Namespace: e.ns})
	require.NoError(t, err)
	defer r.Close()
	a, err := r.Get(e.ns, "a")
	require.NoError(t, err)
	again, err := r.Get(e.ns, "a")
	require.NoError(t, err)
	assert.Same(t, a, again)
	_, err = r.Get(e.ns, "own")
	assert.True(t, kates.IsNotFound(err))
	assert.ErrorContains(t, err, "own")
	require.NoError(t, e.client.Create(e.ctx, e.labelled("own", "app", "a"), nil))
	own, err := r.Get(e.ns, "own")
	require.NoError(t, err)
	assert.Equal(t, "own", own.Name)
	listed, err := r.List("", labels.SelectorFromSet(labels.Set{"app": "a"}))
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "own"}, names(listed))
	require.NoError(t, e.client.Delete(e.ctx, e.configMap("a"), nil))
	_, err = r.Get(e.ns, "a")
	assert.True(t, kates.IsNotFound(err))
	assert.NoError(t, r.Status().Err())

	_, err = kates.NewLister[*kates.Unstructured](e.ctx, e.client, kates.Query{})
	assert.ErrorContains(t, err, "kind")
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	_, err = kates.NewLister[*corev1.ConfigMap](ctx, e.client, kates.Query{})
	assert.ErrorIs(t, err, context.Canceled)
}
