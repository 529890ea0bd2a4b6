package katestest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func untyped(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func service(namespace, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
}

// stored reads an object from the fake itself.
func stored(t *testing.T, fake *katestest.Fake, resource, namespace, name string) (*unstructured.Unstructured, error) {
	t.Helper()
	gvr, err := fake.Mapper.ResourceFor(schema.GroupVersionResource{Resource: resource})
	require.NoError(t, err)
	return fake.Dynamic.Resource(gvr).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
}

func TestNewClientHoldsTypedAndUntypedObjects(t *testing.T) {
	client := katestest.NewClient(t, service("prod", "web"), untyped("example.com/v1", "Tenant", "", "acme"), untyped("example.com/v1", "Widget", "prod", "w"))
	for kind, key := range map[string][2]string{"svc": {"prod", "web"}, "Tenant": {"", "acme"}, "widgets.example.com": {"prod", "w"}} {
		got := map[string]any{}
		require.NoError(t, client.Get(t.Context(), map[string]any{"kind": kind, "metadata": map[string]any{"namespace": key[0], "name": key[1]}}, &got), kind)
		name, _, _ := unstructured.NestedString(got, "metadata", "name")
		assert.Equal(t, key[1], name, kind)
	}
}

func TestStartingObjectsAreCopiedAsAServerWouldShowThem(t *testing.T) {
	original := service("", "web")
	fake := katestest.New(t, katestest.WithObjects(original))
	assert.Equal(t, service("", "web"), original, "the argument is as it was")

	got, err := stored(t, fake, "services", "default", "web")
	require.NoError(t, err)
	assert.Equal(t, "v1", got.GetAPIVersion())
	assert.Equal(t, "Service", got.GetKind())

	original.Spec.Ports[0].Port = 1
	got, err = stored(t, fake, "services", "default", "web")
	require.NoError(t, err)
	ports, _, err := unstructured.NestedSlice(got.Object, "spec", "ports")
	require.NoError(t, err)
	assert.Equal(t, int64(80), ports[0].(map[string]any)["port"])
}

func TestAnExplicitNullForTheCreationTimeIsDropped(t *testing.T) {
	widget := untyped("example.com/v1", "Widget", "a", "w")
	widget.Object["metadata"].(map[string]any)["creationTimestamp"] = nil
	fake := katestest.New(t, katestest.WithObjects(widget))
	got, err := stored(t, fake, "widgets", "a", "w")
	require.NoError(t, err)
	assert.NotContains(t, got.Object["metadata"], "creationTimestamp")
}

func TestObjectsAreStoredUnderTheirRealPlural(t *testing.T) {
	fake := katestest.New(t,
		katestest.WithKinds(katestest.Kind{APIVersion: "example.com/v1", Kind: "Kubernetes", Plural: "kubernetii", ClusterScoped: true}),
		katestest.WithObjects(
			&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}},
			&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}},
			untyped("v1", "Endpoints", "a", "x"),
			untyped("gateway.networking.k8s.io/v1", "Gateway", "a", "x"),
			untyped("example.com/v1", "Kubernetes", "", "x")))
	for resource, namespace := range map[string]string{"ingresses": "a", "endpointslices": "a", "endpoints": "a", "gateways": "a", "kubernetii": ""} {
		_, err := stored(t, fake, resource, namespace, "x")
		assert.NoError(t, err, resource)
	}
}

func TestEveryKindCanBeListed(t *testing.T) {
	fake := katestest.New(t, katestest.WithObjects(untyped("example.com/v1", "Gateway", "a", "x")))
	for gvk := range clientgoscheme.Scheme.AllKnownTypes() {
		mapping, err := fake.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			continue
		}
		_, err = fake.Dynamic.Resource(mapping.Resource).List(t.Context(), metav1.ListOptions{})
		assert.NoError(t, err, "%v", mapping.Resource)
	}
	list, err := fake.Dynamic.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gateways"}).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, list.Items, 1)
}

const hostsCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: hosts.getambassador.io
spec:
  group: getambassador.io
  scope: Cluster
  names: {kind: Host, plural: hostses, shortNames: [hst]}
  versions:
  - {name: v2, served: false}
  - {name: v3alpha1, served: true}
---
apiVersion: getambassador.io/v3alpha1
kind: Host
metadata:
  name: h
`

func TestACustomResourceDefinitionAmongTheObjectsDefinesItsKinds(t *testing.T) {
	fake := katestest.New(t, katestest.WithManifests(hostsCRD))
	got, err := stored(t, fake, "hst", "", "h")
	require.NoError(t, err)
	assert.Equal(t, "Host", got.GetKind())
	_, err = fake.Mapper.KindFor(schema.GroupVersionResource{Group: "getambassador.io", Version: "v2", Resource: "hostses"})
	assert.Error(t, err, "a version that is not served")
}

// widget is a Go type that only the user's scheme knows.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Size              int `json:"size"`
}

func (w *widget) DeepCopyObject() runtime.Object { c := *w; return &c }

func TestAUsersSchemeNamesTheKindsOfItsTypes(t *testing.T) {
	scheme := runtime.NewScheme()
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	scheme.AddKnownTypeWithName(gvk, &widget{})
	metav1.AddToGroupVersion(scheme, gvk.GroupVersion())

	fake := katestest.New(t, katestest.WithScheme(scheme), katestest.WithObjects(&widget{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Size: 3}))
	got, err := stored(t, fake, "widget", "default", "w")
	require.NoError(t, err)
	assert.Equal(t, int64(3), got.Object["size"])
}

func TestBadStartingObjectsAreErrorsThatNameThem(t *testing.T) {
	for name, c := range map[string]struct {
		objects []kates.Object
		want    string
	}{
		"nil":          {[]kates.Object{nil}, "starting object 0 is nil"},
		"no name":      {[]kates.Object{service("a", "")}, "needs a name"},
		"duplicate":    {[]kates.Object{service("", "web"), service("default", "web")}, `"web" already exists`},
		"no kind":      {[]kates.Object{&unstructured.Unstructured{Object: map[string]any{}}}, "apiVersion and kind"},
		"unknown type": {[]kates.Object{service("a", "b"), &widget{ObjectMeta: metav1.ObjectMeta{Name: "w"}}}, `starting object 1 (*katestest_test.widget "w")`},
		"wrong scope":  {[]kates.Object{untyped("v1", "Node", "a", "n")}, "cluster-scoped"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := katestest.NewFake(katestest.WithObjects(c.objects...))
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.want)
		})
	}
}

func TestBadManifestsAndKindsAreErrors(t *testing.T) {
	_, err := katestest.NewFake(katestest.WithManifests("kind: [\n"))
	assert.ErrorContains(t, err, "parsing manifests")
	_, err = katestest.NewFake(katestest.WithKinds(katestest.Kind{Kind: "Host"}))
	assert.ErrorContains(t, err, "Host")
}

func TestCloseTwiceIsHarmless(t *testing.T) {
	fake, err := katestest.NewFake()
	require.NoError(t, err)
	fake.Close()
	fake.Close()
}
