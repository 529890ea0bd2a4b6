package object

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a resource of the API as it is watched.
type Resource struct {
	schema.GroupVersionResource
	Kind       schema.GroupVersionKind
	Namespaced bool
	// Storage names the stored resource. It is the same for every group and version through which
	// one set of objects is served.
	Storage string
	// Field reads the fields that the resource can be selected by; nil reads none.
	Field FieldReader
}

// Serves reports whether both are one resource, served in the same way.
func (r Resource) Serves(o Resource) bool {
	return r.GroupVersionResource == o.GroupVersionResource && r.Kind == o.Kind &&
		r.Namespaced == o.Namespaced && r.Storage == o.Storage
}

// ErrContradicts is wrapped by the errors of answers that contradict a [Resource]: the kind may be
// served in another way by now.
var ErrContradicts = errors.New("the kind may be served in another way by now")

// Check is an error that wraps [ErrContradicts], for an object that no resource has which is
// served in this way.
func (r Resource) Check(o Object) error {
	if err := r.CheckKind(o); err != nil {
		return err
	}
	return r.CheckNamespace(o.GetNamespace())
}

// CheckKind is [Resource.Check] of the kind alone.
func (r Resource) CheckKind(o Object) error {
	kind, want := o.GetObjectKind().GroupVersionKind().GroupKind(), r.Kind.GroupKind()
	if _, short := Bare(o).(*metav1.PartialObjectMetadata); !short && kind.Kind != "" && kind != want {
		return contradiction(fmt.Sprintf("an object of kind %s, where %s was asked for", Brief(kind.String()), want))
	}
	return nil
}

// CheckNamespace is [Resource.Check] of the namespace alone.
func (r Resource) CheckNamespace(namespace string) error {
	switch {
	case !r.Namespaced && namespace != "":
		return contradiction(fmt.Sprintf("an object in the namespace %q, of a kind that has none", Brief(namespace)))
	case r.Namespaced && namespace == "":
		return contradiction(`an object in the namespace "", which cannot be`)
	}
	return nil
}

// contradiction says how an answer contradicts a resource.
type contradiction string

func (c contradiction) Error() string { return string(c) }

// Is reports whether target is [ErrContradicts].
func (c contradiction) Is(target error) bool { return target == ErrContradicts }

// Misplaced reports whether err is one that a server answers if a kind is served in another way
// than a [Resource] says: with another scope, plural, version, kind or other verbs.
func Misplaced(err error) bool {
	return err != nil && (apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || errors.Is(err, ErrContradicts))
}

// FieldReader returns the value that the server compares a field selector with, for an object of
// one resource. It returns false for a field that it does not know, or cannot read from this
// object: then only the server can judge. It is never asked for metadata.name and
// metadata.namespace. It is pure, fast, and safe for concurrent use.
type FieldReader func(o Object, field string) (value string, ok bool)
