package controller

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kates-go/kates/kates"
)

// Owned returns all objects of the owned fields of a reconciler's struct, field by field: what
// [kates.OwnedSet] takes as Existing. It is never nil, because a nil Existing means that nobody
// has looked. The objects are shared and read-only.
//
//	client.ApplyOwned(ctx, kates.OwnedSet{Owner: p.Root, SetName: "app", Objects: wanted(p), Existing: controller.Owned(p)})
//
// It panics if a field's elements do not identify their objects, for example structs without
// metadata.
func Owned[P any](p *P) []kates.Object {
	return ownedOf(make([]kates.Object, 0), reflect.ValueOf(p).Elem())
}

func ownedOf(all []kates.Object, v reflect.Value) []kates.Object {
	for i := range v.NumField() {
		sf, field := v.Type().Field(i), v.Field(i)
		tag, tagged := sf.Tag.Lookup("kates")
		switch {
		case !tagged && sf.Anonymous && field.Kind() == reflect.Struct:
			all = ownedOf(all, field)
		case !slices.Contains(strings.Split(tag, ",")[1:], "owned"):
		case field.Kind() == reflect.Slice:
			for j := range field.Len() {
				all = append(all, objectOf(sf.Name, field.Index(j)))
			}
		case field.Kind() == reflect.Map:
			all = append(all, inOrder(sf.Name, field)...)
		}
	}
	return all
}

// inOrder returns the objects of a map by namespace, then name.
func inOrder(field string, m reflect.Value) (all []kates.Object) {
	for _, key := range m.MapKeys() {
		all = append(all, objectOf(field, m.MapIndex(key)))
	}
	slices.SortFunc(all, func(a, b kates.Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return all
}

// objectOf returns an element of a field as an object.
func objectOf(field string, v reflect.Value) kates.Object {
	if o, ok := v.Interface().(kates.Object); ok {
		return o
	}
	if v.CanAddr() {
		if o, ok := v.Addr().Interface().(kates.Object); ok {
			return o
		}
	}
	if v.Kind() == reflect.Map {
		if content, ok := v.Convert(reflect.TypeFor[map[string]any]()).Interface().(map[string]any); ok {
			return &kates.Unstructured{Object: content}
		}
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v) // an element of a map has no address
	if o, ok := p.Interface().(kates.Object); ok {
		return o
	}
	panic(fmt.Sprintf("controller.Owned: the elements of field %s are %v, which does not say what object it is",
		field, v.Type()))
}
