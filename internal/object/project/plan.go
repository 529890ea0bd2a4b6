package project

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// Plan decodes the objects of one kind into values of one struct type. It is safe for concurrent
// use.
type Plan struct {
	target, source reflect.Type
	root           *message // nil: objects are decoded as a whole, and then converted
}

// Compile makes a plan for a struct type and the Go type of a kind, which decodes from protobuf.
// It is an error if the struct has a field that the kind has not, or one that cannot hold what the
// kind's field has. The error names the field by its path in JSON.
func Compile(target, source reflect.Type) (*Plan, error) {
	if target.Kind() != reflect.Struct || source.Kind() != reflect.Struct {
		return nil, fmt.Errorf("a projection of %s to %s: both have to be structs", source, target)
	}
	if err := (checker{source, map[[2]reflect.Type]bool{}}).check(target, source, ""); err != nil {
		return nil, fmt.Errorf("the type %s: %w", target, err)
	}
	p := &Plan{target: target, source: source}
	if c := (compiler{done: map[[2]reflect.Type]*message{}}); !speaks(target) {
		if root := c.message(target, source); !c.whole {
			p.root = root
		}
	}
	return p, nil
}

// compiled has the plans that were made, by their types.
var compiled sync.Map

// outcome is what was made of a pair of types.
type outcome struct {
	plan *Plan
	err  error
}

// For is [Compile] that makes the plan of a pair of types once.
func For(target, source reflect.Type) (*Plan, error) {
	pair := [2]reflect.Type{target, source}
	if done, ok := compiled.Load(pair); ok {
		return done.(outcome).plan, done.(outcome).err
	}
	plan, err := Compile(target, source)
	compiled.Store(pair, outcome{plan, err})
	return plan, err
}

// Direct reports whether the plan skips what is not wanted. Otherwise it decodes each object as a
// whole first: the struct has a field that only encoding/json can fill.
func (p *Plan) Direct() bool { return p.root != nil }

// protobuf has the methods of generated Go types that decode from protobuf.
type protobuf interface {
	Unmarshal([]byte) error
}

// Protobuf decodes an object into a zero value of the struct type, which into points to. A text
// that equals a known one is that one, and takes no memory of its own.
func (p *Plan) Protobuf(raw []byte, into any, known ...string) error {
	v := reflect.ValueOf(into)
	if v.Type() != reflect.PointerTo(p.target) {
		return fmt.Errorf("a plan for %s decodes into no %T", p.target, into)
	}
	if p.root != nil {
		return p.root.decode(raw, v.UnsafePointer(), 0, known)
	}
	whole := reflect.New(p.source).Interface()
	m, ok := whole.(protobuf)
	if !ok {
		return fmt.Errorf("%s does not decode from protobuf", p.source)
	}
	if err := m.Unmarshal(raw); err != nil {
		return err
	}
	return throughJSON(whole, into)
}

// throughJSON gives to what from looks like in JSON.
func throughJSON(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// message decodes a message into a struct. What it has no action for is skipped.
type message struct {
	actions map[protowire.Number]*action
	lists   []protowire.Number // whose lengths are counted first
	present []*action          // pointers that JSON always has a value for
}

// action decodes a field of a message.
type action struct {
	offset uintptr
	path   string
	list   reflect.Type // of the slice; nil if the field is none
	zero   reflect.Type // what a pointer points to that JSON always has a value for
	inline *message     // the fields of the message are those of the struct itself
	take   taker
}

// value is a field's value as it is on the wire: bytes, or a number.
type value struct {
	bytes  []byte
	number uint64
	kind   protowire.Type
	known  []string // texts that the object may have, too
}

// taker decodes a value to a place.
type taker func(v value, to unsafe.Pointer, depth int) error

// deepest is how deep messages may be nested: JSON has such a bound, too.
const deepest = 1000

var (
	errDeep = errors.New("it is nested too deeply")
	errWire = errors.New("it has another form on the wire")
)

// decode decodes a message into the struct at a place, whose fields are zero.
func (m *message) decode(raw []byte, to unsafe.Pointer, depth int, known []string) error {
	if depth > deepest {
		return errDeep
	}
	if len(m.lists) > 0 {
		if err := m.count(raw, to); err != nil {
			return err
		}
	}
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return protowire.ParseError(n)
		}
		raw = raw[n:]
		v := value{kind: kind, known: known}
		switch kind {
		case protowire.VarintType:
			v.number, n = protowire.ConsumeVarint(raw)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(raw)
		default:
			n = protowire.ConsumeFieldValue(number, kind, raw)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		raw = raw[n:]
		a := m.actions[number]
		if a == nil {
			continue
		}
		if err := a.do(v, to, depth); err != nil {
			return fmt.Errorf("%s: %w", a.path, err)
		}
	}
	for _, a := range m.present {
		if p := (*unsafe.Pointer)(unsafe.Add(to, a.offset)); *p == nil {
			*p = reflect.New(a.zero).UnsafePointer()
		}
	}
	return nil
}

func (a *action) do(v value, to unsafe.Pointer, depth int) error {
	if a.inline != nil {
		if v.kind != protowire.BytesType {
			return errWire
		}
		return a.inline.decode(v.bytes, to, depth+1, v.known)
	}
	at := unsafe.Add(to, a.offset)
	if a.list == nil {
		return a.take(v, at, depth+1)
	}
	list := reflect.NewAt(a.list, at).Elem()
	n := list.Len()
	list.Grow(1)
	list.SetLen(n + 1)
	return a.take(v, list.Index(n).Addr().UnsafePointer(), depth+1)
}

// count makes the slices as long as they will be: append would leave room in them.
func (m *message) count(raw []byte, to unsafe.Pointer) error {
	var counts [8]int
	for len(raw) > 0 {
		number, _, n := protowire.ConsumeField(raw)
		if n < 0 {
			return protowire.ParseError(n)
		}
		for i, list := range m.lists {
			if list == number {
				counts[min(i, len(counts)-1)]++
			}
		}
		raw = raw[n:]
	}
	for i, number := range m.lists[:min(len(m.lists), len(counts))] {
		if a := m.actions[number]; counts[i] > 0 {
			list := reflect.NewAt(a.list, unsafe.Add(to, a.offset)).Elem()
			list.Set(reflect.MakeSlice(a.list, 0, counts[i]))
		}
	}
	return nil
}
