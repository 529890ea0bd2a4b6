package kates

import (
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/jsonform"
)

// MergeUpdate updates target with what source asks for:
//
//   - labels and annotations are merged, source's winning;
//   - owner references and finalizers are source's if it has any;
//   - every other top-level section of source (spec, data, stringData, rules,
//     subjects, …) replaces target's. Sections that only target has stay.
//
// apiVersion, kind, status and all other metadata stay target's, so that target
// can be sent as an update of the object it was read from. What is taken is
// copied: target never shares memory with source. It panics if source holds
// something that does not encode as JSON, such as a channel.
func MergeUpdate(target, source *Unstructured) {
	if target.Object == nil {
		target.Object = map[string]any{}
	}
	for section, value := range source.Object {
		switch section {
		case "apiVersion", "kind", "metadata", "status":
		default:
			copied, err := jsonform.Copy(value)
			if err != nil {
				panic(fmt.Sprintf("kates.MergeUpdate: %s is not JSON: %v", section, err))
			}
			target.Object[section] = copied
		}
	}
	for _, field := range []string{"labels", "annotations", "ownerReferences", "finalizers"} {
		mergeMetadata(target, source, field)
	}
}

// mergeMetadata takes one field of the metadata over. It goes by the content and not by the accessors of Unstructured,
// which read one that is not quite as it should be (a label that is a number, a []string) as if it were not there: it is
// for the server to say so.
func mergeMetadata(target, source *Unstructured, field string) {
	over, err := jsonform.Copy(metadataOf(source)[field])
	if err != nil {
		panic(fmt.Sprintf("kates.MergeUpdate: metadata.%s is not JSON: %v", field, err))
	}
	switch added := over.(type) {
	case nil:
		return
	case []any:
		if len(added) == 0 {
			return
		}
	case map[string]any:
		if len(added) == 0 {
			return
		}
		base, err := jsonform.Copy(metadataOf(target)[field])
		if there, ok := base.(map[string]any); ok && err == nil {
			maps.Copy(there, added)
			over = there
		}
	}
	metadata := metadataOf(target)
	if metadata == nil {
		metadata = map[string]any{}
		target.Object["metadata"] = metadata
	}
	metadata[field] = over
}

// metadataOf is the metadata of an object, nil if it has none.
func metadataOf(u *Unstructured) map[string]any {
	metadata, _ := u.Object["metadata"].(map[string]any)
	return metadata
}

func merged(base, over map[string]string) map[string]string {
	out := make(map[string]string, len(base)+len(over))
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

// ByName indexes objs, a slice of objects (or of structs whose pointers are
// objects), by name into target, a map[string]X where X is the slice's element
// type or a pointer to it. Of several objects with one name the last is kept;
// nil elements are skipped. The map's values are the slice's objects, not copies.
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

// indexable is elem, what it holds, points to, or its address: whichever a map
// of want can hold.
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
