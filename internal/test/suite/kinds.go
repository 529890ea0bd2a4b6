package suite

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
)

var kindScenarios = []scenario{
	{"CustomKindsComeAsMapsAndAsStructs", customKinds},
	{"EveryFieldFormHoldsTheSameObjects", fieldForms},
	{"StringKeysHaveTheNamespaceUnlessTheQueryNamesOne", stringKeys},
	{"AnOptionalKindThatIsNotServedIsNil", optionalKinds},
	{"QueriesThatCannotWorkAreErrorsAtWatch", badQueries},
	{"FieldsThatCannotWorkAreErrorsThatNameThem", badFields},
	{"WaitForReturnsOnceAKindIsServedOrTimeIsUp", waitFor},
}

func customKinds(t *testing.T, e *env) {
	type snapshot struct {
		Maps    []map[string]any      `kates:"hosts.getambassador.io"`
		Structs []*hostType           `kates:"Host"`
		Raw     []*kates.Unstructured `kates:"host.v3alpha1.getambassador.io"`
	}
	e.foreignCreate(e.host("a", "a.example"))
	snapshots := watch[snapshot](e, e.client, e.inNamespace("Maps", "Structs", "Raw")...)
	var snap snapshot
	awaitFirst(t, snapshots, &snap)
	require.Len(t, snap.Maps, 1)
	assert.Equal(t, map[string]any{"hostname": "a.example"}, snap.Maps[0]["spec"])
	require.Len(t, snap.Structs, 1)
	assert.Equal(t, "a.example", snap.Structs[0].Spec.Hostname)
	assert.Equal(t, []string{"a"}, names(snap.Raw))

	require.NoError(t, e.client.Create(e.ctx, e.host("b", "b.example"), nil))
	now(t, snapshots, &snap)
	assert.Equal(t, []string{"a", "b"}, names(snap.Structs))
	assert.Equal(t, "b.example", snap.Structs[1].Spec.Hostname)
	assert.Len(t, snap.Maps, 2)
	assert.Len(t, snap.Raw, 2)
}

func fieldForms(t *testing.T, e *env) {
	type snapshot struct {
		Pointers []*corev1.ConfigMap
		Values   []corev1.ConfigMap
		ByKey    map[types.NamespacedName]*corev1.ConfigMap
		ByName   map[string]*corev1.ConfigMap
	}
	e.foreignCreate(e.configMap("a"), e.configMap("b"))
	snapshots := watch[snapshot](e, e.client, e.inNamespace("Pointers", "Values", "ByKey", "ByName")...)
	var snap snapshot
	awaitFirst(t, snapshots, &snap)
	assert.Equal(t, []string{"a", "b"}, names(snap.Pointers))
	require.Len(t, snap.Values, 2)
	assert.Equal(t, "b", snap.Values[1].Name)
	assert.Len(t, snap.ByName, 2)
	require.Contains(t, snap.ByKey, types.NamespacedName{Namespace: e.ns, Name: "a"})
	assert.Equal(t, "a", snap.ByKey[types.NamespacedName{Namespace: e.ns, Name: "a"}].Name)
}

// stringKeys: whether the keys have the namespace depends on the query as it is written, and not
// on the objects that it has.
func stringKeys(t *testing.T, e *env) {
	type snapshot struct {
		One, Several, Alone, Selected, All map[string]*corev1.ConfigMap
	}
	ns2 := e.backend.Namespace(t)
	label := "suite=" + e.ns
	e.labelNamespaces(map[string]string{"suite": e.ns}, e.ns, ns2)
	mine, theirs := e.labelled("a", "suite", e.ns), e.labelled("a", "suite", e.ns)
	theirs.Namespace = ns2
	e.foreignCreate(mine, theirs)
	snapshots := watch[snapshot](e, e.client,
		kates.Query{Name: "One", Namespace: e.ns, LabelSelector: label},
		kates.Query{Name: "Several", Namespaces: []string{e.ns, ns2}, LabelSelector: label},
		kates.Query{Name: "Alone", Namespaces: []string{ns2}, LabelSelector: label},
		kates.Query{Name: "Selected", NamespaceSelector: label, LabelSelector: label},
		kates.Query{Name: "All", LabelSelector: label},
	)
	var snap snapshot
	awaitFirst(t, snapshots, &snap)
	both := []string{e.ns + "/a", ns2 + "/a"}
	for name, c := range map[string]struct {
		got  map[string]*corev1.ConfigMap
		want []string
	}{
		"one namespace":        {snap.One, []string{"a"}},
		"several":              {snap.Several, both},
		"a set of one":         {snap.Alone, both[1:]},
		"those that have":      {snap.Selected, both},
		"all, with a selector": {snap.All, both},
	} {
		assert.ElementsMatch(t, c.want, slices.Collect(maps.Keys(c.got)), name)
		for key, cm := range c.got {
			assert.Contains(t, []string{cm.Name, cm.Namespace + "/" + cm.Name}, key)
		}
	}
}

