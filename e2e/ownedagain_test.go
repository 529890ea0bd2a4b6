package e2e

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// again returns the test as another process continues it. That process watches Go types.
func (o *ownedTest) again(set kates.OwnedSet, options ...kates.Option) *ownedTest {
	o.Helper()
	next := *o
	next.w = newWire(o.T)
	next.client = next.w.client(o.T, append([]kates.Option{kates.WithNamespace(o.ns)}, options...)...)
	r, err := kates.NewLister[*corev1.ConfigMap](o.Context(), next.client, kates.Query{Namespace: o.ns})
	require.NoError(o, err)
	o.Cleanup(r.Close)
	next.spy = newSpy(next.w, "configmaps")
	return &next
}

func (o *ownedTest) many(n int) kates.OwnedSet {
	set := o.set()
	for i := range n {
		set.Objects = append(set.Objects, o.configMap(fmt.Sprintf("c%02d", i), "k", fmt.Sprint(i)))
	}
	set.Existing = []kates.Object{}
	return set
}

// changes has what is wanted and what exists change. Another process corrects only that. It asks
// for the lists before.
func (o *ownedTest) changes(set kates.OwnedSet, lists map[string]int, opts ...kates.WriteOption) {
	o.Helper()
	o.patch("c01", `{"data":{"k":"drifted"}}`)
	o.patch("c02", `{"data":{"k":"drifted"}}`)
	o.patch("c02", `{"data":{"k":"2"}}`) // there and back, but the set no longer owns the field
	o.patch("c03", `{"data":{"other":"theirs"}}`)
	o.patch("c04", `{"metadata":{"annotations":{"kates.io/applied":"something"}}}`)
	o.patch("c05", `{"metadata":{"annotations":{"kates.io/applied":null}}}`)
	o.remove("c06")
	set.Objects[7] = o.configMap("c07", "k", "another")
	set.Objects[8] = o.configMap("c08", "k", "8", "l", "more")
	set.Objects[9] = o.configMap("c09")
	next := o.again(set)
	result := next.apply(set, opts...)
	assert.ElementsMatch(o, []string{"c01", "c02", "c04", "c05", "c06", "c07", "c08", "c09"}, referred(result.Applied))
	want := maps.Clone(lists)
	if want == nil {
		want = map[string]int{}
	}
	want["PATCH"] = 8
	assert.Equal(o, want, next.spy.seen())
	assert.Equal(o, "1", o.stored("c01").Object["data"].(map[string]any)["k"])
	assert.Equal(o, map[string]any{"k": "3", "other": "theirs"}, o.stored("c03").Object["data"])
}

// A call with a field manager of its own cannot know from the watch what that has applied.
func TestApplyOwnedAsAnotherManagerThanTheClientAsksOnceForAllThatWasAppliedBefore(t *testing.T) {
	o := newOwnedTest(t)
	set, as := o.many(40), kates.FieldManager("of-the-call")
	o.apply(set, as)
	next := o.again(set)
	assert.Len(t, next.apply(set, as).Unchanged, 40)
	next.spy.mu.Lock()
	assert.Equal(t, []string{kates.OwnedSetLabel}, next.spy.lists, "those that were applied, and nothing else")
	next.spy.mu.Unlock()
	assert.Equal(t, map[string]int{"LIST": 1}, next.spy.seen())
	next.apply(set, as)
	assert.Empty(t, next.spy.seen(), "and remembers it")
	next.changes(set, map[string]int{"LIST": 1}, as, kates.ForceOwnership())
}

func TestApplyOwnedKnowsWhatWasAppliedOfEveryKindOfList(t *testing.T) {
	lists := []string{
		"list deployments true", "list statefulsets true", "list poddisruptionbudgets true", "list services true", "list serviceaccounts true", "list roles true", "list configmaps true", "list secrets true",
	}
	for name, test := range map[string]struct {
		as    []kates.WriteOption
		lists []string
	}{
		"from the watch": {}, "from lists": {[]kates.WriteOption{kates.FieldManager("of-the-call")}, lists},
	} {
		t.Run(name, func(t *testing.T) { knowsEveryKind(t, test.as, test.lists) })
	}
}

func knowsEveryKind(t *testing.T, as []kates.WriteOption, lists []string) {
	o := newOwnedTest(t)
	objects := withLists(o.ns)
	set := o.set(objects...)
	set.Existing = []kates.Object{}
	o.apply(set, as...)
	f := newFollower(t, nil, kates.WithNamespace(o.ns))
	for _, watch := range []func(*testing.T, *kates.Client, string) error{
		open[*appsv1.Deployment], open[*appsv1.StatefulSet], open[*policyv1.PodDisruptionBudget], open[*corev1.Service], open[*corev1.ServiceAccount], open[*rbacv1.Role], open[*corev1.ConfigMap], open[*corev1.Secret],
	} {
		require.NoError(t, watch(t, f.client, o.ns))
	}
	before := len(f.faults.Requests(katestest.Match{}))
	result, err := f.client.ApplyOwned(t.Context(), set, as...)
	require.NoError(t, err)
	assert.Empty(t, result.Applied)
	assert.Len(t, result.Unchanged, len(objects))
	var asked []string
	for _, r := range f.faults.Requests(katestest.Match{})[before:] {
		// there may be pages with objects of other tests
		if r.Verb != "watch" && r.Query.Get("continue") == "" {
			asked = append(asked, fmt.Sprint(r.Verb, " ", r.Resource, " ", r.Query.Get("labelSelector") == kates.OwnedSetLabel))
		}
	}
	assert.ElementsMatch(t, lists, asked)
}

