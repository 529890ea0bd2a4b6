package selectable

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// whole returns the JSON form of a typed object. Of a custom kind, what JSON omits is no value.
func whole(o runtime.Object, _ []string) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(o)
}

// sparse returns the JSON form of a typed object of a built-in kind, with nothing but some paths.
// What JSON omits may be there: it has the value that the server takes a missing one for.
func sparse(o runtime.Object, paths []string) (content map[string]any, err error) {
	content = map[string]any{}
	for _, path := range paths {
		keys := strings.Split(path, ".")
		value, err := plain(member(reflect.ValueOf(o), keys))
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		if err := unstructured.SetNestedField(content, value, keys...); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// member returns what a value has under a path; the zero Value if it has nothing there.
func member(v reflect.Value, path []string) reflect.Value {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if len(path) == 0 || v.Kind() != reflect.Struct {
		return v
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == path[0] {
			return member(v.Field(i), path[1:])
		}
		if name == "" && field.Anonymous {
			if inlined := member(v.Field(i), path); inlined.IsValid() {
				return inlined
			}
		}
	}
	return reflect.Value{}
}

// plain returns the JSON form of a value, nil for none.
func plain(v reflect.Value) (any, error) {
	switch v.Kind() {
	case reflect.String:
		return v.String(), nil
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Struct:
		return runtime.DefaultUnstructuredConverter.ToUnstructured(v.Addr().Interface())
	case reflect.Slice:
		all := make([]any, 0, v.Len())
		for i := range v.Len() {
			each, err := plain(v.Index(i))
			if err != nil {
				return nil, err
			}
			all = append(all, each)
		}
		return all, nil
	}
	return nil, nil
}
