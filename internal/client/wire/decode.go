package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/kates-go/kates/internal/base/asjson"
	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/client/wire/intern"
	"github.com/kates-go/kates/internal/client/wire/parts"
	"github.com/kates-go/kates/internal/engine/tables"
	objects "github.com/kates-go/kates/internal/object"
)

// decoder makes objects of one kind in its Go type. It sets their apiVersion and kind, which
// protobuf and the items of most lists lack, before they are published. It is safe for concurrent
// use.
type decoder struct {
	resource  objects.Resource
	typ       reflect.Type // a struct
	originals originals
	keep      bool  // managedFields stay
	proto     bool  // protobuf is taken, too
	only      *only // the fields that are decoded; nil: all
	strings   *intern.Table
	as        *projector // some fields are wanted; nil: all
	applied   *Applied   // takes what the dropped managedFields say; may be nil
	// parts decodes protobuf where nobody writes to the objects: they share memory as soon as they
	// are decoded. Nil where somebody may.
	parts *parts.Table
}

func newDecoder(r objects.Resource, typ reflect.Type, keep bool) *decoder {
	d := &decoder{resource: r, typ: typ, originals: originals{kind: r.Kind, typ: typ}, keep: keep, strings: new(intern.Table)}
	d.proto = reflect.PointerTo(typ).Implements(reflect.TypeFor[protobuf]()) && !nests(typ)
	return d
}

// protobuf has the methods of generated Go types that decode from protobuf.
type protobuf interface {
	Reset()
	Unmarshal([]byte) error
}

// decode decodes an object, and may write to its bytes. For an object that does not decode it
// returns an [object.Undecoded]. It is an error if not even the name can be read, if the kind is
// another one, and if the bytes are no JSON: no server has stored such an object.
func (d *decoder) decode(raw []byte, e frames.Encoding) (objects.Object, error) {
	o, _, err := d.item(raw, e)
	return o, err
}

// item is decode that tells whether the object says its kind.
func (d *decoder) item(raw []byte, e frames.Encoding) (_ objects.Object, silent bool, _ error) {
	if e == frames.Protobuf && !d.proto {
		return nil, false, fmt.Errorf("a %s in %s: nobody asked for that", d.resource.Kind.Kind, e)
	}
	if d.as != nil {
		return d.as.item(d, raw, e)
	}
	fields := d.applied.fields(raw, e)
	o, silent, err := d.whole(raw, e)
	if err == nil {
		d.applied.put(o, fields)
	}
	return o, silent, err
}

// whole is item for an object of the decoder's type.
func (d *decoder) whole(raw []byte, e frames.Encoding) (_ objects.Object, silent bool, _ error) {
	kept, err := d.only.of(raw, e)
	p := reflect.New(d.typ).Interface()
	if err == nil {
		if o := d.shared(kept, e); o != nil {
			return o, true, nil
		}
		if !d.keep {
			kept = frames.DropManagedFields(kept, e)
		}
		err = decodeInto(p, kept, e)
	}
	if errors.Is(err, errDamaged) {
		return nil, false, damaged(d.resource, raw, e, err)
	}
	if o, ok := p.(objects.Object); err == nil && ok && o.GetName() != "" {
		silent = o.GetObjectKind().GroupVersionKind().Empty()
		if err := isOf(o, d.resource.Kind); !silent && err != nil {
			return nil, false, err
		}
		return d.intern(d.finish(o)), silent, nil
	}
	if !d.keep && e == frames.Protobuf && d.only == nil {
		raw = kept // what was dropped, was dropped from these bytes
	}
	o, err := undecoded(d.resource, raw, e, d, d.originals, cmp.Or(err, errNoMetadata))
	return o, false, err
}

// isOf is an error for an object of another kind.
func isOf(o runtime.Object, kind schema.GroupVersionKind) error {
	if got := o.GetObjectKind().GroupVersionKind(); got != kind {
		return &kindError{what: anObject, got: got, want: kind}
	}
	return nil
}

// errDamaged is an object that no server has stored: it was damaged on its way, or it is a lie.
var errDamaged = errors.New("it is damaged")

// damaged is the error of such an object, with its name as far as that can be read.
func damaged(r objects.Resource, raw []byte, e frames.Encoding, err error) error {
	id := frames.IdentityOf(raw, e)
	if r.Kind.Kind == "Secret" {
		err = fmt.Errorf("%w (details are withheld: they could quote the secret)", errDamaged)
	}
	return fmt.Errorf("the %s %q: %w", r.Kind.Kind, objects.Key{Namespace: id.Namespace, Name: id.Name}, err)
}

