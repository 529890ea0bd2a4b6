package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/engine/warm/files"
	objects "github.com/kates-go/kates/internal/object"
)

// How objects are packed for a file ([stream.Packer]): as the server sends them, so that they are
// unpacked by what decodes lists. Go types that decode from protobuf are generated, and so is what
// encodes them. Any other form may lose something: what is packed as JSON is unpacked again, and
// compared.

// errChanges is an object that its own JSON does not give back. The text quotes nothing of it.
var errChanges = errors.New("an object would not be the same after it was read from its own JSON")

// Pack implements [stream.Packer].
func (s *restSource) Pack(o objects.Object) ([]byte, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("a %T among untyped objects", o)
	}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return nil, errChanges
	}
	var again unstructured.Unstructured
	if utiljson.Unmarshal(raw, &again.Object) != nil || !objects.SameContent(u, &again) {
		return nil, errChanges
	}
	return raw, nil
}

// Unpack implements [stream.Packer].
func (s *restSource) Unpack(raw []byte) (objects.Object, error) {
	o, _, err := s.decode(raw, frames.JSON)
	return o, err
}

// Packing implements [stream.Packer].
func (s *restSource) Packing() string { return "untyped" }

// Pack implements [stream.Packer].
func (s *metadataSource) Pack(o objects.Object) ([]byte, error) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("a %T among the metadata of objects", o)
	}
	return m.Marshal()
}

// Unpack implements [stream.Packer].
func (s *metadataSource) Unpack(raw []byte) (objects.Object, error) {
	o, _, err := s.decode(raw, frames.Protobuf)
	return o, err
}

// Packing implements [stream.Packer].
func (s *metadataSource) Packing() string { return "metadata" }

// packs has the method of generated Go types that encodes to protobuf.
type packs interface {
	protobuf
	Marshal() ([]byte, error)
}

// inProto reports whether objects are packed as protobuf.
func (d *decoder) inProto() bool {
	return d.as == nil && d.proto && reflect.PointerTo(d.typ).Implements(reflect.TypeFor[packs]())
}

// Pack implements [stream.Packer].
func (s *typedSource) Pack(o objects.Object) ([]byte, error) {
	if s.as != nil {
		return s.as.pack(s.decoder, o)
	}
	if !s.isOfType(o) {
		return nil, fmt.Errorf("a %T among objects of type %s", o, s.typ)
	}
	if s.inProto() {
		return o.(packs).Marshal()
	}
	return packJSON(s.decoder, o, func() ([]byte, error) { return json.Marshal(o) })
}

// packJSON packs an object as JSON, by code that may be the user's.
func packJSON(d *decoder, o objects.Object, encode func() ([]byte, error)) (raw []byte, err error) {
	if guard.Call(func() (err error) { raw, err = encode(); return err }) != nil {
		return nil, errChanges
	}
	again, err := d.unpack(append([]byte(nil), raw...))
	if err != nil || objects.Fault(again) != nil || !objects.SameContent(o, again) {
		return nil, errChanges
	}
	return raw, nil
}

// Unpack implements [stream.Packer].
func (s *typedSource) Unpack(raw []byte) (objects.Object, error) { return s.unpack(raw) }

func (d *decoder) unpack(raw []byte) (objects.Object, error) {
	switch {
	case d.as != nil:
		return d.as.unpack(raw)
	case d.inProto():
		return d.decode(raw, frames.Protobuf)
	}
	return d.decode(raw, frames.JSON)
}

// Packing implements [stream.Packer].
func (s *typedSource) Packing() string {
	how := "json"
	switch {
	case s.as != nil:
		how = fmt.Sprintf("fields and %+v", s.as.beside)
	case s.inProto():
		how = "protobuf"
	}
	return fmt.Sprintf("%s of %s, managed fields %t", how, files.TypeOf(s.typ), s.keep)
}

// packed is the packed form of an object of which some fields are held.
type packed struct {
	Head  objects.Head    `json:"head"`
	More  objects.More    `json:"more"`
	Value json.RawMessage `json:"value"`
}

func (p *projector) pack(d *decoder, o objects.Object) ([]byte, error) {
	of, ok := o.(*objects.Projected)
	if !ok {
		return nil, fmt.Errorf("a %T among objects that are held in part", o)
	}
	return packJSON(d, o, func() ([]byte, error) {
		value, err := json.Marshal(of.Value())
		if err != nil {
			return nil, err
		}
		head := of.Head()
		return json.Marshal(packed{head, head.More, value})
	})
}

func (p *projector) unpack(raw []byte) (objects.Object, error) {
	var in packed
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, errChanges
	}
	value := reflect.New(p.into).Interface()
	if guard.Call(func() error { return json.Unmarshal(in.Value, value) }) != nil {
		return nil, errChanges
	}
	in.Head.More = in.More
	return p.object(in.Head, value), nil
}