func open[T any](t *testing.T, c *kates.Client, ns string) error {
	r, err := kates.NewLister[T](t.Context(), c, kates.Query{Namespace: ns})
	if err == nil {
		t.Cleanup(r.Close)
	}
	return err
}

// withLists returns objects with statuses that are never empty. They have lists with keys (with
// and without defaults in the keys), sets, atomic lists, maps, and fields that Go types show
// although they are not set.
func withLists(ns string) []kates.Object {
	d := deployment(ns)
	d.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP, Name: "dns"}}
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B"}}
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "other", Image: "i", Args: []string{"a", "b"}})
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "x"}, Items: []corev1.KeyToPath{{Key: "k", Path: "p"}},
	}}}}
	d.Finalizers = []string{"example.com/a", "example.com/b"}
	s := &corev1.Service{ObjectMeta: named(ns, "x"), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "x"},
		Ports:    []corev1.ServicePort{{Name: "a", Port: 80, TargetPort: intstr.FromString("http")}, {Name: "b", Port: 53, Protocol: corev1.ProtocolUDP}},
	}}
	template, one := d.Spec.Template, intstr.FromInt32(1)
	return []kates.Object{
		d, s,
		&appsv1.StatefulSet{ObjectMeta: named(ns, "x"), Spec: appsv1.StatefulSetSpec{Selector: d.Spec.Selector, Template: template}},
		&policyv1.PodDisruptionBudget{ObjectMeta: named(ns, "x"), Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: d.Spec.Selector}},
		&corev1.ServiceAccount{ObjectMeta: named(ns, "x"), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "a"}, {Name: "b"}}},
		&rbacv1.Role{ObjectMeta: named(ns, "x"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}},
		&corev1.ConfigMap{ObjectMeta: named(ns, "x"), BinaryData: map[string][]byte{"b": {1, 2}}},
		&corev1.Secret{ObjectMeta: named(ns, "x"), Data: map[string][]byte{"s": []byte(secrecy.Mark("s"))}, Type: corev1.SecretTypeOpaque},
	}
}

func TestApplyOwnedRecallsWhereItMayListOnlyANamespace(t *testing.T) {
	o := newOwnedTest(t)
	set, as := o.many(5), kates.FieldManager("of-the-call")
	o.apply(set, as)
	s := newSubject(t, "recalls-"+o.ns)
	s.grant(o.ns, "all", rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch", "patch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}})
	f := newFollower(t, func(c *rest.Config) { s.is(c) })
	require.NoError(t, open[*corev1.ConfigMap](t, f.client, o.ns))
	before := len(f.faults.Requests(katestest.Match{Resource: "configmaps"}))
	result, err := f.client.ApplyOwned(t.Context(), set, as)
	require.NoError(t, err)
	assert.Len(t, result.Unchanged, 5)
	var asked []string
	for _, r := range f.faults.Requests(katestest.Match{Resource: "configmaps"})[before:] {
		// there may be pages with objects of other tests
		if r.Verb != "watch" && r.Query.Get("continue") == "" {
			asked = append(asked, fmt.Sprint(r.Verb, " ", r.Namespace == o.ns, " ", r.Status))
		}
	}
	assert.Equal(t, []string{"list false 403", "list true 200"}, asked)
}

func TestApplyOwnedTakesItsAnnotationFromWhatItReleases(t *testing.T) {
	o := newOwnedTest(t)
	o.apply(o.set(o.configMap("a")))
	assert.NotEmpty(t, o.stored("a").GetAnnotations()[kates.AppliedAnnotation])
	another := o.owner("another")
	u := o.stored("a")
	require.NoError(t, kates.AddOwnerReference(another, u))
	_, err := o.others.Update(t.Context(), u, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.Len(t, o.apply(o.set()).Released, 1)
	assert.NotContains(t, o.stored("a").GetAnnotations(), kates.AppliedAnnotation)
}

// A status that others write changes the version of an object, and nothing that was applied.
func TestApplyOwnedThroughWatchesOfGoTypesPutsNothingBackThatOthersReport(t *testing.T) {
	o := newOwnedTest(t)
	set := o.set(deployment(o.ns))
	set.Existing = []kates.Object{}
	w := newWire(t)
	o.client = w.client(t, kates.WithNamespace(o.ns))
	require.NoError(t, open[*appsv1.Deployment](t, o.client, o.ns))
	o.apply(set)
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	s := newSpy(w, "deployments")
	for i := range 3 {
		_, err := foreign(t).Resource(deployments).Namespace(o.ns).Patch(t.Context(), "x", types.MergePatchType,
			fmt.Appendf(nil, `{"status":{"observedGeneration":%d}}`, i+1), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		require.NoError(t, o.client.Sync(t.Context()))
		assert.Len(t, o.apply(set).Unchanged, 1)
		assert.Empty(t, s.seen())
	}
	u, err := foreign(t).Resource(deployments).Namespace(o.ns).Get(t.Context(), "x", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, int64(3), u.Object["status"].(map[string]any)["observedGeneration"])
}