var errNoMetadata = errors.New("its metadata does not decode")

// undecoded stands for an object that does not decode. The decoder reads its metadata, if there is
// one. The object is kept whole, if its bytes decode otherwise. An object without a name is an
// error.
func undecoded(
	r objects.Resource, raw []byte, e frames.Encoding, d *decoder, w originals, err error,
) (objects.Object, error) {
	id := frames.IdentityOf(raw, e)
	if id.Name == "" {
		return nil, fmt.Errorf("an object of kind %s without a name", r.Kind.Kind)
	}
	key := objects.Key{Namespace: id.Namespace, Name: id.Name}
	into := reflect.TypeFor[*unstructured.Unstructured]()
	var metadata *metav1.PartialObjectMetadata
	if d != nil {
		into, metadata = reflect.PointerTo(d.typ), d.metadata(raw, e)
	}
	err = tables.NotDecoded(r.Kind.Kind, key, into, err)
	original := w.of(bytes.Clone(raw), e)
	if original.Object() == nil {
		original = objects.Original{}
	}
	return objects.Undecoded(r, key, types.UID(id.UID), id.Version, metadata, original, err), nil
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
func (d *decoder) Typed(u *unstructured.Unstructured) (objects.Object, error) {
	if d.as != nil {
		return d.as.own(d, u)
	}
	p := reflect.New(d.typ).Interface()
	if err := guard.Call(func() error { return asjson.Decode(u.Object, p) }); err != nil {
		return nil, d.notDecoded(objects.KeyOf(u), err)
	}
	return d.intern(d.finish(p.(objects.Object))), nil
}

// finish prepares an object for being published.
func (d *decoder) finish(o objects.Object) objects.Object {
	o.GetObjectKind().SetGroupVersionKind(d.resource.Kind)
	if !d.keep {
		o.SetManagedFields(nil)
	}
	return o
}

// Compact lets an object share memory with its previous version, and with other objects of its
// kind. If the objects share parts, they do so already, and nobody may write to them.
func (d *decoder) Compact(o, before objects.Object, final bool) {
	if d.as != nil {
		d.as.compact(d, o, before, final)
		return
	}
	if d.parts != nil || !d.isOfType(o) {
		return
	}
	if !d.isOfType(before) {
		before = nil
	}
	d.strings.Object(o, before, final)
}

// isOfType reports whether an object is of the decoder's type.
func (d *decoder) isOfType(o objects.Object) bool {
	return reflect.TypeOf(o) == reflect.PointerTo(d.typ)
}

func (d *decoder) notDecoded(key objects.Key, err error) error {
	return tables.NotDecoded(d.resource.Kind.Kind, key, reflect.PointerTo(d.typ), err)
}

// decodeInto decodes by apimachinery's rules. It may run code of the user's types. JSON that no
// server sends is errDamaged: it breaks the syntax, is nested too deeply, has a key twice or is no
// valid UTF-8.
func decodeInto(p any, raw []byte, e frames.Encoding) error {
	return guard.Call(func() error {
		if e == frames.JSON {
			return unmarshal(raw, p)
		}
		m, ok := p.(protobuf)
		if !ok {
			return fmt.Errorf("%T does not decode from protobuf", p)
		}
		return m.Unmarshal(raw)
	})
}

func unmarshal(raw []byte, p any) error {
	if !utf8.Valid(raw) {
		return fmt.Errorf("%w: it is no valid UTF-8", errDamaged)
	}
	twice, err := kjson.UnmarshalStrict(raw, p, kjson.DisallowDuplicateFields)
	switch {
	case err != nil && !json.Valid(raw): // the error may be of a user's type
		return fmt.Errorf("%w: %w", errDamaged, err)
	case err == nil && len(twice) > 0:
		return fmt.Errorf("%w: %w", errDamaged, twice[0])
	}
	return err
}

// nests reports whether objects of a type may be nested within each other, to any depth. JSON has
// a bound for that. Generated decoders of protobuf have none, and a few megabytes are enough to
// end the process.
func nests(t reflect.Type) bool { return nestsIn(t, make(map[reflect.Type]bool)) }

// nestsIn looks for a type within itself. A type that is false was looked through.
func nestsIn(t reflect.Type, under map[reflect.Type]bool) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return nestsIn(t.Elem(), under)
	case reflect.Struct:
	default:
		return false
	}
	if is, met := under[t]; met {
		return is
	}
	under[t] = true
	for i := range t.NumField() {
		if nestsIn(t.Field(i).Type, under) {
			return true
		}
	}
	under[t] = false
	return false
}
