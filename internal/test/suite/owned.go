package suite

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

var ownedScenarios = []scenario{
	{"G4ApplyOwnedCreatesChangesAndPrunesInTheVeryNextUpdate", ownedSet},
	{"ApplyOwnedPrunesKindsThatAreNoLongerWantedAtAll", ownedKinds},
	{"ApplyOwnedNeverTouchesObjectsOfOthers", ownedOthers},
	{"ApplyOwnedNamesWhatItMayNotTakeAndDoesTheRest", ownedConflicts},
	{"ApplyOwnedAdoptsWhatNobodyControlsWhereThatIsWanted", ownedAdopts},
	{"ApplyOwnedReleasesWhatHasOtherOwnersToo", ownedReleases},
	{"ApplyOwnedPrunesAmongTheObjectsOfASnapshot", ownedExisting},
	{"ApplyOwnedOfAClusterScopedOwnerReachesAllNamespacesAndOfANamespacedOneItsOwn", ownedScope},
	{"ApplyOwnedOfBadInputIsAClearErrorAndWritesNothing", ownedInvalid},
	{"ApplyOwnedMayHoldPruningUntilEverythingIsApplied", ownedHolds},
	{"ApplyOwnedDoesNotTryWhatIsLeftWhenItsContextEnds", ownedEnds},
}

type owned struct {
	ConfigMaps []*corev1.ConfigMap
	Secrets    []*corev1.Secret
	Deltas     []*kates.Delta
}

func (e *env) watchOwned(queries ...kates.Query) (*kates.Snapshots[owned], *owned) {
	e.t.Helper()
	if queries == nil {
		queries = []kates.Query{{Name: "ConfigMaps", Namespace: e.ns, LabelSelector: "!system"}, {Name: "Secrets", Namespace: e.ns}}
	}
	snapshots, snap := watch[owned](e, e.client, queries...), &owned{}
	awaitFirst(e.t, snapshots, snap)
	return snapshots, snap
}

// root makes the owner of a set, a host, and returns the server's object.
func (e *env) root(name string) *kates.Unstructured {
	e.t.Helper()
	e.foreignCreate(e.host(name, "a.example"))
	stored, err := e.stored(e.host(name, ""))
	require.NoError(e.t, err)
	return stored
}

// set returns an owned set of this program.
func set(owner any, objects ...kates.Object) kates.OwnedSet {
	return kates.OwnedSet{Owner: owner, SetName: "suite", Objects: objects, Kinds: []string{"configmaps", "secrets"}}
}

func named(references []kates.ObjectReference) (all []string) {
	for _, r := range references {
		all = append(all, r.Kind+" "+r.Name)
	}
	return all
}

func ownedSet(t *testing.T, e *env) {
	root := e.root("root")
	snapshots, snap := e.watchOwned()
	a, b, s := e.configMap("a", "k", "1"), e.configMap("b"), e.secret("s")
	b.Namespace = "" // the owner's namespace
	result, err := e.client.ApplyOwned(e.ctx, set(root, a, b, s))
	require.NoError(t, err)
	assert.Equal(t, []string{"ConfigMap a", "ConfigMap b", "Secret s"}, named(result.Applied))
	now(t, snapshots, snap)
	assert.Equal(t, []string{"a", "b"}, names(snap.ConfigMaps))
	assert.Equal(t, []string{"s"}, names(snap.Secrets))
	got := shown(t, snap.ConfigMaps, "a")
	assert.True(t, metav1.IsControlledBy(got, root))
	assert.Contains(t, got.Labels[kates.OwnedSetLabel], "suite")
	assert.Empty(t, a.Labels, "what is given is not modified")

	a.Data["k"] = "2"
	result, err = e.client.ApplyOwned(e.ctx, set(root, a, s))
	require.NoError(t, err)
	assert.Equal(t, []string{"ConfigMap a"}, named(result.Applied))
	assert.Equal(t, []string{"Secret s"}, named(result.Unchanged))
	assert.Equal(t, []string{"ConfigMap b"}, named(result.Pruned))
	now(t, snapshots, snap)
	assert.Equal(t, []string{"update a", "delete b"}, deltaNames(snap.Deltas))
	assert.Equal(t, "2", shown(t, snap.ConfigMaps, "a").Data["k"])

	result, err = e.client.ApplyOwned(e.ctx, set(root, a, s))
	require.NoError(t, err)
	assert.Equal(t, []string{"ConfigMap a", "Secret s"}, named(result.Unchanged))
	assert.Empty(t, result.Applied)
	unchanged(t, snapshots, snap)
}

