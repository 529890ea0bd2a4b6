package wire

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

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/guard"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/wire/frames"
	"github.com/kates-go/kates/internal/wire/intern"
	"github.com/kates-go/kates/snapshot"
)

// decoder makes objects of one kind in its Go type. It sets their apiVersion and kind, which
// protobuf and the items of most lists lack, before they are published. It is safe for concurrent
// use.
type decoder struct {
	resource stream.Resource
	typ      reflect.Type // a struct
	keep     bool         // managedFields stay
	strings  *intern.Table
}

func newDecoder(r stream.Resource, typ reflect.Type, keep bool) *decoder {
	return &decoder{resource: r, typ: typ, keep: keep, strings: new(intern.Table)}
}

// protobuf has the methods of generated Go types that decode from protobuf.
type protobuf interface {
	Reset()
	Unmarshal([]byte) error
}

// hasProtobuf reports whether the type can be decoded from protobuf.
func (d *decoder) hasProtobuf() bool {
	return reflect.PointerTo(d.typ).Implements(reflect.TypeFor[protobuf]())
}

// decode decodes an object, and may write to its bytes. For an object that does not decode it
// returns an [stream.Undecoded], or an error if not even the name can be read, or if the kind is
// another one.
func (d *decoder) decode(raw []byte, e frames.Encoding) (stream.Object, error) {
	if !d.keep {
		raw = frames.DropManagedFields(raw, e)
	}
	p := reflect.New(d.typ).Interface()
	err := decodeInto(p, raw, e)
	if o, ok := p.(stream.Object); err == nil && ok && o.GetName() != "" {
		if err := ofKind(d.resource, o.GetObjectKind().GroupVersionKind()); err != nil {
			return nil, err
		}
		return d.finish(o), nil
	}
	id := frames.IdentityOf(raw, e)
	if id.Name == "" {
		return nil, fmt.Errorf("an object of kind %s without a name", d.resource.Kind.Kind)
	}
	if err == nil {
		err = errors.New("its metadata does not decode")
	}
	key := stream.Key{Namespace: id.Namespace, Name: id.Name}
	err = d.notDecoded(key, err)
	return stream.Undecoded(d.resource, key, types.UID(id.UID), id.Version, d.metadata(raw, e), err), nil
}

// metadata decodes the metadata of an object of which the rest does not decode; nil if that does
// not, either.
func (d *decoder) metadata(raw []byte, e frames.Encoding) *metav1.PartialObjectMetadata {
	var o metav1.PartialObjectMetadata
	if decodeInto(&o, raw, e) != nil || o.Name == "" {
		return nil
	}
	d.finish(&o)
	return &o
}

// Typed makes a typed object of the answer to an own write.
func (d *decoder) Typed(u *unstructured.Unstructured) (stream.Object, error) {
	p := reflect.New(d.typ).Interface()
	err := guard.Call(func() error {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p)
	})
	if err != nil { // JSON decides: it names the field that is wrong, and accepts more
		p = reflect.New(d.typ).Interface()
		var raw []byte
		if raw, err = u.MarshalJSON(); err == nil {
			err = decodeInto(p, raw, frames.JSON)
		}
	}
	if err != nil {
		return nil, d.notDecoded(objects.KeyOf(u), err)
	}
	return d.finish(p.(stream.Object)), nil
}

// finish prepares an object for being published.
func (d *decoder) finish(o stream.Object) stream.Object {
	o.GetObjectKind().SetGroupVersionKind(d.resource.Kind)
	if !d.keep {
		o.SetManagedFields(nil)
	}
	return o
}

// Compact lets an object share memory with its previous version, and with other objects of its
// kind.
func (d *decoder) Compact(o, before stream.Object, final bool) {
	if p := d.pointer(o); p != nil {
		d.strings.Object(p, d.pointer(before), d.typ, final)
	}
}

// pointer is the address of an object of the decoder's type, nil for other objects.
func (d *decoder) pointer(o stream.Object) unsafe.Pointer {
	if p := reflect.ValueOf(o); o != nil && p.Type() == reflect.PointerTo(d.typ) {
		return p.UnsafePointer()
	}
	return nil
}

func (d *decoder) notDecoded(key stream.Key, err error) error {
	return snapshot.NotDecoded(d.resource.Kind.Kind, key, reflect.PointerTo(d.typ), err)
}

// decodeInto decodes by apimachinery's rules. It may run code of the user's types.
func decodeInto(p any, raw []byte, e frames.Encoding) error {
	return guard.Call(func() error {
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
