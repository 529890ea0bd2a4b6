package kates

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// ParseManifests reads the objects of a manifest: YAML documents, each of which
// may begin with "---" and end with "...", or JSON objects after each other. None
// is passed over: what cannot be read is an error. Kinds that client-go's scheme knows become their Go types
// (*corev1.Service …), all others *Unstructured. Documents that are empty or
// only comments are skipped, and lists (kind List, ServiceList …) give their
// items. As in kubectl's client, unknown fields and repeated keys are no error.
//
// Errors name the document by its number, counting from 1, and never quote its
// content.
func ParseManifests(text string) ([]Object, error) {
	return parseManifests(text, typedObject)
}

// ParseManifestsToUnstructured is ParseManifests with every object an
// *Unstructured.
func ParseManifestsToUnstructured(text string) ([]Object, error) {
	return parseManifests(text, func(u *Unstructured) (Object, error) { return u, nil })
}

// NewObject makes an empty object of a kind and apiVersion ("v1",
// "networking.k8s.io/v1"): of its Go type where client-go's scheme knows it,
// else an *Unstructured. It is an error if either is missing or malformed, or if
// the kind is not that of an object (a list, an options type).
func NewObject(kind, version string) (Object, error) {
	if _, err := parseGVK(version, kind); err != nil {
		return nil, fmt.Errorf("new object: %w", err)
	}
	return NewObjectFromUnstructured(NewUnstructured(kind, version))
}

// NewUnstructured makes an empty *Unstructured of a kind and apiVersion.
func NewUnstructured(kind, version string) *Unstructured {
	u := &Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	return u
}

// NewObjectFromUnstructured copies u into its Go type where client-go's scheme
// knows its kind, else into another *Unstructured. Fields that the Go type lacks
// are dropped; one that does not fit its type is an error.
func NewObjectFromUnstructured(u *Unstructured) (Object, error) {
	copied, err := toUnstructured(nil, u)
	if err != nil {
		return nil, err
	}
	return typedObject(copied)
}

// NewUnstructuredFromObject copies obj into an *Unstructured. A Go type of
// client-go's scheme whose kind is empty gets apiVersion and kind from there.
func NewUnstructuredFromObject(obj Object) (*Unstructured, error) {
	return toUnstructured(clientscheme.Scheme, obj)
}

func parseManifests(text string, as func(*Unstructured) (Object, error)) ([]Object, error) {
	objects := []Object{}
	number := 0
	err := eachDocument(text, func(content map[string]any, err error) error {
		number++
		if err == nil && content != nil {
			err = eachObject(content, func(u *Unstructured) error {
				obj, err := as(u)
				if err == nil {
					objects = append(objects, obj)
				}
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("manifest document %d: %w", number, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return objects, nil
}

// eachObject visits the object, or a list's items however deep.
func eachObject(content map[string]any, visit func(*Unstructured) error) error {
	u := &Unstructured{Object: content}
	gvk, err := parseGVK(u.GetAPIVersion(), u.GetKind())
	if err != nil {
		return err
	}
	items, isArray := content["items"].([]any)
	switch {
	case gvk.Kind == "List" && gvk.GroupVersion() == schema.GroupVersion{Version: "v1"}:
		if content["items"] != nil && !isArray {
			return errors.New("items is not a list")
		}
	case strings.HasSuffix(gvk.Kind, "List") && isArray:
		// The items of a typed list do not repeat their kind.
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	default:
		if err := tidyMetadata(content); err != nil {
			return err
		}
		return visit(u)
	}
	for i, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("item %d: it is not an object", i+1)
		}
		if gvk.Kind != "List" && object["kind"] == nil && object["apiVersion"] == nil {
			object["apiVersion"], object["kind"] = gvk.GroupVersion().String(), gvk.Kind
		}
		if err := eachObject(object, visit); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return nil
}

// typedObject decodes u into its Go type if client-go's scheme knows it, else it
// is u itself.
func typedObject(u *Unstructured) (Object, error) {
	gvk := u.GroupVersionKind()
	if !clientscheme.Scheme.Recognizes(gvk) {
		return u, nil
	}
	empty, err := clientscheme.Scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("new %s: %w", gvk.Kind, err)
	}
	obj, ok := empty.(Object)
	if !ok {
		return nil, fmt.Errorf("%s is not the kind of an object", gvk.Kind)
	}
	if err := fill(obj, u); err != nil {
		return nil, fmt.Errorf("decode %s as %T: %w", describe(u), obj, withoutContent(err))
	}
	return obj, nil
}

func parseGVK(apiVersion, kind string) (schema.GroupVersionKind, error) {
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