func ownedKinds(t *testing.T, e *env) {
	root := e.root("root")
	for _, watched := range []bool{false, true} {
		_, err := e.client.ApplyOwned(e.ctx, set(root, e.configMap("a"), e.secret("s")))
		require.NoError(t, err)
		if watched {
			e.watchOwned(kates.Query{Name: "ConfigMaps", Namespace: e.ns}, kates.Query{Name: "Secrets", Namespace: e.ns})
		}
		only := set(root, e.configMap("a"))
		only.Kinds = nil
		result, err := e.client.ApplyOwned(e.ctx, only)
		require.NoError(t, err)
		assert.Empty(t, result.Pruned, "nobody has said that there may be secrets")
		result, err = e.client.ApplyOwned(e.ctx, set(root))
		require.NoError(t, err)
		assert.Equal(t, []string{"ConfigMap a", "Secret s"}, named(result.Pruned))
		_, err = e.stored(e.configMap("a"))
		assert.True(t, kates.IsNotFound(err), "%v", err)
	}
}

func ownedOthers(t *testing.T, e *env) {
	root, other := e.root("root"), e.root("other")
	labelOf := func(s kates.OwnedSet) string { // it applies the set to learn the label
		result, err := e.client.ApplyOwned(e.ctx, s)
		require.NoError(t, err)
		require.Len(t, result.Applied, 1)
		stored, err := e.stored(s.Objects[0])
		require.NoError(t, err)
		return stored.GetLabels()[kates.OwnedSetLabel]
	}
	mine := labelOf(set(root, e.configMap("mine")))
	labelOf(set(other, e.configMap("of-another-owner")))
	second := set(root, e.configMap("of-another-set"))
	second.SetName = "second"
	labelOf(second)
	keyed := set(root, e.configMap("of-another-label"))
	keyed.Label = "example.com/set"
	_, err := e.client.ApplyOwned(e.ctx, keyed)
	require.NoError(t, err)
	unlabelled := e.configMap("of-the-owner-without-the-label")
	require.NoError(t, kates.SetControllerReference(root, unlabelled))
	unowned := e.labelled("with-the-label-and-no-owner", kates.OwnedSetLabel, mine)
	stranger := e.labelled("with-the-label-of-another-owner", kates.OwnedSetLabel, mine)
	require.NoError(t, kates.SetControllerReference(other, stranger))
	e.makeNamespaces("-next")
	beyond := e.labelled("of-an-owner-of-its-name-elsewhere", kates.OwnedSetLabel, mine)
	// a garbage collector would not accept it as an owner
	require.NoError(t, kates.SetControllerReference(root, beyond))
	beyond.Namespace = e.ns + "-next"
	e.foreignCreate(beyond)
	e.foreignCreate(unlabelled, unowned, stranger, e.configMap("of-nobody"))

	for _, way := range []string{"listed", "watched", "shown"} {
		_, err := e.client.ApplyOwned(e.ctx, set(root, e.configMap("mine")))
		require.NoError(t, err)
		nothing := set(root)
		if way != "listed" {
			_, snap := e.watchOwned(kates.Query{Name: "ConfigMaps", Namespace: e.ns}, kates.Query{Name: "Secrets", Namespace: e.ns})
			for _, cm := range snap.ConfigMaps {
				if way == "shown" {
					nothing.Existing = append(nothing.Existing, cm, beyond)
				}
			}
		}
		result, err := e.client.ApplyOwned(e.ctx, nothing)
		require.NoError(t, err)
		assert.Equal(t, []string{"ConfigMap mine"}, named(result.Pruned))
		assert.Empty(t, result.Released)
		_, err = e.stored(beyond)
		require.NoError(t, err)
		for _, name := range []string{
			"of-another-owner", "of-another-set", "of-another-label", "of-the-owner-without-the-label",
			"with-the-label-and-no-owner", "with-the-label-of-another-owner", "of-nobody",
		} {
			_, err := e.stored(e.configMap(name))
			assert.NoError(t, err, name)
		}
	}
}

