package katestest

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of object that an API serves, as discovery would describe it. APIVersion and
// Kind are required.
type Kind struct {
	APIVersion string // "v1", "getambassador.io/v3alpha1"
	Kind       string // "Host"

	// Plural is the name of the resource. If empty, it is the usual English plural of Kind in
	// lower case.
	Plural string

	// ClusterScoped says that objects of the kind have no namespace.
	ClusterScoped bool

	// ShortNames are more names for the Kind fields of queries and objects.
	ShortNames []string
}

// gvk parses the kind's group and version. Its error names the kind.
func (k Kind) gvk() (schema.GroupVersionKind, error) {
	gv, err := schema.ParseGroupVersion(k.APIVersion)
	if err != nil || gv.Version == "" || k.Kind == "" {
		return schema.GroupVersionKind{}, fmt.Errorf("kind %q in apiVersion %q: both are required, as in kind Host, apiVersion getambassador.io/v3alpha1", k.Kind, k.APIVersion)
	}
	return gv.WithKind(k.Kind), nil
}

// gvr returns the resource that serves kind gvk.
func (k Kind) gvr(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	if k.Plural != "" {
		return gvk.GroupVersion().WithResource(strings.ToLower(k.Plural))
	}
	return gvk.GroupVersion().WithResource(guessPlural(gvk))
}

// guessPlural is client-go's guess, without its "gatewaies".
func guessPlural(gvk schema.GroupVersionKind) string {
	lower := strings.ToLower(gvk.Kind)
	if n := len(lower); n > 1 && lower[n-1] == 'y' && strings.ContainsRune("aeiou", rune(lower[n-2])) {
		return lower + "s"
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural.Resource
}

// kindsOf lists the kinds that an API with the types of scheme serves. It leaves out the lists,
// options and subresources that are also in a scheme.
func kindsOf(scheme *runtime.Scheme) []Kind {
	object := reflect.TypeFor[metav1.Object]()
	var kinds []Kind
	for gvk, goType := range scheme.AllKnownTypes() {
		switch {
		case gvk.Version == runtime.APIVersionInternal,
			gvk.Group == metav1.GroupName,
			!reflect.PointerTo(goType).Implements(object),
			notResources[gvk.Kind] && !scheme.Recognizes(listOf(gvk)):
			continue
		}
		kinds = append(kinds, Kind{
			APIVersion:    gvk.GroupVersion().String(),
			Kind:          gvk.Kind,
			ClusterScoped: clusterScoped[gvk.GroupKind()],
			ShortNames:    shortNames[gvk.GroupKind()],
		})
	}
	return kinds
}

func listOf(gvk schema.GroupVersionKind) schema.GroupVersionKind {
	gvk.Kind += "List"
	return gvk
}

// kindsOfCRD lists the kinds that a CustomResourceDefinition defines, one per served version.
// Other objects define none.
func kindsOfCRD(object *unstructured.Unstructured) []Kind {
	if object.GetKind() != "CustomResourceDefinition" || object.GroupVersionKind().Group != crdGroup {
		return nil
	}
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
	scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope")
	short, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "names", "shortNames")
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	var kinds []Kind
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		name, _ := fields["name"].(string)
		if served, given := fields["served"].(bool); given && !served {
			continue
		}
		kinds = append(kinds, Kind{
			APIVersion:    group + "/" + name,
			Kind:          kind,
			Plural:        plural,
			ClusterScoped: scope == "Cluster",
			ShortNames:    short,
		})
	}
	return kinds
}
