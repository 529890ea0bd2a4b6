package rollouts

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// Gadgets is what is watched of the upgrade of a CRD.
type Gadgets struct {
	CRDs []map[string]any `kates:"customresourcedefinitions.apiextensions.k8s.io"`
	V1   []map[string]any `kates:"Gadget.v1.example.com"`
	V2   []map[string]any `kates:"Gadget.v2.example.com,optional"`
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func gadgets(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: version, Resource: "gadgets"}
}

// version is a version of the CRD. Version v2 has the field color.
func version(name string, stored bool) any {
	fields := map[string]any{"size": map[string]any{"type": "integer"}}
	if name == "v2" {
		fields["color"] = map[string]any{"type": "string", "default": "grey"}
	}
	return map[string]any{
		"name": name, "served": true, "storage": stored,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
			"spec": map[string]any{"type": "object", "properties": fields},
		}}},
	}
}

func definition() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gadgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "versions": []any{version("v1", true)},
			"names": map[string]any{"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
		},
	}}
}

// Upgrade records how a CRD gets a second version, which becomes the stored one, and how its
// objects get a field that only that has.
func Upgrade(ctx context.Context, config *rest.Config, file string) error {
	const objects = 10
	if _, err := newCluster(ctx, config, "upgrade", 0); err != nil {
		return err
	}
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	if _, err := d.Resource(crds).Create(ctx, definition(), metav1.CreateOptions{}); err != nil {
		return err
	}
	for n := range objects {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Gadget",
			"metadata": map[string]any{"name": gadget(n)}, "spec": map[string]any{"size": int64(n)},
		}}
		if err := served(ctx, func() error {
			_, err := d.Resource(gadgets("v1")).Namespace("upgrade").Create(ctx, o, metav1.CreateOptions{})
			return err
		}); err != nil {
			return err
		}
	}
	upgrade := func() error {
		body, err := json.Marshal(map[string]any{"spec": map[string]any{
			"versions": []any{version("v1", false), version("v2", true)},
		}})
		if err != nil {
			return err
		}
		if _, err := d.Resource(crds).Patch(ctx, "gadgets.example.com", types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			return err
		}
		for n := range objects {
			if err := served(ctx, func() error {
				_, err := d.Resource(gadgets("v2")).Namespace("upgrade").Patch(ctx, gadget(n), types.MergePatchType,
					fmt.Appendf(nil, `{"spec":{"size":%d,"color":"red"}}`, n+100), metav1.PatchOptions{})
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	}
	queries := []kates.Query{{Name: "CRDs", FieldSelector: "metadata.name=gadgets.example.com"}}
	if err := record(ctx, config, file, queries, upgrade, func(g *Gadgets) bool { return Upgraded(g, objects) }); err != nil {
		return fmt.Errorf("record the upgrade of a CRD: %w", err)
	}
	return d.Resource(crds).Delete(ctx, "gadgets.example.com", metav1.DeleteOptions{})
}

func gadget(n int) string { return fmt.Sprintf("gadget-%02d", n) }

// Upgraded reports whether both versions show what was written through the second one.
func Upgraded(g *Gadgets, objects int) bool {
	if len(g.V1) != objects || len(g.V2) != objects {
		return false
	}
	for n := range objects {
		size, _, _ := unstructured.NestedInt64(g.V1[n], "spec", "size")
		color, _, _ := unstructured.NestedString(g.V2[n], "spec", "color")
		if size < 100 || color != "red" {
			return false
		}
	}
	return true
}
