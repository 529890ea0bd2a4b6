package kates

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/jsonform"
)

// ParseManifests reads the objects of a manifest: YAML documents, each of which may begin with
// "---" and end with "...", or JSON objects one after the other. No document is passed over: one
// that cannot be read is an error. Kinds that client-go's scheme knows become their Go types
// (*corev1.Service …), all others *Unstructured. Documents that are empty or have only comments
// are skipped. Lists (kind List, ServiceList …) give their items. As in kubectl's client, unknown
// fields and repeated keys are no error.
//
// Errors name the document by its number, counting from 1, and never quote its content.
func ParseManifests(text string) ([]Object, error) {
	return parseManifests(text, typedObject)
}

// ParseManifestsToUnstructured is ParseManifests with every object an *Unstructured.
func ParseManifestsToUnstructured(text string) ([]Object, error) {
	return parseManifests(text, func(u *Unstructured) (Object, error) { return u, nil })
}

func parseManifests(text string, as func(*Unstructured) (Object, error)) ([]Object, error) {
	objects := []Object{}
	err := jsonform.EachObject(text, func(u *Unstructured) error {
		obj, err := as(u)
		if err == nil {
			objects = append(objects, obj)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return objects, nil
}

func typedObject(u *Unstructured) (Object, error) { return jsonform.Typed(u) }

// NewObject makes an empty object of a kind and apiVersion ("v1", "networking.k8s.io/v1"). It has
// its Go type if client-go's scheme knows the kind, and is an *Unstructured otherwise. It is an
// error if either is missing or malformed, or if the kind is not that of an object (a list, an
// options type).
func NewObject(kind, version string) (Object, error) {
	if _, err := jsonform.ParseGVK(version, kind); err != nil {
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

// NewObjectFromUnstructured copies u into its Go type if client-go's scheme knows its kind, and
// into another *Unstructured otherwise. Fields that the Go type lacks are dropped. A field that
// does not fit its type is an error.
func NewObjectFromUnstructured(u *Unstructured) (Object, error) {
	copied, err := jsonform.ToUnstructured(nil, u)
	if err != nil {
		return nil, err
	}
	return typedObject(copied)
}

// NewUnstructuredFromObject copies obj into an *Unstructured. A Go type of client-go's scheme
// whose kind is empty gets apiVersion and kind from there.
func NewUnstructuredFromObject(obj Object) (*Unstructured, error) {
	return jsonform.ToUnstructured(clientscheme.Scheme, obj)
}

// ConvertObject copies src into dst, which may be of another Go type for the same or a similar
// kind. It uses the conversion that is registered in scheme (client-go's if nil), or else JSON,
// which drops the fields that dst does not have. dst gets the apiVersion and kind that the scheme
// knows for its type. It shares no memory with src, and is untouched on an error.
func ConvertObject(scheme *runtime.Scheme, src, dst runtime.Object) error {
	return jsonform.Convert(scheme, src, dst)
}
