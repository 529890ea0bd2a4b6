package jsonform

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/base/asjson"
	"github.com/kates-go/kates/internal/object"
)

// Object is an API object of any Go type.
type Object = object.Object

// EachObject calls visit for each object of a manifest: YAML documents, or JSON objects one after
// the other. Documents that are empty or have only comments are skipped. Lists give their items.
// What cannot be read is left out, and the others are visited. The error joins those of all
// documents. Each names its document by the number, from 1, and quotes no content.
func EachObject(manifest string, visit func(*unstructured.Unstructured) error) error {
	var all []error
	number := 0
	eachDocument(manifest, func(content map[string]any, err error) {
		number++
		if err == nil && content != nil {
			err = eachItem(content, visit)
		}
		if err != nil {
			all = append(all, fmt.Errorf("manifest document %d: %w", number, err))
		}
	})
	return errors.Join(all...)
}

// eachItem visits the object, or the items of a list at any depth. The error joins those of all
// items.
func eachItem(content map[string]any, visit func(*unstructured.Unstructured) error) error {
	u := &unstructured.Unstructured{Object: content}
	gvk, err := ParseGVK(u.GetAPIVersion(), u.GetKind())
	if err != nil {
		return err
	}
	items, isArray := content["items"].([]any)
	switch {
	case gvk.Kind == "List" && gvk.GroupVersion() == schema.GroupVersion{Version: "v1"}:
		if content["items"] != nil && !isArray {
			return errors.New("items is not a list")
		}
	case strings.HasSuffix(gvk.Kind, "List") && isArray && !named(u):
		// The items of a typed list do not repeat their kind.
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	default:
		err := tidyMetadata(content)
		if err == nil {
			err = visit(u)
		}
		return asWritten(err)
	}
	var all []error
	for i, item := range items {
		content, ok := item.(map[string]any)
		if !ok {
			all = append(all, fmt.Errorf("item %d: it is not an object", i+1))
			continue
		}
		if gvk.Kind != "List" && content["kind"] == nil && content["apiVersion"] == nil {
			content["apiVersion"], content["kind"] = gvk.GroupVersion().String(), gvk.Kind
		}
		if err := eachItem(content, visit); err != nil {
			all = append(all, fmt.Errorf("item %d: %w", i+1, err))
		}
	}
	return errors.Join(all...)
}

// named reports whether there is a name, or the beginning of one. An object has a name, and a list
// has none. A custom kind may be called AllowList, and have items.
func named(u *unstructured.Unstructured) bool { return u.GetName() != "" || u.GetGenerateName() != "" }

// asWritten adds to the error of a value of a wrong form that its quotes may be missing.
func asWritten(err error) error {
	if misfit := (*asjson.Misfit)(nil); errors.As(err, &misfit) {
		return fmt.Errorf("%w%s", err, misfit.Hint())
	}
	return err
}

// Typed decodes u into its Go type if scheme knows the kind, and returns u itself otherwise.
func Typed(scheme *runtime.Scheme, u *unstructured.Unstructured) (Object, error) {
	gvk := u.GroupVersionKind()
	if !scheme.Recognizes(gvk) {
		return u, nil
	}
	empty, err := scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("new %s: %w", gvk.Kind, err)
	}
	obj, ok := empty.(Object)
	if !ok {
		return nil, fmt.Errorf("%s is not the kind of an object", gvk.Kind)
	}
	if err := Fill(obj, u); err != nil {
		return nil, fmt.Errorf("decode %s as %T: %w", Describe(u), obj, undecoded(u.Object, reflect.TypeOf(obj), err))
	}
	return obj, nil
}

// ParseGVK makes a kind of its two parts, neither of which may be missing.
func ParseGVK(apiVersion, kind string) (schema.GroupVersionKind, error) {
	if kind == "" {
		return schema.GroupVersionKind{}, errors.New("kind is missing")
	}
	if apiVersion == "" {
		return schema.GroupVersionKind{}, fmt.Errorf("apiVersion of the %s is missing", kind)
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("apiVersion of the %s: %w", kind, err)
	}
	return gv.WithKind(kind), nil
}
