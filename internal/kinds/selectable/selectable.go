// Package selectable knows by which fields the objects of a resource can be selected,
// and what an API server takes the value of such a field to be.
//
// A field selector names labels of fields, not paths: which ones there are is decided for each resource, and the
// value is that of the server's internal form of the object. Some have a default, some fall back on another
// field, numbers and booleans that are missing are "0" and "false". [BuiltIn] has what kube-apiserver compiles in,
// [Custom] what a CustomResourceDefinition declares (KEP-4358). metadata.name and metadata.namespace are left
// out: they mean the same wherever they are supported.
//
// It is pure: it makes no requests, holds no state, and may be used by several goroutines at once.
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
	"k8s.io/client-go/util/jsonpath"
)

// Fields are the fields by which the objects of a resource, in one version, can be selected. It is
// immutable; nil has none.
type Fields map[string]value

// value reads a field of an object's JSON form.
type value func(object map[string]any) string

// BuiltIn returns the fields of a resource of kube-apiserver 1.36, nil for others.
func BuiltIn(r schema.GroupVersionResource) Fields { return builtIn[r] }

// BuiltIns returns the resources that BuiltIn knows, in no particular order.
func BuiltIns() []schema.GroupVersionResource { return slices.Collect(maps.Keys(builtIn)) }

// Custom returns the fields of a custom resource with these selectableFields, given as OpenAPI
// has them: without the leading dot. What is not a path of a field is left out, and so unknown.
func Custom(paths []string) Fields {
	f := make(Fields, len(paths))
	for _, path := range paths {
		parser := jsonpath.New(path).AllowMissingKeys(true)
		if path != "" && !strings.ContainsAny(path, "{}[]") && parser.Parse("{."+path+"}") == nil {
			f[path] = func(o map[string]any) string { return find(parser, o) }
		}
	}
	return f
}

// find formats what a path finds; what is missing or null is empty.
func find(path *jsonpath.JSONPath, o map[string]any) string {
	found, err := path.FindResults(o)
	if err != nil || len(found) == 0 || len(found[0]) == 0 {
		return ""
	}
	if v := found[0][0].Interface(); v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

// Names returns the fields in alphabetical order.
func (f Fields) Names() []string { return slices.Sorted(maps.Keys(f)) }

// Value returns what the server compares with a field selector's value. It is false where
// the field is not one of these, or the object has only its metadata. The object may be untyped or typed.
func (f Fields) Value(o runtime.Object, field string) (string, bool) {
	read, ok := f[field]
	if !ok {
		return "", false
	}
	switch o := o.(type) {
	case *metav1.PartialObjectMetadata:
		return "", false
	case *unstructured.Unstructured:
		return read(o.Object), true
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return "", false
	}
	return read(content), true
}
