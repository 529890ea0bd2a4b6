//go:build !kates_safe

package project

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// compiler makes plans of types.
type compiler struct {
	done  map[[2]reflect.Type]*message
	whole bool // there is something that only a conversion of the whole object can fill
}

// message makes the decoder of a struct.
func (c *compiler) message(target, source reflect.Type) *message {
	pair := [2]reflect.Type{target, source}
	if m := c.done[pair]; m != nil {
		return m
	}
	m := &message{actions: map[protowire.Number]*action{}}
	c.done[pair] = m
	fields, ok := wanted(target)
	if !ok {
		c.whole = true
		return m
	}
	c.fields(m, fields, source)
	return m
}

// fields adds an action for each field of the source that is wanted.
func (c *compiler) fields(m *message, fields map[string]field, source reflect.Type) {
	for _, from := range fieldsOf(source) {
		to, isWanted := choose(fields, from.name)
		switch {
		case from.inline && from.number > 0:
			inner := &message{actions: map[protowire.Number]*action{}}
			if c.fields(inner, fields, bare(from.typ)); len(inner.actions) > 0 {
				m.actions[protowire.Number(from.number)] = &action{path: from.name, inline: inner}
				m.present = append(m.present, inner.present...)
				inner.present = nil
			}
		case from.inline: // apiVersion and kind, which stand elsewhere
			c.whole = c.whole || slices.ContainsFunc(flat(bare(from.typ), 0), func(f field) bool {
				_, is := choose(fields, f.name)
				return is
			})
		case !isWanted:
		case from.number == 0:
			c.whole = true
		default:
			c.field(m, to, from)
		}
	}
}

func (c *compiler) field(m *message, to, from field) {
	a := &action{offset: to.offset, path: to.name}
	number := protowire.Number(from.number)
	m.actions[number] = a
	if from.typ.Kind() == reflect.Slice && from.typ.Elem().Kind() != reflect.Uint8 && !speaks(from.typ) {
		if to.typ.Kind() != reflect.Slice || speaks(to.typ) {
			c.whole = true
			return
		}
		a.list, a.take = to.typ, c.value(to.typ.Elem(), from.typ.Elem())
		m.lists = append(m.lists, number)
		return
	}
	pointer := from.typ.Kind() == reflect.Pointer
	a.take = c.unlessOmitted(c.value(to.typ, from.typ), to.typ, from)
	if canBeNil(from.typ) && !from.omitEmpty && !from.omitZero && readsNull(to.typ) {
		c.whole = true // it is null in JSON, and not there on the wire
	}
	absent := pointer || from.omitZero || from.omitEmpty && from.typ.Kind() != reflect.Struct ||
		from.typ.Kind() == reflect.Map || from.typ.Kind() == reflect.Slice
	if to.typ.Kind() == reflect.Pointer && !absent && !speaks(from.typ) {
		a.zero = to.typ.Elem()
		m.present = append(m.present, a)
	}
}

// unlessOmitted is take, except for what is on the wire and not in JSON: a zero value that JSON
// omits. Then the target stays as it is.
func (c *compiler) unlessOmitted(take taker, to reflect.Type, from field) taker {
	kind := from.typ.Kind()
	switch {
	case canBeNil(from.typ) && !isBytes(from.typ), !from.omitZero && (!from.omitEmpty || kind == reflect.Struct):
		return take // what is on the wire is in JSON
	case !speaks(to) && to != reflect.TypeFor[json.Number]() && (to.Kind() <= reflect.Float64 || to.Kind() == reflect.String):
		return take // the target's zero value is the same
	case !from.omitZero || kind != reflect.Struct:
		return func(v value, at unsafe.Pointer, depth int) error {
			if v.kind == protowire.VarintType && v.number == 0 || v.kind == protowire.BytesType && len(v.bytes) == 0 {
				return nil
			}
			return take(v, at, depth)
		}
	}
	own := c.value(from.typ, from.typ)
	return func(v value, at unsafe.Pointer, depth int) error {
		whole := reflect.New(from.typ)
		if err := own(v, whole.UnsafePointer(), depth); err != nil {
			return err
		}
		if isZero(whole) {
			return nil
		}
		return take(v, at, depth)
	}
}

func canBeNil(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map
}

// isZero reports whether encoding/json omits what a pointer points to, if it omits zero values.
func isZero(pointer reflect.Value) bool {
	if z, ok := pointer.Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	return pointer.Elem().IsZero()
}

// zeroIsNull reports whether the zero value of a type is null in JSON, as that of a time is.
func zeroIsNull(t reflect.Type) bool {
	text, err := json.Marshal(reflect.New(t).Interface())
	return err == nil && string(text) == "null"
}

// readsNull reports whether a type decides itself what null is.
func readsNull(t reflect.Type) bool {
	return t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(unmarshals)
}

