package kates

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/wire"
	"github.com/kates-go/kates/internal/wire/project"
	"github.com/kates-go/kates/snapshot"
)

// projected returns the form of a target's objects: that of a projection, if nothing but the
// struct type of its field's elements is wanted of them. Everything else that is wanted of the
// objects is known here, and not later: their functions, and those that refer to them.
func (c *Client) projected(t target, all []target) stream.Form {
	if c.core.untyped || t.MetadataOnly || t.form != stream.Whole || t.typ == nil || t.role != "" {
		return t.form
	}
	elem := elementOf(t.typ)
	if t.AnyOf != nil { // a union judges its objects by all of its selectors
		return t.form
	}
	if !snapshot.Projects(elem) || !t.takesOnly(elem, all) || !t.keepsFieldsOf(elem) {
		return t.form
	}
	p := stream.Projection{Into: elem, Labels: t.labelled || snapshot.LookupElement(t.typ) != nil}
	for _, s := range t.selections() {
		p.Labels = p.Labels || s.Labels != nil || s.LabelSelector != ""
	}
	return p.Form()
}

// keepsFieldsOf reports whether the target's transform leaves the fields of a struct type as they
// are: there is none, or it drops managedFields, which the struct has not.
func (t target) keepsFieldsOf(elem reflect.Type) bool {
	return t.Transform == nil ||
		sameCode(t.Transform, DropManagedFields) && !project.Has(elem, "metadata", "managedFields")
}

// takesOnly reports whether all functions that get the target's objects take the type of its
// field's elements, or a pointer to it.
func (t target) takesOnly(elem reflect.Type, all []target) bool {
	for _, f := range t.functions() {
		if f.is && f.name != "Transform" && bareType(f.takes) != elem {
			return false
		}
	}
	for _, of := range all {
		for _, r := range of.Refs {
			if r.ref.Query == t.Name && bareType(r.takes) != elem {
				return false
			}
		}
	}
	return true
}

func bareType(t reflect.Type) reflect.Type {
	if t != nil && t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// projects returns an error if a kind has not what the target's struct type names.
func (c *Client) projects(t target, kind schema.GroupVersionKind) error {
	p, ok := t.form.Projection()
	if !ok {
		return nil
	}
	if err := wire.Projects(c.core.scheme, kind, p); err != nil {
		return fmt.Errorf("%w: %w", query.ErrUnfit, err)
	}
	return nil
}
