package applied

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// explicit reports whether the server keeps a value at a path although it is zero. In a Go type of
// Kubernetes, a field that is no pointer cannot tell zero from nothing: the server gives such a
// field its default (the targetPort of a Service). An empty struct gets the defaults of its fields;
// an empty selector of labels has none, and selects everything.
// A kind without a Go type has the defaults of a schema, which replace nothing that is given.
func explicit(typ reflect.Type, path fieldpath.Path, part any) bool {
	_, isMap := part.(map[string]any)
	_, isList := part.([]any)
	if typ == nil {
		return part != nil && !isMap && !isList
	}
	written := false
	for _, e := range path {
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch kind := typ.Kind(); {
		case kind == reflect.Struct && e.FieldName != nil:
			field, ok := fieldOf(typ, *e.FieldName)
			if !ok {
				return false
			}
			typ, written = field.Type, isWritten(field)
		case kind == reflect.Map && e.FieldName != nil, kind == reflect.Slice && e.FieldName == nil:
			typ, written = typ.Elem(), true // a given entry is there, whatever its value
		default:
			return false
		}
	}
	pointer := typ.Kind() == reflect.Pointer
	if pointer {
		typ = typ.Elem()
	}
	if typ == reflect.TypeFor[metav1.LabelSelector]() {
		return part != nil
	}
	return part != nil && !isMap && !isList && (pointer || written)
}

// said returns a part without the members that are zero and may get a default.
func said(typ reflect.Type, path fieldpath.Path, part any) any {
	path = path[:len(path):len(path)]
	switch part := part.(type) {
	case map[string]any:
		kept := make(map[string]any, len(part))
		for name, inner := range part {
			if at := append(path, fieldpath.PathElement{FieldName: &name}); !zero(inner) || explicit(typ, at, inner) {
				kept[name] = said(typ, at, inner)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(part))
		for i, inner := range part {
			kept[i] = said(typ, append(path, fieldpath.PathElement{Index: &i}), inner)
		}
		return kept
	}
	return part
}

// fieldOf returns the field of a struct that has a name in JSON.
func fieldOf(typ reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(typ) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// isWritten reports whether a field is a number or a boolean that JSON has although it is zero. An
// empty text may get a default (the apiGroup of a RoleRef).
func isWritten(f reflect.StructField) bool {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return f.Type.Kind() <= reflect.Float64 && name != "-" && name != "" && !strings.Contains(options, "omit")
}
