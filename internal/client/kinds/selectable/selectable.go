// Package selectable knows by which fields the objects of a resource can be selected, and which
// value an API server sees in such a field.
//
// A field selector names labels of fields and not paths. Each resource has its own labels, and
// their values are those of the server's internal form of the object. Some have a default, some
// fall back on another field, and a missing number or boolean is "0" or "false". [BuiltIn] has the
// fields that kube-apiserver compiles in, [Custom] those that a CustomResourceDefinition declares
// (KEP-4358). metadata.name and metadata.namespace are left out: they mean the same for every
// resource.
//
// The package is pure: it sends no requests and holds no state.
package selectable

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/object"
)

// Fields are the fields by which the objects of a resource, in one version, can be selected. A nil
// Fields has none. Fields is immutable.
type Fields map[string]value

// value is how a field is read.
type value struct {
	paths []string // of the object's JSON form that it depends on, with dots
	read  func(object map[string]any) string
	form  func(o runtime.Object, paths []string) (map[string]any, error) // of a typed object; nil: sparse
}

// BuiltIn returns the fields of a resource of kube-apiserver 1.34 to 1.37, nil for other resources.
// An older one refuses those that a newer one has.
func BuiltIn(r schema.GroupVersionResource) Fields { return builtIn[r] }

// Unsupported returns an error if the objects of a built-in resource cannot be selected by a
// field, in the words of kube-apiserver.
func Unsupported(r schema.GroupVersionResource, namespaced bool, field string) error {
	fields, own := builtIn[r]
	switch {
	case has(fields, field), field == "metadata.name", field == "metadata.namespace" && (namespaced || !own):
		return nil
	case r.Group == "batch" && own:
		return fmt.Errorf("field label %q not supported for Job", field)
	case own:
		return fmt.Errorf("field label not supported: %s", field)
	}
	return fmt.Errorf(`%q is not a known field selector: only "metadata.name", "metadata.namespace"`, field)
}

func has(f Fields, field string) bool {
	_, ok := f[field]
	return ok
}

// Paths returns the paths of an object, with dots, that a field of that name may be read from,
// whatever the kind: that of a custom kind, and those of built-in ones.
func Paths(field string) []string {
	all := []string{field}
	for _, f := range builtIn {
		all = append(all, f[field].paths...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// BuiltIns returns the resources that BuiltIn knows, in no particular order.
func BuiltIns() []schema.GroupVersionResource { return slices.Collect(maps.Keys(builtIn)) }

// Custom returns the fields of a custom resource with these selectableFields, in OpenAPI's form:
// without the leading dot. It leaves out what is not the path of a field: the server accepts names
// with dots between them, and no other JSONPath.
func Custom(paths []string) Fields {
	f := make(Fields, len(paths))
	for _, path := range paths {
		if strings.ContainsAny(path, `{}[]()'"@$*\ `) || slices.Contains(strings.Split(path, "."), "") {
			continue
		}
		get := at(path)
		f[path] = value{paths: []string{path}, form: whole, read: func(o map[string]any) string {
			if v := get(o); v != nil {
				return fmt.Sprint(v)
			}
			return ""
		}}
	}
	return f
}

// Names returns the fields in alphabetical order.
func (f Fields) Names() []string { return slices.Sorted(maps.Keys(f)) }

// Value returns the value that the server compares with a field selector's. It is false if the
// field is not one of these, or if only some of the object's fields are held. The object may be
// typed or not.
func (f Fields) Value(o runtime.Object, field string) (string, bool) {
	v, ok := f[field]
	if !ok {
		return "", false
	}
	switch o := o.(type) {
	case *metav1.PartialObjectMetadata, *object.Projected:
		return "", false
	case *unstructured.Unstructured:
		return v.read(o.Object), true
	}
	form := v.form
	if form == nil {
		form = sparse
	}
	content, err := form(o, v.paths)
	if err != nil {
		return "", false
	}
	return v.read(content), true
}