// value makes the decoder of a value.
func (c *compiler) value(to, from reflect.Type) taker {
	if speaks(from) && bare(to) != bare(from) { // null may be what it looks like: a pointer stays nil
		return c.converted(to, from)
	}
	if to.Kind() == reflect.Pointer {
		take, null := c.value(to.Elem(), from), zeroIsNull(to.Elem())
		return func(v value, at unsafe.Pointer, depth int) error {
			fresh := reflect.New(to.Elem())
			if err := take(v, fresh.UnsafePointer(), depth); err != nil {
				return err
			}
			if !null || !isZero(fresh) {
				*(*unsafe.Pointer)(at) = fresh.UnsafePointer()
			}
			return nil
		}
	}
	from = bare(from)
	switch {
	case to == from && reflect.PointerTo(to).Implements(reflect.TypeFor[protobuf]()):
		return generated(to)
	case speaks(to):
		return c.converted(to, from)
	case from.Kind() == reflect.String && to.Kind() == reflect.String:
		return takeText
	case from.Kind() == reflect.Bool && to.Kind() == reflect.Bool:
		return takeTruth
	case isInteger(from) && isInteger(to):
		return integer(to, from)
	case isBytes(from) && isBytes(to):
		return takeBytes
	case from.Kind() == reflect.Map && to.Kind() == reflect.Map:
		return c.mapping(to, from)
	case from.Kind() == reflect.Struct && to.Kind() == reflect.Struct:
		m := c.message(to, from)
		return func(v value, at unsafe.Pointer, depth int) error {
			if v.kind != protowire.BytesType {
				return errWire
			}
			return m.decode(v.bytes, at, depth, v.known)
		}
	}
	return c.converted(to, from)
}

// converted decodes a value in its own type first, and then through JSON.
func (c *compiler) converted(to, from reflect.Type) taker {
	from = bare(from)
	if to == from || from.Kind() == reflect.Map || from.Kind() == reflect.Slice && !isBytes(from) {
		c.whole = true // there is no way to decode it alone
		return nil
	}
	own := c.value(from, from)
	return func(v value, at unsafe.Pointer, depth int) error {
		whole := reflect.New(from)
		if err := own(v, whole.UnsafePointer(), depth); err != nil {
			return err
		}
		return throughJSON(whole.Interface(), reflect.NewAt(to, at).Interface())
	}
}

// generated decodes with the type's own method.
func generated(t reflect.Type) taker {
	return func(v value, at unsafe.Pointer, _ int) error {
		if v.kind != protowire.BytesType {
			return errWire
		}
		return reflect.NewAt(t, at).Interface().(protobuf).Unmarshal(v.bytes)
	}
}

// mapping decodes an entry of a map.
func (c *compiler) mapping(to, from reflect.Type) taker {
	if to.Key().Kind() != reflect.String || from.Key().Kind() != reflect.String || speaks(to.Key()) {
		c.whole = true
		return nil
	}
	take := c.value(to.Elem(), from.Elem())
	empty := value{kind: protowire.BytesType} // it need not be on the wire
	if isInteger(from.Elem()) || from.Elem().Kind() == reflect.Bool {
		empty.kind = protowire.VarintType
	}
	return func(v value, at unsafe.Pointer, depth int) error {
		if v.kind != protowire.BytesType {
			return errWire
		}
		key, element, last := reflect.New(to.Key()).Elem(), reflect.New(to.Elem()), empty
		for raw := v.bytes; len(raw) > 0; {
			number, kind, n := protowire.ConsumeTag(raw)
			if n < 0 {
				return protowire.ParseError(n)
			}
			part := value{kind: kind, known: v.known}
			m := protowire.ConsumeFieldValue(number, kind, raw[n:])
			if m < 0 {
				return protowire.ParseError(m)
			}
			if kind == protowire.BytesType {
				part.bytes, _ = protowire.ConsumeBytes(raw[n:])
			} else if kind == protowire.VarintType {
				part.number, _ = protowire.ConsumeVarint(raw[n:])
			}
			raw = raw[n+m:]
			switch number {
			case 1:
				key.SetString(string(part.bytes))
			case 2:
				last = part
			}
		}
		if err := take(last, element.UnsafePointer(), depth+1); err != nil {
			return err
		}
		m := reflect.NewAt(to, at).Elem()
		if m.IsNil() {
			m.Set(reflect.MakeMap(to))
		}
		m.SetMapIndex(key, element.Elem())
		return nil
	}
}

func isInteger(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

func takeText(v value, at unsafe.Pointer, _ int) error {
	if v.kind != protowire.BytesType {
		return errWire
	}
	*(*string)(at) = v.text()
	return nil
}

// text is the value as a text.
func (v value) text() string {
	for _, text := range v.known {
		if text == string(v.bytes) {
			return text
		}
	}
	return string(v.bytes)
}

func takeTruth(v value, at unsafe.Pointer, _ int) error {
	if v.kind != protowire.VarintType {
		return errWire
	}
	*(*bool)(at) = v.number != 0
	return nil
}

func takeBytes(v value, at unsafe.Pointer, _ int) error {
	if v.kind != protowire.BytesType {
		return errWire
	}
	*(*[]byte)(at) = append([]byte{}, v.bytes...)
	return nil
}

// integer decodes a number. One that the target cannot hold is an error, as it is in JSON.
func integer(to, from reflect.Type) taker {
	signed := from.Kind() <= reflect.Int64
	return func(v value, at unsafe.Pointer, _ int) error {
		if v.kind != protowire.VarintType {
			return errWire
		}
		place := reflect.NewAt(to, at).Elem()
		number := int64(v.number)
		if from.Kind() == reflect.Int32 {
			number = int64(int32(v.number))
		}
		switch {
		case place.CanInt() && (signed || number >= 0) && !place.OverflowInt(number):
			place.SetInt(number)
		case place.CanUint() && (!signed || number >= 0) && !place.OverflowUint(v.number):
			place.SetUint(v.number)
		default:
			return fmt.Errorf("%d is no %s", number, to)
		}
		return nil
	}
}
