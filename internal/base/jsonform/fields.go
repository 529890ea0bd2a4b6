package jsonform

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// SplitPath returns the names of a dotted path, nil if one is empty. A backslash makes a dot part
// of a name.
func SplitPath(path string) (names []string) {
	const dot = "\x00" // no field has it in its name
	for name := range strings.SplitSeq(strings.ReplaceAll(path, `\.`, dot), ".") {
		if name == "" {
			return nil
		}
		names = append(names, strings.ReplaceAll(name, dot, "."))
	}
	return names
}

// DropFields drops the fields at some paths from an object. A field that is not there is no error.
func DropFields(o runtime.Object, paths [][]string) error {
	if u, ok := o.(*unstructured.Unstructured); ok {
		dropFields(u.Object, paths)
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil || !dropFields(content, paths) {
		return err
	}
	fresh := reflect.New(reflect.TypeOf(o).Elem())
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, fresh.Interface())
	if err != nil {
		return err
	}
	reflect.ValueOf(o).Elem().Set(fresh.Elem())
	return nil
}

// dropFields reports whether any of the fields was there.
func dropFields(content map[string]any, paths [][]string) (dropped bool) {
	for _, path := range paths {
		_, there, _ := unstructured.NestedFieldNoCopy(content, path...)
		unstructured.RemoveNestedField(content, path...)
		dropped = dropped || there
	}
	return dropped
}

// FieldValues returns the values at a path as text, those of each element of a list included. A
// value that is null, empty or a map is none.
func FieldValues(o runtime.Object, path []string) ([]string, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return fieldValues(nil, u.Object, path), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	return fieldValues(nil, content, path), nil
}

func fieldValues(found []string, value any, path []string) []string {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			found = fieldValues(found, element, path)
		}
	case map[string]any:
		if len(path) > 0 {
			found = fieldValues(found, v[path[0]], path[1:])
		}
	case nil:
	default:
		if len(path) > 0 {
			break
		}
		if text := fmt.Sprint(v); text != "" {
			found = append(found, text)
		}
	}
	return found
}
