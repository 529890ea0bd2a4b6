package wire

import (
	"fmt"
	"reflect"

	"github.com/kates-go/kates/internal/client/wire/frames"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/object/project"
)

// only takes what a form keeps of an object out of its bytes, before they are decoded. A nil one
// keeps everything.
type only struct {
	filter *project.Filter
	err    error // the kind has no such fields
}

// onlyOf returns what a form keeps of the objects of a type; of untyped ones, if the type is nil.
func onlyOf(form objects.Form, typ reflect.Type) *only {
	_, paths := form.Parts()
	if paths == "" {
		return nil
	}
	k, err := project.ParseKeep(paths)
	if err != nil {
		return &only{err: err}
	}
	if typ == nil {
		return &only{filter: k.Untyped()}
	}
	filter, err := k.For(typ)
	return &only{filter, err}
}

// of returns what is kept of an object, in memory of its own. JSON that cannot be read is
// errDamaged.
func (k *only) of(raw []byte, e frames.Encoding) ([]byte, error) {
	switch {
	case k == nil:
		return raw, nil
	case k.err != nil:
		return nil, k.err
	case e == frames.Protobuf:
		return k.filter.Protobuf(raw)
	}
	kept, err := k.filter.JSON(raw)
	if err != nil {
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return kept, err
}
