package tables

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kates-go/kates/internal/base/asjson"
	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/object"
)

const secretKind = "Secret"

var (
	errNoUID    = errors.New("it has no UID, which is the key in its map")
	errWithheld = errors.New("it does not decode (details are withheld: they could quote the secret)")
)

// Convert turns an object into an element of the field.
//
// An object that already has the element's type is not copied: []*T shares the pointer, []T gets
// a shallow copy, and map[string]any is the content of the *unstructured.Unstructured itself.
// Everything else is decoded into fresh memory, with one exception: fields of type any in an API
// type (also as elements of maps and slices) may share content with an untyped source. In all
// cases source and value are read-only.
//
// API types are decoded by apimachinery's rules (field names are case-sensitive). Other structs,
// and types with their own UnmarshalJSON, are decoded by the rules of encoding/json. The error
// names kind, namespace and name, and never quotes the content of a Secret. Convert may run the
// user's UnmarshalJSON, so the caller holds no lock; a panic in it is returned as an error.
func (f *Form) Convert(src Object) (v Value, err error) {
	err = guard.Call(func() (err error) {
		v, err = f.convert(src)
		return err
	})
	if err != nil {
		return nil, NotDecoded(kindOf(src), object.KeyOf(src), f.elem, err)
	}
	return v, nil
}

// NotDecoded is the error of an object that does not decode into a Go type. It names both, and
// never quotes the content of a Secret.
func NotDecoded(kind string, key Key, want reflect.Type, err error) error {
	base := want
	if base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	if kind == secretKind || base.Name() == secretKind {
		err = withoutContent(err)
	}
	name := key.Name
	if key.Namespace != "" {
		name = key.String()
	}
	return fmt.Errorf("convert %s %q to %s: %w", kind, name, object.TypeName(want), err)
}

func (f *Form) convert(src Object) (Value, error) {
	if f.keying == byUID && src.GetUID() == "" {
		return nil, errNoUID
	}
	if reflect.TypeOf(src) == reflect.PointerTo(f.base) {
		return f.element(reflect.ValueOf(src)), nil
	}
	if p, ok := src.(*object.Projected); ok {
		return f.projected(p)
	}
	if f.decoding == asAPIType || f.decoding == asJSON {
		p, err := f.decode(src)
		if err != nil {
			return nil, err
		}
		return f.element(p), nil
	}
	m, err := contentOf(src)
	switch {
	case err != nil:
		return nil, err
	case f.decoding == asUnstructured:
		return f.element(reflect.ValueOf(&unstructured.Unstructured{Object: m})), nil
	case f.elem == contentType, f.elem == anyType:
		return m, nil
	}
	p := reflect.New(f.base)
	p.Elem().Set(reflect.ValueOf(m).Convert(f.base))
	return f.element(p), nil
}

// element turns a pointer to the base type into the field's element.
func (f *Form) element(p reflect.Value) Value {
	if f.byPointer() {
		return p.Interface()
	}
	return p.Elem().Interface()
}

// decode decodes the object into a fresh value of the base type and returns a pointer to it.
func (f *Form) decode(src Object) (reflect.Value, error) {
	u, ok := src.(*unstructured.Unstructured)
	if ok && f.decoding == asAPIType {
		p := reflect.New(f.base)
		return p, asjson.Decode(u.Object, p.Interface())
	}
	data, err := encode(src)
	if err != nil {
		return reflect.Value{}, err
	}
	p := reflect.New(f.base)
	if f.decoding == asAPIType {
		return p, utiljson.Unmarshal(data, p.Interface())
	}
	return p, json.Unmarshal(data, p.Interface())
}

// contentOf returns the object as generic JSON. The content of an untyped object is shared, not
// copied.
func contentOf(src Object) (map[string]any, error) {
	if u, ok := src.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	data, err := json.Marshal(src)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	err = utiljson.Unmarshal(data, &m)
	return m, err
}

func encode(src Object) ([]byte, error) {
	if u, ok := src.(*unstructured.Unstructured); ok {
		return json.Marshal(u.Object) // u.MarshalJSON refuses objects without a kind
	}
	return json.Marshal(src)
}

// kindOf names the object's kind for messages. Objects from typed clients often have none.
func kindOf(src Object) string {
	if kind := src.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	if _, ok := src.(*unstructured.Unstructured); ok {
		return "object"
	}
	return reflect.Indirect(reflect.ValueOf(src)).Type().Name()
}

// withoutContent reduces an error about a Secret to the place and the expected type, so that it
// quotes no content.
func withoutContent(err error) error {
	if errors.Is(err, errNoUID) {
		return err
	}
	if mismatch := (*json.UnmarshalTypeError)(nil); errors.As(err, &mismatch) {
		return fmt.Errorf("field %q: want %v", mismatch.Field, mismatch.Type)
	}
	return errWithheld
}
