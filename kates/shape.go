package kates

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// shape is what an OpenAPI document says of a value, as far as it matters to who owns which parts of it.
type shape struct {
	Ref        string            `json:"$ref"`
	AllOf      []*shape          `json:"allOf"`
	Properties map[string]*shape `json:"properties"`
	Others     others            `json:"additionalProperties"`
	Items      *shape            `json:"items"`
	Unknown    bool              `json:"x-kubernetes-preserve-unknown-fields"`
	Map        string            `json:"x-kubernetes-map-type"`
	List       string            `json:"x-kubernetes-list-type"`
}

// others is the shape of further properties.
type others struct{ *shape }

func (o *others) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte("{")) {
		return nil // whether there may be any
	}
	return json.Unmarshal(data, &o.shape)
}

// shapeAge is how long the shapes of a group version are gone by before they are read again.
const shapeAge = 10 * time.Minute

// shapes are those of a group version's document, by the names by which they refer to each other, and by kind.
type shapes struct {
	named map[string]*shape
	kinds map[string]string
}

func shapesIn(gv schema.GroupVersion, raw []byte) (shapes, error) {
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				shape
				Kinds []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return shapes{}, err
	}
	found := shapes{map[string]*shape{}, map[string]string{}}
	for name, s := range doc.Components.Schemas {
		found.named[name] = &s.shape
		for _, kind := range s.Kinds {
			if kind.Group == gv.Group && kind.Version == gv.Version {
				found.kinds[kind.Kind] = name
			}
		}
	}
	return found, nil
}

// at is the shape of a part of an object; nil where it is not known.
func (s shapes) at(kind string, path fieldpath.Path) *shape {
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
		case here.Others.shape != nil:
			here = here.Others.shape
		case here.Unknown || len(here.Properties) == 0:
			here = &shape{} // anything
		default:
			return nil
		}
		here = s.resolved(here)
	}
	return here
}

// resolved is what a shape refers to; nil if that is nothing, or itself.
func (s shapes) resolved(a *shape) *shape {
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

// whole reports whether somebody owns a part, a map or a list, only as a whole. What no schema declares is by its fields, if it is a
// map.
func (a *shape) whole(part any) bool {
	if _, ok := part.(map[string]any); ok {
		return a.Map == "atomic"
	}
	return a.List != "set" && a.List != "map"
}

// whole reports whether it is known that a part of objects of a kind, a map or a list, is owned only as a whole.
func (r *resolver) whole(ctx context.Context, kind schema.GroupVersionKind, path fieldpath.Path, part any) bool {
	if ownedByFields(kind) {
		return true
	}
	d, err := r.documented(ctx, kind.GroupVersion(), func(d *document) bool {
		return r.clock.Since(d.read) > shapeAge || d.shapes.at(kind.Kind, path) == nil
	})
	if err != nil || d.err != nil {
		return false
	}
	a := d.shapes.at(kind.Kind, path)
	return a != nil && a.whole(part)
}

// ownedByFields reports whether a built-in kind has no maps by keys of whatever has parts of its own: where its fields are owned
// by their parts, they are not owned themselves.
func ownedByFields(kind schema.GroupVersionKind) bool {
	return builtIn(kind) && kind.Group != "resource.k8s.io" && kind.Kind != "ControllerRevision"
}

// builtIn reports whether a kind is one of Kubernetes' own.
func builtIn(kind schema.GroupVersionKind) bool {
	o, err := clientscheme.Scheme.New(kind) // where programs add their own
	return err == nil && strings.HasPrefix(reflect.TypeOf(o).Elem().PkgPath(), "k8s.io/api/")
}
