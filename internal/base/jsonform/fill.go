package jsonform

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kates-go/kates/internal/object"
)

var (
	unstructuredType     = reflect.TypeFor[unstructured.Unstructured]()
	unstructuredListType = reflect.TypeFor[unstructured.UnstructuredList]()
	objectMapType        = reflect.TypeFor[map[string]any]()
	runtimeObjectType    = reflect.TypeFor[runtime.Object]()
	jsonDecoderType      = reflect.TypeFor[json.Unmarshaler]()
)

// CheckTarget returns an error if [Fill] could not fill target. A call checks its target before
// it sends its request.
func CheckTarget(target any) error {
	if target == nil {
		return nil
	}
	value, err := pointee(target)
	if err != nil {
		return err
	}
	if !holdsObject(value.Type()) {
		return fmt.Errorf("target %s cannot hold an object", object.TypeName(reflect.TypeOf(target)))
	}
	return nil
}

// pointee returns what target points to. A target that is not a pointer is an error.
func pointee(target any) (reflect.Value, error) {
	value := reflect.ValueOf(target)
	if value.Kind() != reflect.Pointer {
		return value, fmt.Errorf("target %s is not a pointer", object.TypeName(reflect.TypeOf(target)))
	}
	if value.IsNil() {
		return value, fmt.Errorf("target %s is a nil pointer", object.TypeName(reflect.TypeOf(target)))
	}
	return value.Elem(), nil
}

// holdsObject reports whether a JSON object can be decoded into a t.
func holdsObject(t reflect.Type) bool {
	switch {
	case reflect.PointerTo(t).Implements(jsonDecoderType):
		return true
	case t.Kind() == reflect.Pointer:
		return holdsObject(t.Elem())
	case t.Kind() == reflect.Interface:
		return objectMapType.AssignableTo(t) || reflect.PointerTo(unstructuredType).AssignableTo(t)
	case t.Kind() == reflect.Map:
		return t.Key().Kind() == reflect.String
	}
	return t.Kind() == reflect.Struct
}

// Fill sets what target points to from u: a *T is zeroed and filled, a **T gets a fresh *T. A nil
// target is a no-op. With a nil u, target is zeroed. On an error target is untouched. Target
// never shares memory with u.
func Fill(target any, u *unstructured.Unstructured) error {
	if target == nil {
		return nil
	}
	value, err := pointee(target)
	if err != nil {
		return err
	}
	if u == nil {
		value.SetZero()
		return nil
	}
	decoded := reflect.New(value.Type()).Elem()
	if err := decode(decoded, u); err != nil {
		return err
	}
	value.Set(decoded)
	return nil
}

// decode sets a fresh value from u.
func decode(out reflect.Value, u *unstructured.Unstructured) error {
	t := out.Type()
	if t.Kind() == reflect.Pointer {
		out.Set(reflect.New(t.Elem()))
		return decode(out.Elem(), u)
	}
	if !holdsObject(t) {
		return fmt.Errorf("a %s cannot hold an object", object.TypeName(t))
	}
	switch {
	case t == unstructuredType:
		out.Set(reflect.ValueOf(u.DeepCopy()).Elem())
		return nil
	case t == objectMapType, t.Kind() == reflect.Interface && objectMapType.AssignableTo(t):
		out.Set(reflect.ValueOf(u.DeepCopy().Object))
		return nil
	case t.Kind() == reflect.Interface:
		out.Set(reflect.ValueOf(u.DeepCopy()))
		return nil
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("encode %s: %w", Describe(u), err)
	}
	if err := unmarshalInto(out.Addr(), data); err != nil {
		if u.GetKind() == "Secret" {
			err = withoutContent(err)
		}
		return fmt.Errorf("decode %s as %s: %w", Describe(u), t, err)
	}
	return nil
}

