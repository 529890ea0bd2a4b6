package kates

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kates-go/kates/accumulator"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/wire/frames"
	"github.com/kates-go/kates/internal/wire/intern"
	"github.com/kates-go/kates/snapshot"
)

// decoder makes objects of one kind, of its Go type. They have their apiVersion and kind, which neither protobuf nor the items of
// most lists have, before anybody sees them. It is safe for concurrent use.
type decoder struct {
	resource accumulator.Resource
	typ      reflect.Type // a struct
	keep     bool         // managedFields
	strings  *intern.Table
}

func newDecoder(r accumulator.Resource, typ reflect.Type, keep bool) *decoder {
	return &decoder{resource: r, typ: typ, keep: keep, strings: new(intern.Table)}
}

// protobuf is what generated Go types have that can be decoded from it.
type protobuf interface {
	Reset()
	Unmarshal([]byte) error
}

// hasProtobuf reports whether the type can be decoded from protobuf.
func (d *decoder) hasProtobuf() bool {
	return reflect.PointerTo(d.typ).Implements(reflect.TypeFor[protobuf]())
}

// decode decodes an object from the wire, whose bytes it may write to. One that does not decode is what
// [accumulator.Undecoded] makes of it. It is an error where not even its name can be read.
func (d *decoder) decode(raw []byte, e frames.Encoding) (accumulator.Object, error) {
	if !d.keep {
		raw = frames.DropManagedFields(raw, e)
	}
	p := reflect.New(d.typ).Interface()
	err := decodeInto(p, raw, e)
	if o, ok := p.(accumulator.Object); err == nil && ok && o.GetName() != "" {
		return d.finish(o), nil
	}
	id := frames.IdentityOf(raw, e)
	if id.Name == "" {
		return nil, fmt.Errorf("an object of kind %s without a name", d.resource.Kind.Kind)
	}
	if err == nil {
		err = errors.New("its metadata does not decode")
	}
	key := accumulator.Key{Namespace: id.Namespace, Name: id.Name}
	return accumulator.Undecoded(d.resource, key, types.UID(id.UID), id.Version, d.notDecoded(key, err)), nil
}

// Typed makes a typed object of the answer to an own write.
func (d *decoder) Typed(u *unstructured.Unstructured) (accumulator.Object, error) {
	p := reflect.New(d.typ).Interface()
	err := guarded(func() error { return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p) })
	if err != nil { // it does not say which field is wrong, and cannot take all that JSON can: JSON counts
		p = reflect.New(d.typ).Interface()
		var raw []byte
		if raw, err = u.MarshalJSON(); err == nil {
			err = decodeInto(p, raw, frames.JSON)
		}
	}
	if err != nil {
		return nil, d.notDecoded(objects.KeyOf(u), err)
	}
	return d.finish(p.(accumulator.Object)), nil
}

// finish makes an object what is published.
func (d *decoder) finish(o accumulator.Object) accumulator.Object {
	o.GetObjectKind().SetGroupVersionKind(d.resource.Kind)
	if !d.keep {
		o.SetManagedFields(nil)
	}
	return o
}

// Compact lets an object share with its version before, and with others of its kind, what they have in common.
func (d *decoder) Compact(o, before accumulator.Object, final bool) {
	if p := d.pointer(o); p != nil {
		d.strings.Object(p, d.pointer(before), d.typ, final)
	}
}

// pointer points to an object of the decoder's type. It is nil for all else.
func (d *decoder) pointer(o accumulator.Object) unsafe.Pointer {
	if p := reflect.ValueOf(o); o != nil && p.Type() == reflect.PointerTo(d.typ) {
		return p.UnsafePointer()
	}
	return nil
}

func (d *decoder) notDecoded(key accumulator.Key, err error) error {
	return snapshot.NotDecoded(d.resource.Kind.Kind, key, reflect.PointerTo(d.typ), err)
}

// position decodes what a bookmark says: versions and annotations. The rest of its object is empty, and
// need not be one that the kind's type takes.
func position(raw []byte, e frames.Encoding) (runtime.Object, error) {
	var o metav1.PartialObjectMetadata
	return &o, decodeInto(&o, raw, e)
}

// decodeInto decodes by apimachinery's rules. What it runs may be the user's.
func decodeInto(p any, raw []byte, e frames.Encoding) error {
	return guarded(func() error {
		if e == frames.JSON {
			return utiljson.Unmarshal(raw, p)
		}
		m, ok := p.(protobuf)
		if !ok {
			return fmt.Errorf("%T does not decode from protobuf", p)
		}
		return m.Unmarshal(raw)
	})
}

// guarded makes a panic an error.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}
