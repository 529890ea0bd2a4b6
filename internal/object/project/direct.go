//go:build !kates_safe

package project

import (
	"fmt"
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// Unsafe: a decoder writes fields at their offsets, and makes no value for a field. With the build
// tag kates_safe there is no such decoder: objects are decoded as a whole (safe.go).

// direct makes a decoder that skips what a struct has no field for. It returns nil if the struct
// has a field that only a conversion of the whole object can fill.
func direct(target, source reflect.Type) func([]byte, reflect.Value, []string) error {
	c := compiler{done: map[[2]reflect.Type]*message{}}
	root := c.message(target, source)
	if c.whole {
		return nil
	}
	return func(raw []byte, into reflect.Value, known []string) error {
		return root.decode(raw, into.UnsafePointer(), 0, known)
	}
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
