package kates_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// asHeld returns a pod as watches hold it: typed, and untyped.
func asHeld(t *testing.T, node string) map[string]kates.Object {
	t.Helper()
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{"a": "1"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "one"}}},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	require.NoError(t, err)
	return map[string]kates.Object{"typed": pod, "untyped": &kates.Unstructured{Object: content}}
}

// undecodable is a pod that does not decode as one.
func undecodable() *kates.Unstructured {
	return &kates.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}, "spec": "text"}}
}

func plainNames(maps []*corev1.ConfigMap) (all []string) {
	for _, cm := range maps {
		all = append(all, cm.Name)
	}
	return all
}

type podNode struct {
	Spec struct{ NodeName string } `json:"spec"`
}

func TestFunctionsOfATypeTakeWhateverTheWatchHolds(t *testing.T) {
	nodeOf := func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} }
	moved := func(old, current *corev1.Pod) bool {
		return old == nil || current == nil || old.Spec.NodeName != current.Spec.NodeName
	}
	keys := func(k kates.Key, o kates.Object) []string {
		all, err := k.Keys(o)
		require.NoError(t, err)
		return all
	}
	worth := func(s kates.Signal, old, current kates.Object) bool {
		yes, err := s.Worth(old, current)
		require.NoError(t, err)
		return yes
	}
	for name, o := range asHeld(t, "n1") {
		assert.Equal(t, []string{"n1"}, keys(kates.KeyOf(nodeOf), o), name)
		assert.Equal(t, []string{"n1"}, keys(kates.KeyOf(func(p podNode) []string { return []string{p.Spec.NodeName} }), o), name)
		assert.Equal(t, []string{"p"}, keys(kates.KeyOf(func(m map[string]any) []string {
			return []string{m["metadata"].(map[string]any)["name"].(string)}
		}), o), name)
		assert.Equal(t, []string{"ns"}, keys(kates.KeyOf(func(o metav1.Object) []string {
			_, whole := o.(kates.Object)
			assert.False(t, whole, "its Go type says nothing of where it comes from")
			return []string{o.GetNamespace()}
		}), o), name)

		signal := kates.SignalOf(moved)
		for other, same := range map[string]bool{"n1": true, "n2": false} {
			for _, current := range asHeld(t, other) {
				assert.Equal(t, !same, worth(signal, o, current), "%s, and %T on %s", name, current, other)
			}
		}
		assert.True(t, worth(signal, nil, o), name)
		assert.True(t, worth(signal, o, nil), name)
	}
	_, err := kates.KeyOf(nodeOf).Keys(undecodable())
	assert.ErrorContains(t, err, `key: convert Pod "p" to *v1.Pod: json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec`)
	assert.True(t, worth(kates.SignalOf(func(_, _ *corev1.Pod) bool { return false }), undecodable(), undecodable()))
}

// TestAFunctionOfAnInterfaceIsAnError: the Go type of what it would get differs between tests and
// production. That of metadata is one type of its own.
func TestAFunctionOfAnInterfaceIsAnError(t *testing.T) {
	type snapshot struct{ Services []*corev1.Service }
	for name, q := range map[string]kates.Query{
		"Key":                        {Key: kates.KeyOf(func(kates.Object) []string { return nil })},
		"Signal":                     {Signal: kates.SignalOf(func(_, _ any) bool { return true })},
		"Transform":                  {Transform: kates.TransformOf(func(kates.Object) error { return nil })},
		`reference 0, of "Services"`: {Refs: []kates.Ref{kates.RefsOf("Services", func(kates.Object) []types.NamespacedName { return nil })}},
	} {
		q.Name = "Services"
		_, err := kates.WatchEach[snapshot](t.Context(), katestest.NewClient(t), q)
		assert.ErrorContains(t, err, "its "+name)
		assert.ErrorContains(t, err, "another Go type in tests than in production: have it take the kind's Go type, *Unstructured, or a metav1.Object")
	}
}

func TestOfMetadataAloneAFunctionThatReadsMoreIsAnError(t *testing.T) {
	type snapshot struct {
		Services []*kates.PartialObjectMetadata `kates:"services"`
	}
	watch := func(key kates.Key) error {
		p, err := kates.WatchEach[snapshot](t.Context(), katestest.NewClient(t), kates.Query{Name: "Services", Key: key})
		if err == nil {
			p.Close()
		}
		return err
	}
	assert.ErrorContains(t, watch(kates.KeyOf(func(*corev1.Service) []string { return nil })), "takes a *v1.Service, but of the objects of \"Services\" only the metadata is held")
	assert.ErrorContains(t, watch(kates.KeyOf(func(*podNode) []string { return nil })), "reads spec.NodeName, but")
	assert.ErrorContains(t, watch(kates.ByField("spec.type")), "reads spec.type, but")
	for _, key := range []kates.Key{
		kates.KeyOf(func(metav1.Object) []string { return nil }), kates.KeyOf(func(*kates.PartialObjectMetadata) []string { return nil }),
		kates.ByField("metadata.labels.app"), kates.ByLabel("app"),
	} {
		assert.NoError(t, watch(key))
	}
}

