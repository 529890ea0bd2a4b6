// Package fields keeps who manages which field of an object, and merges what is applied, as the
// API server does: with apimachinery's field managers, on structured-merge-diff. It also makes
// patches. Begin at [Managers].
package fields

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// Managers has the field managers of each kind. It is safe for concurrent use.
type Managers struct {
	scheme  *runtime.Scheme
	builtIn managedfields.TypeConverter

	mu     sync.Mutex
	custom map[*kinds.Kind]managedfields.TypeConverter
}

// NewManagers returns the field managers of a scheme's kinds, and of custom ones.
func NewManagers(scheme *runtime.Scheme) *Managers {
	return &Managers{
		scheme:  scheme,
		builtIn: applyconfigurations.NewTypeConverter(scheme),
		custom:  map[*kinds.Kind]managedfields.TypeConverter{},
	}
}

// Update notes who manages the fields of an object that a request has made of another one. Live is
// nil for a new object. The result has other managedFields than the object that is given, and those of
// the live object if they do not fit its schema.
func (m *Managers) Update(k *kinds.Kind, subresource string, live, now map[string]any, manager string) (map[string]any, error) {
	f, err := m.of(k, subresource)
	if err != nil {
		return nil, err
	}
	is := &unstructured.Unstructured{Object: now}
	o, err := f.Update(m.liveOf(k, live), is, manager)
	if err != nil {
		is.SetManagedFields((&unstructured.Unstructured{Object: live}).GetManagedFields()) // since Kubernetes 1.37
		return is.Object, nil
	}
	return o.(*unstructured.Unstructured).Object, nil
}

// Apply merges an applied configuration into an object.
func (m *Managers) Apply(k *kinds.Kind, subresource string, live, applied map[string]any, manager string, force bool) (map[string]any, error) {
	f, err := m.of(k, subresource)
	if err != nil {
		return nil, err
	}
	o, err := f.Apply(m.liveOf(k, live), &unstructured.Unstructured{Object: applied}, manager, force)
	if err != nil {
		return nil, err
	}
	return o.(*unstructured.Unstructured).Object, nil
}

// liveOf is the object before a request. A new object starts as its Go type does: with its
// structs.
func (m *Managers) liveOf(k *kinds.Kind, live map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(live)}
	if live == nil {
		o.Object = map[string]any{}
		if empty, err := m.scheme.New(k.GroupVersionKind); err == nil {
			if content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(empty); err == nil {
				o.Object = content
				unstructured.RemoveNestedField(o.Object, "metadata", "creationTimestamp")
			}
		}
	}
	o.SetGroupVersionKind(k.GroupVersionKind)
	return o
}

func (m *Managers) of(k *kinds.Kind, subresource string) (*managedfields.FieldManager, error) {
	types, err := m.types(k)
	if err != nil {
		return nil, err
	}
	reset := map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(k.GroupVersion().String()): resets(k, subresource)}
	make := managedfields.NewDefaultFieldManager
	if k.Custom != nil {
		make = managedfields.NewDefaultCRDFieldManager
	}
	return make(types, convertor{}, nothing{}, creator{m, k}, k.GroupVersionKind, k.GroupVersion(), subresource, reset)
}

// resets are the fields that a request never changes, so that nobody comes to manage them by it.
func resets(k *kinds.Kind, subresource string) fieldpath.Filter {
	switch {
	case subresource == "status" && k.Custom != nil:
		return fieldpath.NewIncludeMatcherFilter(fieldpath.MakePrefixMatcherOrDie("status"))
	case subresource == "status" && k.Rules.StatusKeepsLabels:
		return fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata", "labels")))
	case subresource == "status" && k.Rules.StatusKeepsOwners:
		return fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata", "ownerReferences")))
	case subresource == "status":
		return fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("spec")))
	case k.Has("status"):
		return fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
	}
	return fieldpath.NewExcludeSetFilter(fieldpath.NewSet())
}

