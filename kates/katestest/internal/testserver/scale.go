package testserver

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/fields"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// paths are where an object has its scale.
func paths(k *kinds.Kind) kinds.ScalePaths {
	if k.Custom != nil && k.Custom.Scale != nil {
		return *k.Custom.Scale
	}
	return kinds.ScalePaths{Spec: ".spec.replicas", Status: ".status.replicas", Selector: ".spec.selector"}
}

func steps(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// scaleOf is the scale of an object. A custom one has none before it says how many replicas it
// wants.
func scaleOf(k *kinds.Kind, c map[string]any) (map[string]any, error) {
	p := paths(k)
	if _, ok, _ := unstructured.NestedInt64(c, steps(p.Spec)...); !ok && k.Custom != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", p.Spec))
	}
	return currentScale(k, c), nil
}

// currentScale is what a scale shows of an object. See
// https://kubernetes.io/docs/reference/kubernetes-api/autoscaling-resources/scale-v1/
func currentScale(k *kinds.Kind, c map[string]any) map[string]any {
	o := unstructured.Unstructured{Object: c}
	p := paths(k)
	want, _, _ := unstructured.NestedInt64(c, steps(p.Spec)...)
	is, _, _ := unstructured.NestedInt64(c, steps(p.Status)...)
	meta := map[string]any{"name": o.GetName(), "uid": string(o.GetUID()), "resourceVersion": o.GetResourceVersion()}
	if ns := o.GetNamespace(); ns != "" {
		meta["namespace"] = ns
	}
	if t, ok, _ := unstructured.NestedString(c, "metadata", "creationTimestamp"); ok {
		meta["creationTimestamp"] = t
	}
	status := map[string]any{"replicas": is}
	if p.Selector != "" {
		if text := selectorText(c, steps(p.Selector)); text != "" {
			status["selector"] = text
		}
	}
	spec := map[string]any{}
	if want != 0 {
		spec["replicas"] = want
	}
	return map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": meta, "spec": spec, "status": status}
}

func selectorText(c map[string]any, path []string) string {
	if text, ok, err := unstructured.NestedString(c, path...); ok && err == nil {
		return text
	}
	labels, ok, err := unstructured.NestedStringMap(c, append(path, "matchLabels")...)
	if !ok || err != nil {
		return ""
	}
	return join(labels)
}

func (s *Server) putScale(w http.ResponseWriter, q *request) error {
	var scale map[string]any
	if err := utiljson.Unmarshal(q.body, &scale); err != nil {
		return undecodable(err)
	}
	return s.scale(w, q, func(old map[string]any) (map[string]any, error) {
		return s.managers.Update(scaleKind, "scale", old, scale, q.how.manager)
	})
}

func (s *Server) patchScale(w http.ResponseWriter, q *request, how types.PatchType) error {
	return s.scale(w, q, func(old map[string]any) (map[string]any, error) {
		if how == types.ApplyYAMLPatchType {
			applied, err := appliedIn(q)
			if err != nil {
				return nil, err
			}
			next, err := s.managers.Apply(scaleKind, "scale", old, applied, q.how.manager, q.how.force)
			if err == nil && q.kind.Custom != nil { // a real server cannot do it, either
				err = errors.New("failed to convert new object to proper version: request to convert CR to an invalid group/version: autoscaling/v1")
			}
			return next, err
		}
		c, err := fields.Patch(s.scheme, scaleKind, how, old, q.body)
		if err != nil {
			return nil, err
		}
		return s.managers.Update(scaleKind, "scale", old, c, q.how.manager)
	})
}

// scaleKind is the kind of all scales. Apply configurations have no schema of it.
var scaleKind = &kinds.Kind{
	GroupVersionKind: schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, Resource: "scales",
	Custom: &kinds.Custom{Schema: objectOf(map[string]spec.Schema{
		"spec":   *objectOf(map[string]spec.Schema{"replicas": *spec.Int32Property()}),
		"status": *objectOf(map[string]spec.Schema{"replicas": *spec.Int32Property(), "selector": *spec.StringProperty()}),
	})},
}

func objectOf(properties map[string]spec.Schema) *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}, Properties: properties}}
}

// scale changes how many replicas an object wants. Next makes the next scale of the one that there
// is. Who manages the scale's field manages it in the object.
func (s *Server) scale(w http.ResponseWriter, q *request, next changer) error {
	path := steps(paths(q.kind).Spec)
	whole := *q
	whole.part = ""
	made, err := s.update(&whole, func(old map[string]any) (map[string]any, error) {
		o := &unstructured.Unstructured{Object: old}
		handler := managedfields.NewScaleHandler(o.GetManagedFields(), q.kind.GroupVersion(), mappings(q.kind, path))
		entries, err := handler.ToSubresource()
		if err != nil {
			return nil, err
		}
		was := &unstructured.Unstructured{Object: currentScale(q.kind, old)}
		was.SetManagedFields(entries)
		changed, err := next(was.Object)
		if err != nil {
			return nil, err
		}
		is := &unstructured.Unstructured{Object: changed}
		if rv := is.GetResourceVersion(); rv != "" && rv != o.GetResourceVersion() {
			return nil, apierrors.NewConflict(q.kind.GR(), q.name, errModified)
		}
		n, err := replicasOf(q, changed)
		if err != nil {
			return nil, err
		}
		managed, err := handler.ToParent(is.GetManagedFields())
		if err != nil {
			return nil, err
		}
		c := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(old)}
		c.SetManagedFields(managed)
		if err := unstructured.SetNestedField(c.Object, n, path...); err != nil {
			return nil, err
		}
		if err := updated(&whole, old, c.Object); err != nil {
			return nil, err
		}
		keepTimes(old, c.Object)
		return c.Object, nil
	})
	if err != nil {
		return err
	}
	c, err := scaleOf(q.kind, shown(q.kind, made.content, made.rv))
	if err == nil {
		s.send(w, q, http.StatusOK, c)
	}
	return err
}

// mappings are where the versions of a kind have the field that a scale changes.
func mappings(k *kinds.Kind, path []string) managedfields.ResourcePathMappings {
	var elements []any
	for _, step := range path {
		elements = append(elements, step)
	}
	return managedfields.ResourcePathMappings{k.GroupVersion().String(): fieldpath.MakePathOrDie(elements...)}
}

// replicasOf is how many replicas a scale wants.
func replicasOf(q *request, scale map[string]any) (int64, error) {
	n, _, err := unstructured.NestedInt64(scale, "spec", "replicas")
	if err != nil {
		return 0, undecodable(err)
	}
	if n < 0 && q.kind.Custom == nil {
		return 0, apierrors.NewInvalid(scaleKind.GroupKind(), q.name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), n, validation.IsNegativeErrorMsg)})
	}
	return n, nil
}

func join(labels map[string]string) string {
	terms := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		terms = append(terms, key+"="+labels[key])
	}
	return strings.Join(terms, ",")
}
