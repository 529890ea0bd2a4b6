package kates

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/client/fake"
	"github.com/kates-go/kates/internal/client/wire"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/tables"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
)

// projected returns the form of a target's objects. Where its field's elements are structs of some
// fields, that is a projection: what the struct has, and the metadata that functions of this
// package say they need. Any other function may read whatever it likes, so whole objects are held
// for it, which is logged. Everything that is wanted of the objects is known here, and not later.
func (c *Client) projected(t target, all []target) objects.Form {
	if t.form == objects.Typed && !fake.OfKubernetes(t.kind) && len(fieldsSelected(Query{AnyOf: t.AnyOf})) > 0 {
		// The alternatives are judged by what the server compares, which is its JSON. A custom kind's
		// Go type may lack the field, or write it in another way.
		return objects.Whole
	}
	if c.core.untyped || t.MetadataOnly || t.form != objects.Whole || t.typ == nil || t.role != "" {
		return t.form
	}
	elem := elementOf(t.typ)
	if t.AnyOf != nil { // a union judges its objects by all of its selectors
		return t.form
	}
	if !tables.Projects(elem) {
		return t.form
	}
	whole := func(why string) objects.Form {
		c.core.Log.Info("whole objects are held, though the field's type has some of their fields only",
			"query", t.Name, "type", elem.String(), "why", why)
		return t.form
	}
	if taker := t.takesWhole(elem, all); taker != "" {
		return whole(taker + " may read any field")
	}
	beside, ok := besideOf(t.needed())
	if !ok {
		return whole("a function reads a field outside of the metadata")
	}
	return objects.Projection{Into: elem, Beside: beside}.Form()
}

// besideOf is the metadata that has the fields at some paths. ok is false if it has not all of
// them.
func besideOf(paths []project.Path) (b objects.Beside, ok bool) {
	for _, path := range paths {
		switch {
		case slices.Equal(path, labelsPath):
			b.Labels = true
		case slices.Equal(path, annotationsPath):
			b.Annotations = true
		case slices.Equal(path, ownersPath):
			b.Owners = true
		case slices.Equal(path, generationPath):
			b.Generation = true
		default:
			return b, false
		}
	}
	return b, true
}

// takesWhole names a function that may read any field of the target's objects; "" if there is
// none. Others take the type of its field's elements, or are of this package.
func (t target) takesWhole(elem reflect.Type, all []target) string {
	dropsOnlyManagedFields := sameCode(t.Transform, DropManagedFields) && !project.Has(elem, "metadata", "managedFields")
	if t.Transform != nil && !dropsOnlyManagedFields {
		return "Transform"
	}
	for _, f := range t.functions() {
		if f.is && f.name != "Transform" && bareType(f.takes) != elem && !t.isOurs(f.name) {
			return f.name
		}
	}
	for _, of := range all {
		for _, r := range of.Refs {
			if r.ref.Query == t.Name && bareType(r.takes) != elem {
				return "Refs of " + of.Name
			}
		}
	}
	return ""
}

// isOurs reports whether this package has made a target's Key or Signal, and knows what it needs.
func (t target) isOurs(name string) bool {
	switch name {
	case "Key":
		return isKeyOf(t.Key, keysOfOurs) || isKeyOf(t.Key, keysByIdentity)
	case "Signal":
		var q question
		q.askSignal(t.Signal)
		return !q.whole
	}
	return false
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
	if !ok && !t.Projection.set && t.form != objects.Whole && t.typ != nil && tables.Projects(elementOf(t.typ)) {
		p, ok = objects.Projection{Into: elementOf(t.typ)}, true
	}
	if !ok {
		return nil
	}
	if err := wire.Projects(c.core.Scheme, kind, p); err != nil {
		return fmt.Errorf("%w: %w", query.ErrUnfit, err)
	}
	return nil
}
