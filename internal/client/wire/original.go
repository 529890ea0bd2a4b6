package wire

import (
	"bytes"
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/engine/source"
	objects "github.com/kates-go/kates/internal/object"
)

// originals makes the originals of a resource's objects.
type originals struct {
	kind   schema.GroupVersionKind
	typ    reflect.Type // decodes them from protobuf; nil: nothing does
	wanted bool         // for each object, and not only for those that do not decode
}

// of is the original in an object's bytes, none if they do not decode. It keeps the bytes.
func (w originals) of(raw []byte, e frames.Encoding) objects.Original {
	decode := w.fromJSON
	if e == frames.Protobuf {
		decode = w.fromProto
	}
	return objects.OriginalIn(string(e), raw, decode)
}

func (w originals) fromJSON(raw []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	err := decodeInto(&u.Object, raw, frames.JSON)
	return w.named(u), err
}

func (w originals) fromProto(raw []byte) (*unstructured.Unstructured, error) {
	if w.typ == nil {
		return nil, errors.New("no Go type decodes it")
	}
	p := reflect.New(w.typ).Interface()
	if err := decodeInto(p, raw, frames.Protobuf); err != nil {
		return nil, err
	}
	var content map[string]any
	err := guard.Call(func() (err error) {
		content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(p)
		return err
	})
	return w.named(&unstructured.Unstructured{Object: content}), err
}

// named gives an object its kind. Items of lists need not say it, and metadata alone says another.
func (w originals) named(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u.Object != nil {
		u.SetGroupVersionKind(w.kind)
	}
	return u
}

// ofItem adds their originals to the objects that a decode makes.
func (w originals) ofItem(d decode) decode {
	if !w.wanted {
		return d
	}
	return func(raw []byte, e frames.Encoding) (objects.Object, bool, error) {
		original := w.of(bytes.Clone(raw), e) // the decode may write to the bytes
		o, silent, err := d(raw, e)
		if err == nil && objects.Fault(o) == nil {
			o = &objects.Received{Object: o, Original: original}
		}
		return o, silent, err
	}
}

// ofEvent adds their originals to the objects of events.
func (w originals) ofEvent(d objectDecoder) objectDecoder {
	if !w.wanted {
		return d
	}
	return func(e frames.Event) (runtime.Object, error) {
		original := w.of(bytes.Clone(e.Object), e.Encoding)
		item, err := d(e)
		if o, ok := item.(objects.Object); ok && err == nil && objects.Fault(o) == nil {
			item = &objects.Received{Object: o, Original: original}
		}
		return item, err
	}
}

// receiving returns the source with originals for each object.
func (s *restSource) receiving() *restSource {
	one := *s
	one.originals.wanted = true
	return &one
}

// Receiving implements [source.Receiver].
func (s *restSource) Receiving() source.Source { return s.receiving() }

// Receiving implements [source.Receiver].
func (s *metadataSource) Receiving() source.Source {
	return &metadataSource{rest: s.rest.receiving(), whole: s.whole.receiving(), parts: s.parts}
}

// Receiving implements [source.Receiver].
func (s *typedSource) Receiving() source.Source {
	return &typedSource{rest: s.rest.receiving(), decoder: s.decoder, streamed: s.streamed}
}
