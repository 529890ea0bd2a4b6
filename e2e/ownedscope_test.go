package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
)

var clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}

// clusterOwned has an owner without a namespace, and another namespace.
func clusterOwned(t *testing.T) (o *ownedTest, other string) {
	o = newOwnedTest(t)
	require.NoError(t, o.client.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "owner-" + o.ns}}, &o.root))
	return o, namespace(t)
}

func (o *ownedTest) at(ns, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: named(ns, name), Data: map[string]string{"k": "v"}}
}

// places returns the namespaces and names of references.
func places(references []kates.ObjectReference) (all []string) {
	for _, r := range references {
		all = append(all, r.Namespace+"/"+r.Name)
	}
	return all
}

func TestApplyOwnedOfAnOwnerWithoutANamespacePrunesInEveryNamespaceAndAmongWhatHasNone(t *testing.T) {
	for how, watch := range map[string]func(*ownedTest){
		"not watched":              func(*ownedTest) {},
		"watched in one namespace": func(o *ownedTest) { o.watch() },
		"watched in all":           func(o *ownedTest) { o.watch(kates.Query{Kind: "cm"}) },
		"watched as a Go type":     func(o *ownedTest) { require.NoError(o, open[*corev1.ConfigMap](o.T, o.client, "")) },
	} {
		t.Run(how, func(t *testing.T) {
			o, other := clusterOwned(t)
			watch(o)
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "owned-" + o.ns}}
			set := o.set(o.at(o.ns, "a"), o.at(other, "a"), o.at(other, "b"), o.at("", "default"), role)
			set.Kinds = []string{"configmaps", "clusterroles"}
			result := o.apply(set)
			assert.Equal(t, []string{o.ns + "/a", other + "/a", other + "/b", o.ns + "/default", "/" + role.Name}, places(result.Applied), "one of a name in each namespace")
			assert.Equal(t, places(result.Applied), places(o.apply(set).Unchanged))

			// Foreign objects: one without the label, and one with an owner of another UID.
			o.make("theirs", nil)
			require.NoError(t, o.client.Sync(t.Context()))
			set.Objects = []kates.Object{o.at(other, "a")}
			result = o.apply(set)
			assert.Equal(t, []string{other + "/a"}, places(result.Unchanged))
			assert.ElementsMatch(t, []string{o.ns + "/a", other + "/b", o.ns + "/default", "/" + role.Name}, places(result.Pruned))
			assert.NotNil(t, o.stored("theirs"))
			assert.Nil(t, o.stored("a"))
			_, err := foreign(t).Resource(clusterRoles).Get(t.Context(), role.Name, metav1.GetOptions{})
			assert.True(t, kates.IsNotFound(err), "%v", err)
			_, err = foreign(t).Resource(clusterRoles).Get(t.Context(), o.root.GetName(), metav1.GetOptions{})
			assert.NoError(t, err, "the owner is not of its own set")

			set.Objects = nil
			result = o.apply(set)
			assert.Equal(t, []string{other + "/a"}, places(result.Pruned), "nothing is wanted: all of it goes")
		})
	}
}

func TestApplyOwnedOfANamespacedOwnerTouchesNothingElsewhere(t *testing.T) {
	o := newOwnedTest(t)
	other := namespace(t)
	elsewhere := foreign(t).Resource(configMaps).Namespace(other)
	// This one looks like an object of the set, as a copy of one does.
	o.apply(o.set(o.configMap("a")))
	copied := o.stored("a")
	copied.SetNamespace(other)
	copied.SetResourceVersion("")
	copied.SetUID("")
	copied.SetManagedFields(nil)
	_, err := elsewhere.Create(t.Context(), copied, metav1.CreateOptions{})
	require.NoError(t, err)

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "owned-" + o.ns}}
	set := o.set(o.at(other, "b"), role, o.configMap("c"))
	set.Kinds = []string{"configmaps", "clusterroles"}
	result, err := o.client.ApplyOwned(t.Context(), set)
	assert.ErrorIs(t, err, kates.ErrOwnerScope)
	assert.ErrorContains(t, err, other+"/b")
	assert.ErrorContains(t, err, role.Name)
	assert.ErrorContains(t, err, "prune clusterroles")
	assert.Equal(t, []string{o.ns + "/c"}, places(result.Applied), "the rest is done")
	assert.Equal(t, []string{o.ns + "/a"}, places(result.Pruned))
	_, err = elsewhere.Get(t.Context(), "b", metav1.GetOptions{})
	assert.True(t, kates.IsNotFound(err))
	_, err = foreign(t).Resource(clusterRoles).Get(t.Context(), role.Name, metav1.GetOptions{})
	assert.True(t, kates.IsNotFound(err))
	kept, err := elsewhere.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)

	set.Objects, set.Existing = nil, []kates.Object{kept}
	assert.Empty(t, o.apply(set).Pruned, "nor if it is among what exists")
	_, err = elsewhere.Get(t.Context(), "a", metav1.GetOptions{})
	assert.NoError(t, err)
}

func TestApplyOwnedOfAnOwnerThatCameAnewLeavesWhatTheFormerOneOwned(t *testing.T) {
	o, _ := clusterOwned(t)
	o.apply(o.set(o.configMap("a"), o.configMap("b")))
	roles := foreign(t).Resource(clusterRoles)
	require.NoError(t, roles.Delete(t.Context(), o.root.GetName(), metav1.DeleteOptions{}))
	require.NoError(t, o.client.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: o.root.GetName()}}, &o.root))
	result, err := o.client.ApplyOwned(t.Context(), o.set(o.configMap("a"), o.configMap("c")))
	assert.ErrorIs(t, err, kates.ErrControlled, "until the garbage collector has it")
	assert.Equal(t, []string{"c"}, referred(result.Applied))
	assert.Empty(t, result.Pruned)
	assert.NotNil(t, o.stored("b"))
	o.remove("a")
	o.remove("b")
	assert.Equal(t, []string{"a"}, referred(o.apply(o.set(o.configMap("a"), o.configMap("c"))).Applied))
}