func ownedConflicts(t *testing.T, e *env) {
	root, other := e.root("root"), e.root("other")
	controlled := e.configMap("controlled", "k", "theirs")
	require.NoError(t, kates.SetControllerReference(other, controlled))
	e.foreignCreate(controlled, e.configMap("free", "k", "theirs"), e.configMap("shared", "k", "theirs"))
	elsewhere := e.configMap("elsewhere")
	elsewhere.Namespace = "elsewhere"
	before := map[string]string{}
	for _, name := range []string{"controlled", "free"} {
		stored, err := e.stored(e.configMap(name))
		require.NoError(t, err)
		before[name] = stored.GetResourceVersion()
	}
	for _, force := range [][]kates.WriteOption{nil, {kates.ForceOwnership()}} {
		result, err := e.client.ApplyOwned(e.ctx, set(root, e.configMap("controlled", "k", "ours"), e.configMap("free", "k", "ours"), elsewhere, e.configMap("good")), force...)
		require.ErrorIs(t, err, kates.ErrControlled)
		require.ErrorIs(t, err, kates.ErrNotOwned)
		require.ErrorIs(t, err, kates.ErrOwnerScope)
		for _, name := range []string{"/controlled", "/free", "elsewhere/elsewhere"} {
			assert.ErrorContains(t, err, name)
		}
		assert.NotContains(t, err.Error(), "good")
		assert.Equal(t, []string{"ConfigMap good"}, append(named(result.Applied), named(result.Unchanged)...))
		for name, version := range before {
			stored, err := e.stored(e.configMap(name))
			require.NoError(t, err)
			assert.Equal(t, version, stored.GetResourceVersion(), "untouched")
			assert.Equal(t, map[string]any{"k": "theirs"}, stored.Object["data"])
		}
	}
	adopting := set(root, e.configMap("controlled", "k", "ours"))
	adopting.Adopt = true
	_, err := e.client.ApplyOwned(e.ctx, adopting)
	require.ErrorIs(t, err, kates.ErrControlled, "adopted is only what nobody controls")
	plain := set(root, e.configMap("controlled", "k", "ours"))
	plain.Plain, plain.Adopt = true, true
	_, err = e.client.ApplyOwned(e.ctx, plain)
	require.ErrorIs(t, err, kates.ErrControlled)
}

func ownedAdopts(t *testing.T, e *env) {
	root := e.root("root")
	e.foreignCreate(e.labelled("free", "theirs", "stays"))
	adopting := set(root, e.configMap("free", "k", "ours"))
	adopting.Adopt = true
	result, err := e.client.ApplyOwned(e.ctx, adopting)
	require.NoError(t, err)
	assert.Equal(t, []string{"ConfigMap free"}, named(result.Applied))
	stored, err := e.stored(e.configMap("free"))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"k": "ours"}, stored.Object["data"])
	assert.Equal(t, "stays", stored.GetLabels()["theirs"])
	assert.True(t, metav1.IsControlledBy(stored, root))
	result, err = e.client.ApplyOwned(e.ctx, set(root))
	require.NoError(t, err)
	assert.Equal(t, []string{"ConfigMap free"}, named(result.Pruned))
}

