package suite

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/kates"
)

// resources are those that another program writes in the scenarios.
var resources = map[string]schema.GroupVersionResource{
	"ConfigMap":           {Version: "v1", Resource: "configmaps"},
	"Secret":              {Version: "v1", Resource: "secrets"},
	"Service":             {Version: "v1", Resource: "services"},
	"ResourceQuota":       {Version: "v1", Resource: "resourcequotas"},
	"Deployment":          {Group: "apps", Version: "v1", Resource: "deployments"},
	"Host":                {Group: "getambassador.io", Version: "v3alpha1", Resource: "hosts"},
	"PodDisruptionBudget": {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	"Tenant":              {Group: "example.kates.io", Version: "v1", Resource: "tenants"},
}

func (e *env) meta(name string, labels ...string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: e.ns, Name: name, Labels: pairs(labels)}
}

func (e *env) configMap(name string, data ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: e.meta(name), Data: pairs(data)}
}

// labelled returns a ConfigMap with labels given as key, value, key, value.
func (e *env) labelled(name string, labels ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: e.meta(name, labels...)}
}

func (e *env) service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: e.meta(name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

// quota returns a typed object whose status only the scenario writes.
func (e *env) quota(name, pods string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: e.meta(name),
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}},
	}
}

// host returns an object of a custom kind, as a map.
func (e *env) host(name, hostname string) map[string]any {
	return map[string]any{
		"apiVersion": "getambassador.io/v3alpha1",
		"kind":       "Host",
		"metadata":   map[string]any{"namespace": e.ns, "name": name},
		"spec":       map[string]any{"hostname": hostname},
	}
}

// hostType is the same custom kind as a Go type that no scheme knows.
type hostType struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Hostname string `json:"hostname"`
	} `json:"spec"`
}

func pairs(keysAndValues []string) map[string]string {
	if len(keysAndValues) == 0 {
		return nil
	}
	m := map[string]string{}
	for i := 0; i < len(keysAndValues); i += 2 {
		m[keysAndValues[i]] = keysAndValues[i+1]
	}
	return m
}

// asUnstructured does not use package kates' own conversion.
func asUnstructured(t testing.TB, object any) *unstructured.Unstructured {
	t.Helper()
	switch object := object.(type) {
	case *unstructured.Unstructured:
		return object.DeepCopy()
	case map[string]any:
		return (&unstructured.Unstructured{Object: object}).DeepCopy()
	}
	typed, ok := object.(runtime.Object)
	require.True(t, ok, "%T", object)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: content}
	gvks, _, err := clientgoscheme.Scheme.ObjectKinds(typed)
	require.NoError(t, err)
	u.SetGroupVersionKind(gvks[0])
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u
}

func (e *env) foreignResource(u *unstructured.Unstructured) dynamic.ResourceInterface {
	e.t.Helper()
	gvr, ok := resources[u.GetKind()]
	require.True(e.t, ok, "kind %q", u.GetKind())
	return e.foreign.Resource(gvr).Namespace(u.GetNamespace())
}

// foreignCreate, foreignUpdate and foreignDelete are another program's writes. The updates
// overwrite what is there.
func (e *env) foreignCreate(objects ...any) {
	e.t.Helper()
	for _, object := range objects {
		u := asUnstructured(e.t, object)
		_, err := e.foreignResource(u).Create(e.ctx, u, metav1.CreateOptions{})
		require.NoError(e.t, err)
	}
}

func (e *env) foreignUpdate(object any) {
	e.t.Helper()
	u := asUnstructured(e.t, object)
	u.SetResourceVersion("")
	current, err := e.foreignResource(u).Get(e.ctx, u.GetName(), metav1.GetOptions{})
	require.NoError(e.t, err)
	u.SetResourceVersion(current.GetResourceVersion())
	_, err = e.foreignResource(u).Update(e.ctx, u, metav1.UpdateOptions{})
	require.NoError(e.t, err)
}

func (e *env) foreignDelete(object any) {
	e.t.Helper()
	u := asUnstructured(e.t, object)
	require.NoError(e.t, e.foreignResource(u).Delete(e.ctx, u.GetName(), metav1.DeleteOptions{}))
}

// stored returns the API's object, read without package kates.
func (e *env) stored(object any) (*unstructured.Unstructured, error) {
	e.t.Helper()
	u := asUnstructured(e.t, object)
	return e.foreignResource(u).Get(e.ctx, u.GetName(), metav1.GetOptions{})
}

// names returns the objects' names in order.
func names[T metav1.Object](objects []T) []string {
	list := make([]string, 0, len(objects))
	for _, object := range objects {
		list = append(list, object.GetName())
	}
	return list
}

// byName finds an object of a snapshot, or returns nil.
func byName[T metav1.Object](objects []T, name string) (found T) {
	for _, object := range objects {
		if object.GetName() == name {
			return object
		}
	}
	return found
}

// deltaNames renders deltas as "add web", in order.
func deltaNames(deltas []*kates.Delta) []string {
	list := make([]string, 0, len(deltas))
	for _, delta := range deltas {
		list = append(list, delta.DeltaType.String()+" "+delta.Name)
	}
	return list
}

// shown is byName for an object that must be there.
func shown[T metav1.Object](t testing.TB, objects []T, name string) T {
	t.Helper()
	found := byName(objects, name)
	require.NotNil(t, found, "%s is not among %v", name, names(objects))
	return found
}
