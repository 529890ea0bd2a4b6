package wire

import (
	"reflect"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/client/wire/parts"
	"github.com/kates-go/kates/internal/engine/source"
	objects "github.com/kates-go/kates/internal/object"
)

// Shared lets the source's objects share parts as they are decoded, if the type allows that.
func (s *typedSource) Shared() source.Source {
	if s.as != nil {
		return s // what is held of an object is small
	}
	if table := parts.New(s.typ, !s.keep); s.proto && table.Shares() {
		s.parts = table
	}
	return s
}

// shared decodes an object that shares parts with others. It is nil if it has to be decoded
// plainly: what is wrong with its bytes, if anything is, becomes known then. An object in protobuf
// does not say its kind.
func (d *decoder) shared(raw []byte, e frames.Encoding) objects.Object {
	if d.parts == nil || e != frames.Protobuf {
		return nil
	}
	p := reflect.New(d.typ).Interface()
	whole := false
	err := guard.Library(func() error {
		whole = d.parts.Decode(p, raw)
		return nil
	})
	o, ok := p.(objects.Object)
	if err != nil || !whole || !ok || o.GetName() == "" {
		return nil
	}
	return d.finish(o)
}

// intern lets an object that was decoded plainly share memory, where objects share parts: nobody
// else has it yet. Where they do not, Compact does that.
func (d *decoder) intern(o objects.Object) objects.Object {
	if d.parts != nil {
		d.strings.Object(o, nil, true)
	}
	return o
}