func (m *Managers) types(k *kinds.Kind) (managedfields.TypeConverter, error) {
	switch {
	case k.Custom == nil && applyconfigurations.ForKind(k.GroupVersionKind) == nil:
		return managedfields.NewDeducedTypeConverter(), nil // a kind that a program has added
	case k.Custom == nil:
		return m.builtIn, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.custom[k]; c != nil {
		return c, nil
	}
	c, err := typesOf(k)
	if err == nil {
		m.custom[k] = c
	}
	return c, err
}

// typesOf are the types of all versions of a custom kind: an object may have managers of each.
func typesOf(k *kinds.Kind) (managedfields.TypeConverter, error) {
	if k.Custom.Schema == nil {
		return managedfields.NewDeducedTypeConverter(), nil
	}
	all := map[string]*spec.Schema{}
	for _, v := range append([]*kinds.Kind{k}, k.Custom.Versions...) {
		if v.Custom.Schema == nil {
			continue
		}
		s, err := TypeOf(v)
		if err != nil {
			return nil, err
		}
		all[v.Version+"."+v.Kind] = s
	}
	return managedfields.NewTypeConverter(all, k.Custom.PreserveUnknown)
}

// TypeOf returns the schema of a custom kind that has one, with the type and the metadata that every
// object has.
func TypeOf(k *kinds.Kind) (*spec.Schema, error) {
	var meta spec.Schema
	if err := json.Unmarshal([]byte(objectMeta), &meta); err != nil {
		return nil, fmt.Errorf("the schema of metadata: %w", err)
	}
	s := *k.Custom.Schema
	s.Properties = maps.Clone(s.Properties)
	if s.Properties == nil {
		s.Properties = map[string]spec.Schema{}
	}
	text := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"string"}}}
	s.Properties["apiVersion"], s.Properties["kind"], s.Properties["metadata"] = text, text, meta
	s.Extensions = maps.Clone(s.Extensions)
	if s.Extensions == nil {
		s.Extensions = spec.Extensions{}
	}
	s.Extensions["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}}
	return &s, nil
}

// objectMeta is how the lists and maps of metadata are merged. See ObjectMeta in
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
const objectMeta = `{"type": "object", "properties": {
	"name": {"type": "string"}, "generateName": {"type": "string"}, "namespace": {"type": "string"}, "selfLink": {"type": "string"},
	"uid": {"type": "string"}, "resourceVersion": {"type": "string"}, "generation": {"type": "integer"},
	"creationTimestamp": {"type": "string"}, "deletionTimestamp": {"type": "string"}, "deletionGracePeriodSeconds": {"type": "integer"},
	"labels": {"type": "object", "additionalProperties": {"type": "string"}},
	"annotations": {"type": "object", "additionalProperties": {"type": "string"}},
	"finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
	"ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
		"items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
			"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"}, "uid": {"type": "string"},
			"controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"}}}},
	"managedFields": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
}}`

// convertor converts between the versions of a kind that are in one group. A server forgets what is
// managed through another group, as it forgets what is managed in a version that is gone.
type convertor struct{}

func (convertor) Convert(in, out, _ any) error {
	return fmt.Errorf("%T is not converted into %T", in, out)
}

func (convertor) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	is := in.GetObjectKind().GroupVersionKind()
	want, ok := gv.KindForGroupVersionKinds([]schema.GroupVersionKind{is})
	if !ok {
		return nil, runtime.NewNotRegisteredGVKErrForTarget("the server", is, gv)
	}
	if want != is {
		o := in.(*unstructured.Unstructured)
		in = &unstructured.Unstructured{Object: maps.Clone(kinds.Convert(o.Object, is, want))}
		in.GetObjectKind().SetGroupVersionKind(want)
	}
	return in, nil
}

func (convertor) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// nothing fills in no defaults: they are in the content.
type nothing struct{}

func (nothing) Default(runtime.Object) {}

// creator makes empty objects.
type creator struct {
	m *Managers
	k *kinds.Kind
}

func (c creator) New(schema.GroupVersionKind) (runtime.Object, error) {
	return c.m.liveOf(c.k, nil), nil
}