func ownedReleases(t *testing.T, e *env) {
	root, other := e.root("root"), e.root("other")
	plain := set(root, e.configMap("shared", "k", "v"), e.configMap("mine"))
	plain.Plain = true
	_, err := e.client.ApplyOwned(e.ctx, plain)
	require.NoError(t, err)
	stored, err := e.stored(e.configMap("shared"))
	require.NoError(t, err)
	assert.Nil(t, metav1.GetControllerOf(stored), "a plain owner")
	assert.True(t, kates.HasOwnerReference(root, stored))
	require.NoError(t, kates.AddOwnerReference(other, stored))
	e.foreignUpdate(stored)

	result, err := e.client.ApplyOwned(e.ctx, set(root))
	require.NoError(t, err)
	assert.Equal(t, []string{"ConfigMap mine"}, named(result.Pruned))
	assert.Equal(t, []string{"ConfigMap shared"}, named(result.Released))
	stored, err = e.stored(e.configMap("shared"))
	require.NoError(t, err)
	assert.False(t, kates.HasOwnerReference(root, stored))
	assert.True(t, kates.HasOwnerReference(other, stored))
	assert.NotContains(t, stored.GetLabels(), kates.OwnedSetLabel)
	assert.Equal(t, map[string]any{"k": "v"}, stored.Object["data"])
}

func ownedExisting(t *testing.T, e *env) {
	root := e.root("root")
	_, err := e.client.ApplyOwned(e.ctx, set(root, e.configMap("a"), e.configMap("b"), e.secret("s")))
	require.NoError(t, err)
	snapshots, snap := e.watchOwned()
	among := set(root, e.configMap("a"))
	among.Existing = []kates.Object{}
	result, err := e.client.ApplyOwned(e.ctx, among)
	require.NoError(t, err)
	assert.Empty(t, result.Pruned, "there is nothing among nothing")
	for _, o := range snap.ConfigMaps {
		among.Existing = append(among.Existing, o)
	}
	result, err = e.client.ApplyOwned(e.ctx, among)
	require.NoError(t, err)
	assert.Equal(t, []string{"ConfigMap b"}, named(result.Pruned), "the others are wanted, or not shown")
	_, err = snapshots.Update(e.ctx, snap)
	require.NoError(t, err)
	assert.Equal(t, []string{"s"}, names(snap.Secrets))
	among.Existing = append(among.Existing, snap.Secrets[0])
	result, err = e.client.ApplyOwned(e.ctx, among) // b is still in it
	require.NoError(t, err)
	assert.Contains(t, named(result.Pruned), "Secret s")
	_, err = e.stored(e.secret("s"))
	assert.True(t, kates.IsNotFound(err), "%v", err)
}

func ownedScope(t *testing.T, e *env) {
	e.makeNamespaces("-a", "-b")
	tenant := kates.NewUnstructured("Tenant", "example.kates.io/v1")
	tenant.SetName(e.ns)
	require.NoError(t, e.client.Create(e.ctx, tenant, &tenant))
	a, b := e.in(e.ns+"-a", "a"), e.in(e.ns+"-b", "b")
	_, err := e.client.ApplyOwned(e.ctx, set(tenant, a, b))
	require.NoError(t, err)
	result, err := e.client.ApplyOwned(e.ctx, set(tenant, a))
	require.NoError(t, err)
	assert.Equal(t, []string{"ConfigMap b"}, named(result.Pruned), "wherever it is")
	result, err = e.client.ApplyOwned(e.ctx, set(tenant))
	require.NoError(t, err)
	assert.Equal(t, []string{"ConfigMap a"}, named(result.Pruned))

	small := kates.NewUnstructured("Tenant", "example.kates.io/v1")
	small.SetName(e.ns + "-small")
	root := e.root("root")
	result, err = e.client.ApplyOwned(e.ctx, set(root, small, e.configMap("c")))
	require.ErrorIs(t, err, kates.ErrOwnerScope)
	assert.Equal(t, []string{"ConfigMap c"}, named(result.Applied))
	wide := set(root)
	wide.Kinds = append(wide.Kinds, "tenants")
	result, err = e.client.ApplyOwned(e.ctx, wide)
	require.ErrorIs(t, err, kates.ErrOwnerScope)
	assert.Equal(t, []string{"ConfigMap c"}, named(result.Pruned))
}

