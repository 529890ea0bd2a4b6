package kates

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/client/patch"
	objects "github.com/kates-go/kates/internal/object"
)

// stored drops from the status of a built-in kind what the kind's Go type does not know, because a
// server does. The fake has no schemas of other kinds.
func (*bareFake) stored(op operation, r objects.Resource, o *Unstructured) *Unstructured {
	if op.subresource != statusSubresource || o.Object["status"] == nil {
		return o
	}
	if !ofKubernetes(r.Kind) {
		return o
	}
	typed, err := scheme.Scheme.New(r.Kind)
	if err != nil {
		return o
	}
	convert := runtime.DefaultUnstructuredConverter
	if convert.FromUnstructured(map[string]any{"status": o.Object["status"]}, typed) != nil {
		return o // a value of another kind is none that the server drops
	}
	known, err := convert.ToUnstructured(typed)
	if err != nil {
		return o
	}
	kept := maps.Clone(o.Object)
	kept["status"] = patch.Kept(o.Object["status"], known["status"])
	return &Unstructured{Object: kept}
}

// possible refuses to write the status of a built-in kind that has none. The fake would take it
// for a write of the whole object.
func (*bareFake) possible(op operation, o *object, _ writeOptions) error {
	kind := o.resource.Kind
	if op.subresource != statusSubresource || !ofKubernetes(kind) {
		return nil
	}
	if typ := scheme.Scheme.AllKnownTypes()[kind]; typ.Kind() == reflect.Struct {
		if _, has := typ.FieldByName("Status"); has {
			return nil
		}
	}
	if op.verb == toModify || op.verb == toSet { // who takes that for the end of the object is wrong
		return errNoSubresource(op)
	}
	of, code := o.resource.GroupResource(), http.StatusNotFound
	answer := apierrors.NewGenericServerResponse(code, op.verb.text, of, o.GetName(), "", 0, true)
	return fmt.Errorf("%w: %w", errNoSubresource(op), answer)
}
