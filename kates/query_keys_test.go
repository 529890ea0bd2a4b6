package kates_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/kates"
)

func TestKeyFunctionsReadTypedAndUntypedObjectsAlike(t *testing.T) {
	yes := true
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "p", UID: "u1", Labels: map[string]string{"app": "web", "none": ""}, Annotations: map[string]string{"a.b/c": "d"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u2"},
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "u3", Controller: &yes},
			},
		},
		Spec: corev1.PodSpec{
			NodeName: "n1", HostNetwork: true, ActiveDeadlineSeconds: new(int64(7)),
			Containers: []corev1.Container{{Name: "one", Args: []string{"x", "y"}}, {Name: "two"}},
		},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	require.NoError(t, err)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	for name, c := range map[string]struct {
		f    kates.Key
		want []string
		node []string
	}{
		"namespace":            {kates.ByNamespace, []string{"ns"}, nil},
		"name":                 {kates.ByName, []string{"p"}, []string{"n1"}},
		"namespaced name":      {kates.ByNamespacedName, []string{"ns/p"}, []string{"n1"}},
		"uid":                  {kates.ByUID, []string{"u1"}, nil},
		"owner":                {kates.ByOwner("ReplicaSet"), []string{"ns/r"}, nil},
		"owner in its group":   {kates.ByOwner("replicaset.apps"), []string{"ns/r"}, nil},
		"owner in another":     {kates.ByOwner("ReplicaSet.other"), nil, nil},
		"any owner":            {kates.ByOwner(""), []string{"ns/r"}, nil},
		"plain owner":          {kates.ByOwner("Node"), nil, nil},
		"owner's name":         {kates.ByOwner("ReplicaSet", kates.ByName), []string{"r"}, nil},
		"owner's uid":          {kates.ByOwner("ReplicaSet", kates.ByUID), []string{"u3"}, nil},
		"label":                {kates.ByLabel("app"), []string{"web"}, nil},
		"empty label":          {kates.ByLabel("none"), nil, nil},
		"annotation":           {kates.ByAnnotation("a.b/c"), []string{"d"}, nil},
		"field":                {kates.ByField("spec.nodeName"), []string{"n1"}, nil},
		"field of metadata":    {kates.ByField("metadata.name"), []string{"p"}, []string{"n1"}},
		"escaped":              {kates.ByField(`metadata.annotations.a\.b/c`), []string{"d"}, nil},
		"number":               {kates.ByField("spec.activeDeadlineSeconds"), []string{"7"}, nil},
		"boolean":              {kates.ByField("spec.hostNetwork"), []string{"true"}, nil},
		"elements":             {kates.ByField("spec.containers.name"), []string{"one", "two"}, nil},
		"elements of elements": {kates.ByField("spec.containers.args"), []string{"x", "y"}, nil},
		"missing":              {kates.ByField("spec.what.ever"), nil, nil},
		"a map":                {kates.ByField("metadata.labels"), nil, nil},
		"below a string":       {kates.ByField("spec.nodeName.x"), nil, nil},
	} {
		keys := func(o kates.Object) []string {
			all, err := c.f.Keys(o)
			require.NoError(t, err, name)
			return all
		}
		assert.Equal(t, c.want, keys(pod), name)
		assert.Equal(t, c.want, keys(&kates.Unstructured{Object: content}), name+", untyped")
		assert.Equal(t, c.node, keys(node), name+", of a node")
	}
	_, err = kates.ByOwner("ReplicaSet", kates.ByNamespace).Keys(pod)
	assert.ErrorContains(t, err, "use ByNamespacedName, ByName or ByUID")
	_, err = kates.ByOwner("ReplicaSet", kates.ByName, kates.ByUID).Keys(pod)
	assert.ErrorContains(t, err, "one Key")
	for _, path := range []string{"", "a..b", ".spec"} {
		_, err := kates.ByField(path).Keys(pod)
		assert.ErrorContains(t, err, "not a path", path)
	}
}