func TestATransformOfATypeChangesWhateverTheWatchHolds(t *testing.T) {
	dropSpec := kates.TransformOf(func(p *corev1.Pod) error { p.Spec = corev1.PodSpec{NodeName: p.Spec.NodeName + "!"}; return nil })
	dropLabels := kates.TransformOf(func(m map[string]any) error { delete(m["metadata"].(map[string]any), "labels"); return nil })
	for name, o := range asHeld(t, "n1") {
		require.NoError(t, dropSpec.Apply(o), name)
		require.NoError(t, dropLabels.Apply(o), name)
		var pod corev1.Pod
		require.NoError(t, kates.ConvertObject(nil, o, &pod), name)
		assert.Equal(t, corev1.PodSpec{NodeName: "n1!"}, pod.Spec, name)
		assert.Empty(t, pod.Labels, name)
		assert.Equal(t, "ns", pod.Namespace, name)
		assert.Equal(t, "Pod", o.GetObjectKind().GroupVersionKind().Kind, name)

		no := errors.New("no")
		assert.ErrorIs(t, kates.TransformOf(func(*corev1.Pod) error { return no }).Apply(o), no, name)
		assert.ErrorContains(t, kates.TransformOf(func(corev1.Pod) error { return nil }).Apply(o), "v1.Pod is a copy", name)
		require.NoError(t, kates.TransformOf(func(o metav1.Object) error { o.SetLabels(map[string]string{"a": "b"}); return nil }).Apply(o))
		assert.Equal(t, map[string]string{"a": "b"}, o.GetLabels(), name)
	}
	assert.ErrorContains(t, dropSpec.Apply(undecodable()), `convert Pod "p"`)
}

// TestTheSelectorOfAnAPITypeIsGivenInWords: one that selects everything or nothing, as an empty
// spec.selector does, is an error and not a query of everything.
func TestTheSelectorOfAnAPITypeIsGivenInWords(t *testing.T) {
	labelled := func(name, label string) *corev1.ConfigMap {
		cm := configMap(name)
		cm.Labels = map[string]string{"app": label}
		return cm
	}
	c := katestest.New(t, katestest.WithObjects(labelled("a", "web"), labelled("b", "web"), labelled("c", "db"))).Client
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	var list []*corev1.ConfigMap
	q := kates.Query{Name: "ConfigMaps", Kind: "ConfigMap", LabelSelector: metav1.FormatLabelSelector(web)}
	require.NoError(t, c.List(t.Context(), q, &list))
	assert.Equal(t, "a b", strings.Join(plainNames(list), " "))
	for name, of := range map[string]*metav1.LabelSelector{"everything": {}, "nothing": nil} {
		q.LabelSelector = metav1.FormatLabelSelector(of)
		assert.ErrorContains(t, c.List(t.Context(), q, &list), "selector", name)
		assert.ErrorContains(t, c.DeleteAll(t.Context(), q), "selector", name)
		_, err := c.Watch(t.Context(), q)
		assert.ErrorContains(t, err, "selector", name)
	}
}

// TestSelectorsInOtherWordsShareAWatch: what is the same to the server is one request.
func TestSelectorsInOtherWordsShareAWatch(t *testing.T) {
	fake := katestest.New(t, katestest.WithObjects(configMap("a")))
	watch := func(q kates.Query) {
		t.Helper()
		q.Name, q.Kind = "ConfigMaps", "ConfigMap"
		a, err := fake.Client.Watch(t.Context(), q)
		require.NoError(t, err)
		<-a.Changed()
	}
	// The first list signals; the watch comes a moment later.
	watches := func(want int) {
		t.Helper()
		var n int
		assert.Eventually(t, func() bool {
			n = 0
			for _, a := range fake.Dynamic.Actions() {
				if a.GetVerb() == "watch" {
					n++
				}
			}
			return n >= want
		}, time.Minute, time.Millisecond)
		assert.Equal(t, want, n)
	}
	for _, s := range []string{"a=1,b!=2", "b!=2,a==1", "a in (1), b notin (2)", "a=1,a=1,b!=2"} {
		watch(kates.Query{LabelSelector: s})
	}
	watches(1)
	watch(kates.Query{LabelSelector: "a in (1,2),b!=2"})
	watch(kates.Query{LabelSelector: "a in (2,1),b!=2"})
	watches(2)
	for _, s := range []string{"metadata.name=x,metadata.namespace!=y", "metadata.namespace!=y,metadata.name==x"} {
		watch(kates.Query{FieldSelector: s})
	}
	watches(3)
}
