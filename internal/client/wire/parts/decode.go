//go:build !kates_safe

package parts

import (
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// decode decodes a message into p, which points to a zero value of its type. It is false for what
// is better left to the generated decoder.
func (m *memory) decode(of *message, p unsafe.Pointer, raw []byte) bool {
	if of.fields == nil {
		return unmarshal(of.typ, p, raw)
	}
	walk := walk{memory: m, of: of, p: p, raw: raw, rest: len(m.rest)}
	for walk.at < len(raw) {
		if !walk.field() {
			return false
		}
	}
	return walk.end()
}

// walk goes through the fields of a message.
type walk struct {
	*memory
	of    *message
	p     unsafe.Pointer
	raw   []byte
	at    int // in raw
	rest  int // where the fields that are left begin, in the memory's buffer
	seen  [2]uint64
	maps  [4]left // maps that are left to the generated decoder
	nMaps int
}

// unknown is a field that the type lacks.
var unknown field

// left is a part that the generated decoder makes.
type left struct {
	field *field
	hash  uint64
	raw   []byte
}

// field decodes the next field.
func (w *walk) field() bool {
	from := w.at
	tag, n := protowire.ConsumeVarint(w.raw[w.at:])
	if n < 0 {
		return false
	}
	w.at += n
	number, wire := tag>>3, protowire.Type(tag&7)
	if number == 0 || number > uint64(protowire.MaxValidNumber) {
		return false
	}
	f := &unknown
	if number < uint64(len(w.of.fields)) {
		f = &w.of.fields[number]
	}
	switch {
	case wire == protowire.VarintType:
		v, n := protowire.ConsumeVarint(w.raw[w.at:])
		if n < 0 {
			return false
		}
		w.at += n
		return w.number(f, v, from)
	case wire != protowire.BytesType:
		n := protowire.ConsumeFieldValue(protowire.Number(number), wire, w.raw[w.at:])
		if n < 0 || f.kind != other {
			return false
		}
		w.at += n
		return w.leave(from)
	}
	value, n := protowire.ConsumeBytes(w.raw[w.at:])
	if n < 0 {
		return false
	}
	w.at += n
	return w.bytes(f, number, tag, value, from)
}

// leave leaves the field that has been read to the generated decoder.
func (w *walk) leave(from int) bool {
	w.memory.rest = append(w.memory.rest, w.raw[from:w.at]...)
	return true
}

// number takes in a number.
func (w *walk) number(f *field, v uint64, from int) bool {
	at := unsafe.Add(w.p, f.at)
	switch f.kind {
	case other:
		return w.leave(from)
	case number32:
		*(*int32)(at) = int32(v)
	case number64:
		*(*int64)(at) = int64(v)
	case truth:
		*(*bool)(at) = v != 0
	case pointer32:
		*(**int32)(at) = w.numbers.number32(int32(v))
	case pointer64:
		*(**int64)(at) = w.numbers.number64(int64(v))
	case pointerTruth:
		*(**bool)(at) = w.numbers.truth(v != 0)
	default:
		return false
	}
	return true
}

// bytes takes in a field of bytes.
func (w *walk) bytes(f *field, number, tag uint64, value []byte, from int) bool {
	at := unsafe.Add(w.p, f.at)
	switch f.kind {
	case other:
		return w.leave(from)
	case dropped:
		return true
	case name:
		*(*string)(at) = string(value)
		return true
	case text:
		*(*string)(at) = w.text(value)
		return true
	}
	if bit := uint64(1) << (number % 64); w.seen[number/64]&bit != 0 {
		return false // in two pieces
	} else {
		w.seen[number/64] |= bit
	}
	switch f.kind {
	case nested:
		return w.decode(f.of, at, value)
	case pointer, pointerText:
		return w.pointer(f, at, value)
	case list, texts, labels, amounts:
		n, ok := w.run(tag)
		return ok && w.many(f, at, w.raw[from:w.at], n)
	}
	return false
}

// run goes to the end of the fields with the same tag, of which one has been read, and counts
// them.
func (w *walk) run(tag uint64) (count int, ok bool) {
	for count = 1; w.at < len(w.raw); count++ {
		next, n := protowire.ConsumeVarint(w.raw[w.at:])
		if n < 0 {
			return 0, false
		}
		if next != tag {
			break
		}
		size := 0
		if _, size = protowire.ConsumeBytes(w.raw[w.at+n:]); size < 0 {
			return 0, false
		}
		w.at += n + size
	}
	return count, true
}

// pointer takes in a pointer to a message.
func (w *walk) pointer(f *field, at unsafe.Pointer, value []byte) bool {
	shared, h := w.find(f, value)
	if shared != nil {
		*(*unsafe.Pointer)(at) = shared.at
		return true
	}
	var to unsafe.Pointer
	if f.kind == pointerText {
		s := w.text(value)
		to = unsafe.Pointer(&s)
	} else {
		to = reflect.New(f.of.typ).UnsafePointer()
		if !w.decode(f.of, to, value) {
			return false
		}
	}
	*(*unsafe.Pointer)(at) = to
	w.remember(f, h, value, to, 0)
	return true
}

// header is a slice.
type header struct {
	at       unsafe.Pointer
	len, cap int
}

// many takes in a list or a map of so many elements. raw has their fields.
func (w *walk) many(f *field, at unsafe.Pointer, raw []byte, n int) bool {
	shared, h := w.find(f, raw)
	switch {
	case shared != nil && (f.kind == list || f.kind == texts):
		*(*header)(at) = header{shared.at, shared.n, shared.n}
		return true
	case shared != nil:
		*(*unsafe.Pointer)(at) = shared.at
		return true
	case f.kind == amounts:
		w.memory.rest = append(w.memory.rest, raw...)
		if w.nMaps < len(w.maps) {
			w.maps[w.nMaps] = left{f, h, raw}
			w.nMaps++
		}
		return true
	case f.kind == labels:
		m := w.labels(raw, n)
		if m == nil {
			return false
		}
		*(*map[string]string)(at) = m
		w.remember(f, h, raw, *(*unsafe.Pointer)(at), 0)
		return true
	}
	to := f.each.array(n)
	if !w.elements(f.each, to, raw, n) {
		return false
	}
	*(*header)(at) = header{to, n, n}
	w.remember(f, h, raw, to, n)
	return true
}

// each calls the function with the value of each of the fields, which are known to be whole.
func each(raw []byte, f func(value []byte) bool) bool {
	for len(raw) > 0 {
		_, n := protowire.ConsumeVarint(raw)
		value, size := protowire.ConsumeBytes(raw[n:])
		if raw = raw[n+size:]; !f(value) {
			return false
		}
	}
	return true
}

// elements decodes the elements of a list. One that came before is a copy of that: it shares what
// is in it.
func (w *walk) elements(e *element, to unsafe.Pointer, raw []byte, n int) bool {
	i := uintptr(0)
	return each(raw, func(value []byte) bool {
		at := unsafe.Add(to, i*e.size)
		i++
		switch {
		case e.of == nil:
			*(*string)(at) = w.text(value)
			return true
		case n == 1:
			return w.decode(e.of, at, value)
		}
		shared, h := w.find(&e.field, value)
		if shared != nil {
			reflect.NewAt(e.typ, at).Elem().Set(reflect.NewAt(e.typ, shared.at).Elem())
			return true
		}
		if !w.decode(e.of, at, value) {
			return false
		}
		w.remember(&e.field, h, value, at, 1)
		return true
	})
}

// The fields of an entry of a map of strings: its key and its value.
const keyTag, valueTag = 1<<3 | byte(protowire.BytesType), 2<<3 | byte(protowire.BytesType)

// labels decodes a map of n strings; nil if it is none that a server writes.
func (w *walk) labels(raw []byte, n int) map[string]string {
	m := make(map[string]string, n)
	if !each(raw, func(entry []byte) bool {
		key, size := tagged(entry, keyTag)
		if size < 0 {
			return false
		}
		value, last := tagged(entry[size:], valueTag)
		if last < 0 || size+last != len(entry) {
			return false
		}
		m[w.text(key)] = w.text(value)
		return true
	}) {
		return nil
	}
	return m
}

// tagged reads a field of bytes of a tag; the size is negative if there is none.
func tagged(raw []byte, tag byte) (value []byte, size int) {
	if len(raw) == 0 || raw[0] != tag {
		return nil, -1
	}
	value, n := protowire.ConsumeBytes(raw[1:])
	if n < 0 {
		return nil, -1
	}
	return value, 1 + n
}

// end decodes what was left.
func (w *walk) end() bool {
	if len(w.memory.rest) == w.rest {
		return true
	}
	ok := unmarshal(w.of.typ, w.p, w.memory.rest[w.rest:])
	if w.memory.rest = w.memory.rest[:w.rest]; cap(w.memory.rest) > mostRest {
		w.memory.rest = append([]byte(nil), w.memory.rest...)
	}
	for _, l := range w.maps[:w.nMaps] {
		w.remember(l.field, l.hash, l.raw, *(*unsafe.Pointer)(unsafe.Add(w.p, l.field.at)), 0)
	}
	return ok
}

// unmarshal lets the generated decoder of a type decode into p.
func unmarshal(typ reflect.Type, p unsafe.Pointer, raw []byte) bool {
	return reflect.NewAt(typ, p).Interface().(generated).Unmarshal(raw) == nil
}
