package tables

import (
	"cmp"
	"fmt"
	"reflect"

	"github.com/kates-go/kates/internal/object"
)

const wanted = "[]T, map[K]T, Lookup[T] or a list with Items []T, where K is types.NamespacedName, types.UID or string, " +
	"and T is (a pointer to) an API type, unstructured.Unstructured, metav1.PartialObjectMetadata, map[string]any, any, " +
	"json.RawMessage, or a struct or other type that decodes from an object's JSON"

// unfit is the error of a field whose type cannot hold objects. It says why, and which type can.
func unfit(t reflect.Type, why error) error {
	return fmt.Errorf("type %s: %w; want %s", object.TypeName(t), why, cmp.Or(instead(t), wanted))
}

// instead returns the type for a field that has objects of an API type, but in no form that a
// field may have. It is empty if the field has none.
func instead(t reflect.Type) string {
	e := object.Innermost(t)
	pointer, key := reflect.PointerTo(e), namespacedNameType
	if t.Kind() == reflect.Map && (t.Key() == stringType || t.Key() == uidType) {
		key = t.Key()
	}
	fits := func(t reflect.Type) bool { _, err := formOf(t); return err == nil }
	switch {
	case LookupElement(e) != nil && fits(e), pointer.Implements(listType) && ItemsOf(e) != nil && fits(e):
		return object.TypeName(e)
	case e.Kind() == reflect.Interface && (e.Implements(objectType) || e.Implements(runtimeType)):
		return "[]*unstructured.Unstructured or []any"
	case pointer.Implements(objectType) && t.Kind() == reflect.Map:
		return fmt.Sprintf("map[%v]%v", key, pointer)
	case pointer.Implements(objectType):
		return fmt.Sprintf("[]%v", pointer)
	}
	return ""
}
