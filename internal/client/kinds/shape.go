package kinds

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kates-go/kates/internal/client/kinds/selectable"
)

// shape is the part of an OpenAPI schema that decides how the parts of a value are owned (see
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy).
type shape struct {
	Ref        string            // "$ref"
	AllOf      []*shape          // "allOf"
	Properties map[string]*shape // "properties"
	Others     *shape            // "additionalProperties": of those that have no name here
	Items      *shape            // "items"
	Unknown    bool              // "x-kubernetes-preserve-unknown-fields"
	Map        string            // "x-kubernetes-map-type"
	List       string            // "x-kubernetes-list-type"
}

// shapeAge is how long the shapes of a group version are used before they are read again.
const shapeAge = 10 * time.Minute

// Schemas are the schemas of a group version's document.
type Schemas struct {
	named      map[string]*shape            // by the name that references use
	kinds      map[string]string            // the name of each kind's schema
	selectable map[string]selectable.Fields // the fields that each kind declares
}

// at returns the shape of a part of an object, nil if it is not known.
func (s Schemas) at(kind string, path fieldpath.Path) *shape {
	here := s.resolved(s.named[s.kinds[kind]])
	for _, e := range path {
		switch {
		case here == nil:
			return nil
		case e.FieldName == nil && here.Items != nil:
			here = here.Items
		case e.FieldName == nil:
			here = &shape{}
		case here.Properties[*e.FieldName] != nil:
			here = here.Properties[*e.FieldName]
		case here.Others != nil:
			here = here.Others
		case here.Unknown || len(here.Properties) == 0:
			here = &shape{} // anything
		default:
			return nil
		}
		here = s.resolved(here)
	}
	return here
}

// resolved follows references. It is nil if they lead nowhere, or in a circle.
func (s Schemas) resolved(a *shape) *shape {
	for range 10 {
		switch {
		case a == nil:
			return nil
		case a.Ref != "":
			a = s.named[strings.TrimPrefix(a.Ref, "#/components/schemas/")]
		case len(a.AllOf) == 1 && len(a.Properties) == 0 && a.Map == "" && a.List == "":
			a = a.AllOf[0] // a reference that has a description
		default:
			return a
		}
	}
	return nil
}

// whole reports whether a part, which is a map or a list, has only one owner as a whole. A map
// that no schema declares has owners by field.
func (a *shape) whole(part any) bool {
	if _, ok := part.(map[string]any); ok {
		return a.Map == "atomic"
	}
	return a.List != "set" && a.List != "map"
}

// Whole reports whether a part of a kind's objects, which is a map or a list, is known to be owned
// only as a whole.
func (r *Resolver) Whole(
	ctx context.Context, kind schema.GroupVersionKind, path fieldpath.Path, part any,
) bool {
	if OwnedByFields(kind) {
		return true
	}
	d, err := r.documented(ctx, kind.GroupVersion(), func(d *document) bool {
		return r.clock.Since(d.read) > shapeAge || d.schemas.at(kind.Kind, path) == nil
	})
	return err == nil && d.schemas.Whole(kind.Kind, path, part)
}

// Whole reports whether the schemas declare that a part of a kind's objects, which is a map or a
// list, is owned only as a whole.
func (s Schemas) Whole(kind string, path fieldpath.Path, part any) bool {
	a := s.at(kind, path)
	return a != nil && a.whole(part)
}

// OwnedByFields reports whether a built-in kind has no map whose values have parts of their own.
// In such a kind a field whose parts have owners has none itself.
func OwnedByFields(kind schema.GroupVersionKind) bool {
	return BuiltIn(kind) && kind.Group != "resource.k8s.io" && kind.Kind != "ControllerRevision"
}

// BuiltIn reports whether a kind is one of Kubernetes' own.
func BuiltIn(kind schema.GroupVersionKind) bool {
	if _, known := builtIn.Load(kind); known {
		return true
	}
	o, err := clientscheme.Scheme.New(kind) // programs add their own kinds to it
	is := err == nil && strings.HasPrefix(reflect.TypeOf(o).Elem().PkgPath(), "k8s.io/api/")
	if is {
		builtIn.Store(kind, true)
	}
	return is
}

// builtIn has the kinds of Kubernetes that somebody has asked about. To find out costs an object.
var builtIn sync.Map
