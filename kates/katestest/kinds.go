package katestest

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
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
	return gvk.GroupVersion().WithResource(kinds.Plural(gvk))
}

// builtIn are the kinds that every API server has.
func builtIn() []Kind {
	return kindsOf(slices.Concat(kinds.OfScheme(clientgoscheme.Scheme), kinds.Unschemed()))
}

func kindsOf(served []kinds.Served) (all []Kind) {
	for _, s := range served {
		all = append(all, Kind{
			APIVersion: s.GroupVersion().String(), Kind: s.Kind, Plural: s.Plural, ClusterScoped: s.ClusterScoped, ShortNames: s.ShortNames,
		})
	}
	return all
}

// kindsOfCRD lists the kinds that a CustomResourceDefinition defines, one per served version.
// Other objects define none.
func kindsOfCRD(object *unstructured.Unstructured) []Kind {
	if object.GetKind() != "CustomResourceDefinition" || object.GroupVersionKind().Group != kinds.DefinitionGroup {
		return nil
	}
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
	scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope")
	short, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "names", "shortNames")
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	var all []Kind
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		name, _ := fields["name"].(string)
		if served, given := fields["served"].(bool); given && !served {
			continue
		}
		all = append(all, Kind{
			APIVersion:    group + "/" + name,
			Kind:          kind,
			Plural:        plural,
			ClusterScoped: scope == "Cluster",
			ShortNames:    short,
		})
	}
	return all
}