// unmarshalInto decodes Kubernetes types and maps as Kubernetes does: names are case-sensitive
// and integers stay integers. Structs of the program are decoded as encoding/json does, since
// their fields may have no tags.
func unmarshalInto(pointer reflect.Value, data []byte) error {
	if pointer.Type().Implements(runtimeObjectType) || pointer.Elem().Kind() == reflect.Map {
		return utiljson.Unmarshal(data, pointer.Interface())
	}
	return json.Unmarshal(data, pointer.Interface())
}

// Describe names an object in errors. It shows no content.
func Describe(u *unstructured.Unstructured) string {
	name := object.Path(u.GetNamespace(), u.GetName())
	kind := u.GetKind()
	if kind == "" {
		kind = "object"
	}
	return fmt.Sprintf("%s %q", kind, name)
}

// CheckListTarget is [CheckTarget] for [FillList].
func CheckListTarget(target any) error {
	if target == nil {
		return errors.New("the target of a list is nil")
	}
	value, err := pointee(target)
	if err != nil {
		return err
	}
	t := value.Type()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == unstructuredListType, IsTypedList(t):
		return nil
	case t.Kind() == reflect.Slice && holdsObject(t.Elem()):
		return nil
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && holdsObject(t.Elem()):
		return nil
	}
	return fmt.Errorf("target %s cannot hold a list of objects", object.TypeName(reflect.TypeOf(target)))
}

// IsTypedList reports whether t is a type such as corev1.PodList.
func IsTypedList(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || !reflect.PointerTo(t).Implements(runtimeObjectType) {
		return false
	}
	items, ok := t.FieldByName("Items")
	return ok && items.Type.Kind() == reflect.Slice && holdsObject(items.Type.Elem())
}

// FillList replaces what target points to by items: a slice (never nil afterwards), a map keyed
// by name, an UnstructuredList, or a typed list such as corev1.PodList. On an error target is
// untouched. In a map two objects of one name are an error, since one of them would be lost.
func FillList(target any, items []*unstructured.Unstructured) error {
	if err := CheckListTarget(target); err != nil {
		return err
	}
	value, err := pointee(target)
	if err != nil {
		return err
	}
	decoded := reflect.New(value.Type()).Elem()
	if err := decodeList(decoded, items); err != nil {
		return err
	}
	value.Set(decoded)
	return nil
}

// decodeList sets a fresh value from items.
func decodeList(out reflect.Value, items []*unstructured.Unstructured) error {
	switch t := out.Type(); t.Kind() {
	case reflect.Pointer:
		out.Set(reflect.New(t.Elem()))
		return decodeList(out.Elem(), items)
	case reflect.Struct:
		if t == unstructuredListType {
			out.FieldByName("Object").Set(reflect.ValueOf(listHeader(items)))
		}
		return decodeList(out.FieldByName("Items"), items)
	case reflect.Slice:
		out.Set(reflect.MakeSlice(t, len(items), len(items)))
		for i, item := range items {
			if err := decode(out.Index(i), item); err != nil {
				return err
			}
		}
	case reflect.Map:
		out.Set(reflect.MakeMapWithSize(t, len(items)))
		for _, item := range items {
			key := reflect.ValueOf(item.GetName()).Convert(t.Key())
			if out.MapIndex(key).IsValid() {
				return fmt.Errorf("list into %s: two objects are named %q", object.TypeName(t), item.GetName())
			}
			elem := reflect.New(t.Elem()).Elem()
			if err := decode(elem, item); err != nil {
				return err
			}
			out.SetMapIndex(key, elem)
		}
	}
	return nil
}

// listHeader returns the apiVersion and kind of an UnstructuredList of items.
func listHeader(items []*unstructured.Unstructured) map[string]any {
	header := map[string]any{"apiVersion": "v1", "kind": "List"}
	if len(items) > 0 {
		header["apiVersion"], header["kind"] = items[0].GetAPIVersion(), items[0].GetKind()+"List"
	}
	return header
}