// labelNamespaces gives namespaces labels, as another program. The fake has no object for them
// before.
func (e *env) labelNamespaces(labels map[string]string, namespaces ...string) {
	e.t.Helper()
	all := e.foreign.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	for _, name := range namespaces {
		u, err := all.Get(e.ctx, name, metav1.GetOptions{})
		create := kates.IsNotFound(err)
		if create {
			u, err = asUnstructured(e.t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}), nil
		}
		require.NoError(e.t, err)
		u.SetLabels(labels)
		if create {
			_, err = all.Create(e.ctx, u, metav1.CreateOptions{})
		} else {
			_, err = all.Update(e.ctx, u, metav1.UpdateOptions{})
		}
		require.NoError(e.t, err)
	}
}

func optionalKinds(t *testing.T, e *env) {
	type snapshot struct {
		ConfigMaps []*corev1.ConfigMap
		Secrets    []*corev1.Secret `kates:",optional"`
		Gateways   []map[string]any `kates:"gateways.nosuchgroup.example,optional"`
	}
	e.foreignCreate(e.configMap("cm"))
	snapshots := watch[snapshot](e, e.client, e.inNamespace("ConfigMaps", "Secrets")...)
	var snap snapshot
	awaitFirst(t, snapshots, &snap)
	assert.Len(t, snap.ConfigMaps, 1)
	assert.Nil(t, snap.Gateways, "an absent optional kind is nil")
	assert.NotNil(t, snap.Secrets, "one that is served and empty is not")
	assert.Empty(t, snap.Secrets)

	// The same through a Query.
	accumulator := accumulate[snapshot](e, e.client,
		kates.Query{Name: "ConfigMaps", Kind: "ConfigMap", Namespace: e.ns},
		kates.Query{Name: "Gateways", Kind: "gateways.nosuchgroup.example", Optional: true})
	var second snapshot
	awaitFirst(t, accumulator, &second)
	assert.Len(t, second.ConfigMaps, 1)
	assert.Nil(t, second.Gateways)
}

func badQueries(t *testing.T, e *env) {
	good := kates.Query{Name: "ConfigMaps", Kind: "ConfigMap", Namespace: e.ns}
	for want, queries := range map[string][]kates.Query{
		"nosuchkind": {good, {Name: "Unknown", Kind: "nosuchkind"}},
		"ConfigMaps": {good, good},
		"BadLabel":   {good, {Name: "BadLabel", Kind: "Secret", LabelSelector: "==="}},
		"BadField":   {good, {Name: "BadField", Kind: "Secret", FieldSelector: "spec"}},
		"Secret":     {good, {Kind: "Secret"}},
		"NoKind":     {good, {Name: "NoKind"}},
	} {
		accumulator, err := e.client.Watch(e.ctx, queries...)
		require.ErrorContains(t, err, want)
		assert.Nil(t, accumulator)
	}
}

func badFields(t *testing.T, e *env) {
	// Without types, only the first Update sees the struct.
	type empty struct{ Other []*corev1.ConfigMap }
	accumulator, err := e.client.Watch(e.ctx, kates.Query{Name: "ConfigMaps", Kind: "ConfigMap", Namespace: e.ns})
	require.NoError(t, err)
	_, err = accumulator.Update(e.ctx, &empty{})
	require.ErrorContains(t, err, "ConfigMaps")
	_, err = accumulator.Update(e.ctx, &struct{ ConfigMaps int }{})
	require.ErrorContains(t, err, "ConfigMaps")
	for _, target := range []any{nil, empty{}, new(int), (*inputs)(nil)} {
		_, err = accumulator.Update(e.ctx, target)
		require.Error(t, err, "%T", target)
	}

	type impossible struct{ ConfigMaps chan int }
	_, err = kates.Watch[impossible](e.ctx, e.client, e.inNamespace("ConfigMaps")...)
	require.ErrorContains(t, err, "ConfigMaps")
	type untagged struct{ Hosts []map[string]any }
	_, err = kates.Watch[untagged](e.ctx, e.client)
	require.ErrorContains(t, err, "Hosts")
	type badOption struct {
		ConfigMaps []*corev1.ConfigMap `kates:",optinal"`
	}
	_, err = kates.Watch[badOption](e.ctx, e.client)
	require.ErrorContains(t, err, "optinal")
	type contradiction struct {
		ConfigMaps []*corev1.ConfigMap `kates:"secrets"`
	}
	_, err = kates.Watch[contradiction](e.ctx, e.client)
	require.ErrorContains(t, err, "ConfigMaps")
}

func waitFor(t *testing.T, e *env) {
	require.NoError(t, e.client.WaitFor(e.ctx, "hosts.getambassador.io"))
	over, cancel := contextThatIsOver(e.ctx)
	defer cancel()
	require.ErrorIs(t, e.client.WaitFor(over, "nosuchkind"), over.Err())
}
