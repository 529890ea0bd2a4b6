package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/client/wire/frames"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
)

// projector makes objects that have some of their fields: from protobuf by a plan, which skips
// what is not wanted, or else from JSON.
type projector struct {
	kind *schema.GroupVersionKind // all objects have this one
	into reflect.Type
	said bool // the struct has the kind among its fields
	// plan, and heads for the metadata, decode from protobuf. They are nil where JSON is asked
	// for. So is mores where no more of the metadata is held.
	plan, heads, mores *project.Plan
	beside             objects.Beside
}

// head is the metadata that each object has.
type head struct {
	metav1.TypeMeta
	Metadata objects.Head `json:"metadata"`
}

// headInProto is head without what protobuf has elsewhere.
type headInProto struct {
	Metadata objects.Head `json:"metadata"`
}

// more is what few queries hold of the metadata.
type more struct {
	Metadata objects.More `json:"metadata"`
}

// newProjecting makes a decoder for a projection of a kind's objects.
func newProjecting(r objects.Resource, p objects.Projection, scheme *runtime.Scheme) *decoder {
	as := &projector{kind: &r.Kind, into: p.Into, beside: p.Beside, said: project.SaysKind(p.Into)}
	d := newDecoder(r, p.Into, true)
	d.as, d.proto = as, false
	typ, ok := TypeOf(scheme, r.Kind)
	if !ok || !newDecoder(r, typ, true).proto {
		return d
	}
	d.originals.typ = typ
	plan, err := project.For(p.Into, typ)
	if err != nil || !plan.Direct() {
		return d // JSON has it, whatever it is
	}
	heads, err := project.For(reflect.TypeFor[headInProto](), typ)
	if err != nil || !heads.Direct() {
		return d
	}
	if p.Beside.More() {
		if as.mores, err = project.For(reflect.TypeFor[more](), typ); err != nil || !as.mores.Direct() {
			return d
		}
	}
	as.plan, as.heads, d.proto = plan, heads, true
	return d
}

// Projects returns an error if a projection of a kind names fields that the kind has not, or gives
// them types that cannot hold what it has. Kinds whose Go type the scheme does not know have any.
func Projects(scheme *runtime.Scheme, kind schema.GroupVersionKind, p objects.Projection) error {
	typ, ok := TypeOf(scheme, kind)
	if !ok {
		return nil
	}
	_, err := project.For(p.Into, typ)
	return err
}

// item is that of [decoder], for an object of which some fields are held.
func (p *projector) item(d *decoder, raw []byte, e frames.Encoding) (_ objects.Object, silent bool, _ error) {
	var h head
	value := reflect.New(p.into)
	var err error
	if e == frames.Protobuf {
		err = guard.Call(func() error { return p.fromProto(raw, &h, value.Interface()) })
	} else {
		err = p.fromJSON(raw, &h, value.Interface())
	}
	if errors.Is(err, errDamaged) {
		return nil, false, damaged(d.resource, raw, e, err)
	}
	kind := h.GroupVersionKind()
	silent = kind.Empty()
	if !silent && kind != d.resource.Kind {
		return nil, false, &kindError{what: anObject, got: kind, want: d.resource.Kind}
	}
	if err != nil || h.Metadata.Name == "" {
		o, err := undecoded(d.resource, raw, e, d, d.originals, cmp.Or(err, errNoMetadata))
		return o, false, err
	}
	return p.object(h.Metadata, value.Interface()), silent, nil
}

func (p *projector) object(h objects.Head, value any) objects.Object {
	return objects.NewProjected(p.kind, p.beside.Of(h), value)
}

func (p *projector) fromProto(raw []byte, h *head, value any) error {
	var in headInProto
	if err := p.heads.Protobuf(raw, &in); err != nil {
		return err
	}
	h.Metadata = in.Metadata
	if p.mores != nil {
		var in more
		if err := p.mores.Protobuf(raw, &in); err != nil {
			return err
		}
		h.Metadata.More = in.Metadata
	}
	return p.plan.Protobuf(raw, value, h.Metadata.Name, h.Metadata.Namespace, string(h.Metadata.UID), h.Metadata.Version)
}

// fromJSON decodes by the rules of encoding/json. What no server has stored is an error before
// that: a member that is there twice, or what is no JSON.
func (p *projector) fromJSON(raw []byte, h *head, value any) error {
	var scratch head
	if err := decodeInto(&scratch, raw, frames.JSON); err != nil {
		return err
	}
	err := decodeInto(reflect.New(p.into).Interface(), raw, frames.JSON)
	if errors.Is(err, errDamaged) {
		return err
	}
	*h = scratch
	if p.beside.More() {
		var in more
		if err := decodeInto(&in, raw, frames.JSON); err != nil {
			return err
		}
		h.Metadata.More = in.Metadata
	}
	if p.said && h.GroupVersionKind().Empty() {
		raw = sayKind(raw, *p.kind)
	}
	return guard.Call(func() error { return json.Unmarshal(raw, value) })
}

// sayKind adds its kind to the JSON of an object that does not say it: items of a list need not.
func sayKind(raw []byte, kind schema.GroupVersionKind) []byte {
	version, name := kind.ToAPIVersionAndKind()
	of, _ := json.Marshal(metav1.TypeMeta{APIVersion: version, Kind: name}) // strings always have a form
	rest := bytes.TrimLeft(raw, " \t\r\n")
	return append(append(of[:len(of)-1:len(of)-1], ','), rest[1:]...) // it has metadata
}

// own makes a projection of the answer to an own write.
func (p *projector) own(d *decoder, u *unstructured.Unstructured) (objects.Object, error) {
	value := reflect.New(p.into).Interface()
	var h head
	err := guard.Call(func() error {
		text, err := json.Marshal(u.Object)
		if err != nil {
			return err
		}
		if err := unmarshal(text, &h); err != nil {
			return err
		}
		if p.beside.More() {
			var in more
			if err := unmarshal(text, &in); err != nil {
				return err
			}
			h.Metadata.More = in.Metadata
		}
		return json.Unmarshal(text, value)
	})
	if err != nil {
		return nil, d.notDecoded(objects.KeyOf(u), err)
	}
	return p.object(h.Metadata, value), nil
}

// compact is that of [decoder].
func (p *projector) compact(d *decoder, o, before objects.Object, final bool) {
	now, ok := o.(*objects.Projected)
	if !ok {
		return
	}
	was, _ := before.(*objects.Projected)
	now.Share(was, func(v, before any) { d.strings.Object(v, before, final) })
}
