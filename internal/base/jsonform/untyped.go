package jsonform

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kates-go/kates/internal/base/asjson"
)

// ToUnstructured makes an untyped copy of resource, which is anything that encodes to a JSON
// object: a typed object, an *Unstructured, a map, any struct, or pointers to these. It shares no
// memory with resource and does not modify it. An object whose kind is empty (the usual state of
// the Go types) gets apiVersion and kind from scheme, if its type is registered there.
func ToUnstructured(scheme *runtime.Scheme, resource any) (*unstructured.Unstructured, error) {
	value, err := Dereference(resource)
	if err != nil {
		return nil, err
	}
	content, err := jsonObject(value)
	if err != nil {
		return nil, err
	}
	if err := tidyMetadata(content); err != nil {
		return nil, fmt.Errorf("convert %T: %w", resource, err)
	}
	u := &unstructured.Unstructured{Object: content}
	if u.GetKind() == "" {
		stampKind(scheme, value, u)
	}
	return u, nil
}

// Normalized returns the content of an object of a Go type in the form in which the type writes it:
// quantities and times have one form, and what is empty is left out. It is nil if the scheme does
// not know the kind, or the content does not fit.
func Normalized(scheme *runtime.Scheme, kind schema.GroupVersionKind, content map[string]any) map[string]any {
	o, err := scheme.New(kind)
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(content, o) != nil {
		return nil
	}
	u, err := ToUnstructured(scheme, o)
	if err != nil {
		return nil
	}
	return u.Object
}

// Dereference follows pointers and interfaces to the value at their end. Nil is an error. The
// value stays addressable where there was a pointer, so that nothing is copied.
func Dereference(resource any) (reflect.Value, error) {
	value := reflect.ValueOf(resource)
	if !value.IsValid() {
		return value, errors.New("convert: the object is nil")
	}
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		if value.IsNil() {
			return value, fmt.Errorf("convert %T: the object is nil", resource)
		}
		value = value.Elem()
	}
	if value.Kind() == reflect.Map && value.IsNil() {
		return value, fmt.Errorf("convert %T: the object is nil", resource)
	}
	return value, nil
}

// jsonObject copies a value's content as untyped JSON.
func jsonObject(value reflect.Value) (map[string]any, error) {
	switch v := value.Interface().(type) {
	case unstructured.Unstructured:
		if v.Object == nil {
			return nil, errors.New("convert Unstructured: the object is nil")
		}
		return copyMap(v.Object)
	case map[string]any:
		return copyMap(v)
	}
	// A MarshalJSON method may be the pointer's.
	encode := value.Interface
	if value.CanAddr() {
		encode = value.Addr().Interface
	}
	data, err := json.Marshal(encode())
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", value.Type(), err)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil || content == nil {
		return nil, fmt.Errorf("convert %s: it does not encode to a JSON object", value.Type())
	}
	return content, sameName(encode(), content)
}

// sameName is an error if JSON says another name than the object: the request would be about
// another object.
func sameName(value any, content map[string]any) error {
	u := &unstructured.Unstructured{Object: content}
	o, ok := value.(metav1.Object)
	if !ok || !strings.ContainsRune(u.GetName(), utf8.RuneError) || o.GetName() == u.GetName() {
		return nil
	}
	return fmt.Errorf("convert %T: invalid name %q: it is no UTF-8", value, o.GetName())
}

func copyMap(m map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(m))
	for key, value := range m {
		copied, err := Copy(value)
		if err != nil {
			return nil, fmt.Errorf("convert: field %q: %w", key, err)
		}
		out[key] = copied
	}
	return out, nil
}

// Copy copies a JSON value. Programs also write other values into maps by hand: an int, a
// []string, a typed struct. runtime.DeepCopyJSON panics on them; Copy gives them the form that
// decoding from JSON gives.
func Copy(value any) (any, error) {
	switch v := value.(type) {
	case nil, string, bool, int64, float64:
		return v, nil
	case map[string]any:
		if v == nil {
			return nil, nil
		}
		return copyMap(v)
	case []any:
		if v == nil {
			return nil, nil
		}
		out := make([]any, len(v))
		for i := range v {
			copied, err := Copy(v[i])
			if err != nil {
				return nil, fmt.Errorf("item %d: %w", i, err)
			}
			out[i] = copied
		}
		return out, nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var decoded any
	if err := utiljson.Unmarshal(data, &decoded); err != nil {
		return nil, err
	}
	return decoded, nil
}

// tidyMetadata drops the creationTimestamp that an empty Go struct encodes as null. It rejects
// what the accessors of Unstructured misread without an error. A namespace that is a number
// (namespace: 123 in YAML) reads as none, and so as the default namespace. One label that is a
// number reads as no labels.
func tidyMetadata(content map[string]any) error {
	if err := checkStrings("", content, "apiVersion", "kind"); err != nil {
		return err
	}
	metadata, present := content["metadata"]
	if !present {
		return nil
	}
	if metadata == nil {
		delete(content, "metadata")
		return nil
	}
	fields, ok := metadata.(map[string]any)
	if !ok {
		return errors.New("metadata is not a JSON object")
	}
	if created, present := fields["creationTimestamp"]; present && created == nil {
		delete(fields, "creationTimestamp")
	}
	return checkMetadata(fields)
}

func checkMetadata(fields map[string]any) error {
	err := checkStrings("metadata.", fields, "name", "generateName", "namespace", "uid", "resourceVersion")
	if err != nil {
		return err
	}
	for _, field := range []string{"labels", "annotations"} {
		values, ok := fields[field].(map[string]any)
		if !ok && fields[field] != nil {
			return fmt.Errorf("metadata.%s is not a JSON object", field)
		}
		for key := range values {
			if values[key] == nil {
				delete(values, key) // the accessors misread a null as well
				continue
			}
			if err := checkStrings("metadata."+field+".", values, key); err != nil {
				return err
			}
		}
	}
	for _, field := range []string{"ownerReferences", "finalizers"} {
		if _, ok := fields[field].([]any); !ok && fields[field] != nil {
			return fmt.Errorf("metadata.%s is not a list", field)
		}
	}
	return nil
}

// checkStrings returns an error that names a field which is present and not a string. Null counts
// as absent.
func checkStrings(path string, content map[string]any, fields ...string) error {
	for _, field := range fields {
		if misfit := asjson.MisfitOf(content[field], reflect.TypeFor[string]()); misfit != nil {
			misfit.Path = path + field
			return misfit
		}
	}
	return nil
}

// stampKind sets the kind that the scheme knows for value's Go type. An apiVersion that is set
// already selects among several registrations.
func stampKind(scheme *runtime.Scheme, value reflect.Value, u *unstructured.Unstructured) {
	if scheme == nil {
		return
	}
	if !value.CanAddr() {
		addressable := reflect.New(value.Type())
		addressable.Elem().Set(value)
		value = addressable.Elem()
	}
	obj, ok := value.Addr().Interface().(runtime.Object)
	if !ok {
		return
	}
	kinds, _, err := scheme.ObjectKinds(obj)
	if err != nil {
		return // not registered: the caller reports the missing kind
	}
	for _, gvk := range kinds {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}
		if version := u.GetAPIVersion(); version == "" || version == gvk.GroupVersion().String() {
			u.SetGroupVersionKind(gvk)
			return
		}
	}
}
