//go:build !kates_safe

package parts

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// message says where the fields of a message stand in its Go type. A message without fields is
// left to the decoder of its type.
type message struct {
	typ    reflect.Type
	fields []field // by number
}

// field is one field of a message. The zero value is one that is left to the generated decoder.
type field struct {
	kind kind
	at   uintptr
	of   *message // what a nested message, or the target of a pointer, has
	salt uint64   // tells equal bytes of different fields apart
	each *element // of a list
}

// element is what the elements of a list have in common.
type element struct {
	field // kind other
	typ   reflect.Type
	size  uintptr
	// arrays are the types of arrays of so many elements. To make one takes one allocation, where
	// a slice made by reflection takes two.
	arrays [mostArrays + 1]atomic.Pointer[reflect.Type]
}

// array makes n elements.
func (e *element) array(n int) unsafe.Pointer {
	if n >= len(e.arrays) {
		return reflect.MakeSlice(reflect.SliceOf(e.typ), n, n).UnsafePointer()
	}
	typ := e.arrays[n].Load()
	if typ == nil {
		made := reflect.ArrayOf(n, e.typ)
		typ = &made
		e.arrays[n].Store(typ)
	}
	return reflect.New(*typ).UnsafePointer()
}

// kind is how a field is decoded.
type kind uint8

const (
	other     kind = iota
	name           // a string that no other object has
	text           // a string
	number32       // an int32
	number64       // an int64
	truth          // a bool
	pointer32      // pointers to such
	pointer64
	pointerTruth
	pointerText
	nested  // a message that stands in the struct
	pointer // a pointer to a message
	list    // of messages
	texts   // a list of strings
	labels  // a map of strings to strings
	amounts // another map
	dropped // managed fields
)

const (
	// mostFields is the highest number of a field.
	mostFields = 127
	// mostArrays is the length of the longest list that is made in one allocation.
	mostArrays = 8
)

// generated has the methods of generated types that decode from protobuf.
type generated interface {
	Reset()
	Unmarshal([]byte) error
}

// planner makes the messages of a type and of all types in it.
type planner struct {
	made map[reflect.Type]*message
	drop bool
	salt uint64
}

type planKey struct {
	typ  reflect.Type
	drop bool
}

var plans sync.Map // planKey to *message

// planOf returns the message of a type. It is the same for all tables, and never changes.
func planOf(typ reflect.Type, drop bool) *message {
	key := planKey{typ, drop}
	if known, ok := plans.Load(key); ok {
		return known.(*message)
	}
	p := planner{made: make(map[reflect.Type]*message), drop: drop}
	known, _ := plans.LoadOrStore(key, p.message(typ))
	return known.(*message)
}

// message makes the message of a type.
func (p *planner) message(typ reflect.Type) *message {
	if made, ok := p.made[typ]; ok {
		return made
	}
	m := &message{typ: typ}
	p.made[typ] = m
	if !known(typ) {
		return m
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		wire, number := tagOf(f)
		if number == 0 {
			continue // TypeMeta
		}
		for len(m.fields) <= number {
			m.fields = append(m.fields, field{})
		}
		p.salt++
		m.fields[number] = p.field(typ, f, wire)
	}
	return m
}

// known reports whether the decoder of a type is generated from its tags, and nothing else.
func known(typ reflect.Type) bool {
	path := typ.PkgPath()
	if typ.Kind() != reflect.Struct || !reflect.PointerTo(typ).Implements(reflect.TypeFor[generated]()) ||
		!strings.HasPrefix(path, "k8s.io/api/") && path != "k8s.io/apimachinery/pkg/apis/meta/v1" {
		return false
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Type == reflect.TypeFor[metav1.TypeMeta]() {
			continue
		}
		if _, number := tagOf(f); number == 0 || number > mostFields || !f.IsExported() {
			return false
		}
	}
	return true
}

// tagOf reads how a field is encoded, and its number; 0 if it has none.
func tagOf(f reflect.StructField) (wire string, number int) {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return "", 0
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil || number < 1 {
		return "", 0
	}
	return parts[0], number
}

// field says how a field of a struct is decoded.
func (p *planner) field(of reflect.Type, f reflect.StructField, wire string) field {
	to := field{at: f.Offset, salt: p.salt}
	metadata := of == reflect.TypeFor[metav1.ObjectMeta]()
	switch {
	case metadata && f.Name == "ManagedFields" && p.drop:
		to.kind = dropped
	case wire == "varint":
		to.kind = numbers[kindsOf(f.Type)]
	case wire != "bytes":
	case f.Type.Kind() == reflect.String && metadata && own[f.Name]:
		to.kind = name
	case f.Type.Kind() == reflect.String:
		to.kind = text
	case kindsOf(f.Type) == kinds{reflect.Pointer, reflect.String}:
		to.kind = pointerText
	case f.Type == reflect.TypeFor[map[string]string]():
		to.kind = labels
	case f.Type.Kind() == reflect.Map:
		to.kind = amounts
	case f.Type == reflect.TypeFor[[]string]():
		to.kind, to.each = texts, p.each(f.Type.Elem())
	case f.Type.Kind() == reflect.Struct && decodes(f.Type):
		to.kind, to.of = nested, p.message(f.Type)
	case f.Type.Kind() == reflect.Pointer && decodes(f.Type.Elem()):
		to.kind, to.of = pointer, p.message(f.Type.Elem())
	case f.Type.Kind() == reflect.Slice && decodes(f.Type.Elem()):
		to.kind, to.each = list, p.each(f.Type.Elem())
		to.each.of = p.message(f.Type.Elem())
	}
	return to
}

// each makes what the elements of a list have in common.
func (p *planner) each(typ reflect.Type) *element {
	p.salt++
	return &element{field: field{salt: p.salt}, typ: typ, size: typ.Size()}
}

// decodes reports whether a struct has a decoder of its own.
func decodes(typ reflect.Type) bool {
	return typ.Kind() == reflect.Struct && reflect.PointerTo(typ).Implements(reflect.TypeFor[generated]())
}

// kinds are the kind of a type and, for a pointer, that of what it points to.
type kinds struct{ outer, inner reflect.Kind }

func kindsOf(typ reflect.Type) kinds {
	if typ.Kind() == reflect.Pointer {
		return kinds{reflect.Pointer, typ.Elem().Kind()}
	}
	return kinds{outer: typ.Kind()}
}

// numbers are the fields that are decoded from numbers.
var numbers = map[kinds]kind{
	{outer: reflect.Int32}: number32, {reflect.Pointer, reflect.Int32}: pointer32,
	{outer: reflect.Int64}: number64, {reflect.Pointer, reflect.Int64}: pointer64,
	{outer: reflect.Bool}: truth, {reflect.Pointer, reflect.Bool}: pointerTruth,
}

// own lists the fields of metadata that are unique to an object.
var own = map[string]bool{"Name": true, "UID": true, "ResourceVersion": true}