func ownedInvalid(t *testing.T, e *env) {
	root := e.root("root")
	_, err := e.client.ApplyOwned(e.ctx, set(root, e.configMap("kept")))
	require.NoError(t, err)
	leaving := root.DeepCopy()
	gone := metav1.Now()
	leaving.SetDeletionTimestamp(&gone)
	unknown := kates.NewUnstructured("Nothing", "example.com/v1")
	unknown.SetName("n")
	bad := set(root)
	for want, change := range map[string]func(){
		"the owner":        func() { bad.Owner = nil },
		"being deleted":    func() { bad.Owner = leaving },
		"has no Name":      func() { bad.SetName = "" },
		"makes no label":   func() { bad.SetName = "not a label" },
		"makes no label ":  func() { bad.Label = "a/b/c" },
		"without a name":   func() { bad.Objects = []kates.Object{e.configMap("a"), e.configMap("")} },
		"there twice":      func() { bad.Objects = []kates.Object{e.configMap("a"), e.configMap("a")} },
		"Nothing":          func() { bad.Objects = []kates.Object{e.configMap("a"), unknown} },
		"the owner itself": func() { bad.Objects, bad.Adopt = []kates.Object{e.configMap("a"), root.DeepCopy()}, true },
		"object 1":         func() { bad.Objects = []kates.Object{e.configMap("a"), nil} },
	} {
		bad = set(root, e.configMap("a"))
		change()
		_, err := e.client.ApplyOwned(e.ctx, bad)
		assert.ErrorContains(t, err, want)
	}
	if e.backend.Real {
		_, err := e.client.ApplyOwned(e.ctx, set(e.host("root", ""), e.configMap("a")))
		assert.ErrorContains(t, err, "has no UID")
	}
	_, err = e.client.ApplyOwned(e.ctx, set(root, e.configMap("a")), kates.IfUID("x"))
	assert.ErrorContains(t, err, "about one object")
	_, err = e.stored(e.configMap("a"))
	assert.True(t, kates.IsNotFound(err), "%v", err)
	_, err = e.stored(e.configMap("kept"))
	assert.NoError(t, err, "nothing is pruned while it is not known what is wanted")
	typo := set(root, e.configMap("a"))
	typo.Kinds = []string{"nothings"}
	_, err = e.client.ApplyOwned(e.ctx, typo)
	assert.ErrorContains(t, err, "nothings")
	_, err = e.stored(e.configMap("kept"))
	assert.True(t, kates.IsNotFound(err), "the rest is done: %v", err)
}

func ownedHolds(t *testing.T, e *env) {
	root := e.root("root")
	_, err := e.client.ApplyOwned(e.ctx, set(root, e.configMap("old")))
	require.NoError(t, err)
	e.foreignCreate(e.configMap("taken"))
	next := set(root, e.configMap("taken"))
	next.HoldPruning = true
	result, err := e.client.ApplyOwned(e.ctx, next)
	require.ErrorIs(t, err, kates.ErrNotOwned)
	assert.Empty(t, result.Pruned)
	next.HoldPruning = false
	result, err = e.client.ApplyOwned(e.ctx, next)
	require.ErrorIs(t, err, kates.ErrNotOwned)
	assert.Equal(t, []string{"ConfigMap old"}, named(result.Pruned))
}

func ownedEnds(t *testing.T, e *env) {
	root := e.root("root")
	_, err := e.client.ApplyOwned(e.ctx, set(root, e.configMap("old")))
	require.NoError(t, err)
	over, cancel := contextThatIsOver(e.ctx)
	defer cancel()
	_, err = e.client.ApplyOwned(over, set(root, e.configMap("new")))
	require.ErrorIs(t, err, over.Err())
	_, err = e.stored(e.configMap("old"))
	require.NoError(t, err)
	_, err = e.stored(e.configMap("new"))
	require.True(t, kates.IsNotFound(err))
}
