package kates

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/patch"
)

// MergeUpdate updates target with what source asks for:
//
//   - Labels and annotations are merged, source's win.
//   - Owner references and finalizers are source's if it has any.
//   - Every other top-level section of source (spec, data, stringData, rules, subjects, …)
//     replaces target's. Sections that only target has stay.
//
// apiVersion, kind, status and all other metadata stay target's, so that target can be sent as an
// update of the object that it was read from. Target gets copies: it never shares memory with
// source. MergeUpdate panics if source holds something that does not encode as JSON, such as a
// channel.
func MergeUpdate(target, source *Unstructured) { patch.MergeUpdate(target, source) }

// ByName indexes objs by name into target. Objs is a slice of objects, or of structs whose
// pointers are objects. Target is a map[string]X, where X is the slice's element type or a
// pointer to it. Of several objects with one name the last is kept. Nil elements are skipped. The
// map's values are the slice's objects, not copies.
//
// It panics if objs or target are of other types, or target is nil.
func ByName(objs any, target any) {
	source, index := reflect.ValueOf(objs), reflect.ValueOf(target)
	if source.Kind() != reflect.Slice {
		panic(fmt.Sprintf("kates.ByName: %T is not a slice of objects", objs))
	}
	if index.Kind() != reflect.Map || index.Type().Key().Kind() != reflect.String || index.IsNil() {
		panic(fmt.Sprintf("kates.ByName: %T is not a (non-nil) map from names to objects", target))
	}
	for i := range source.Len() {
		elem := source.Index(i)
		if (elem.Kind() == reflect.Pointer || elem.Kind() == reflect.Interface) && elem.IsNil() {
			continue
		}
		named, ok := elem.Interface().(metav1.Object)
		if !ok {
			named, ok = elem.Addr().Interface().(metav1.Object)
		}
		if !ok {
			panic(fmt.Sprintf("kates.ByName: a %s is not an object", elem.Type()))
		}
		value, ok := indexable(elem, index.Type().Elem())
		if !ok {
			panic(fmt.Sprintf("kates.ByName: a %T cannot hold a %s", target, elem.Type()))
		}
		index.SetMapIndex(reflect.ValueOf(named.GetName()).Convert(index.Type().Key()), value)
	}
}

// indexable returns elem, what it holds or points to, or its address: the one that a map of want
// can hold.
func indexable(elem reflect.Value, want reflect.Type) (reflect.Value, bool) {
	candidates := []reflect.Value{elem, elem.Addr()}
	if elem.Kind() == reflect.Interface {
		elem = elem.Elem()
		candidates = append(candidates, elem)
	}
	if elem.Kind() == reflect.Pointer {
		candidates = append(candidates, elem.Elem())
	}
	for _, candidate := range candidates {
		if candidate.Type().AssignableTo(want) {
			return candidate, true
		}
	}
	return reflect.Value{}, false
}
