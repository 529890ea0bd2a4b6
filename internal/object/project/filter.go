package project

import (
	"fmt"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"
)

// Filter takes out of an object's bytes what is kept of it, before anything is decoded: what is
// not kept is skipped, and costs neither time nor memory. It is safe for concurrent use.
type Filter struct {
	root *node
	size atomic.Int64 // of the largest result
}

// Protobuf returns the fields of a message that are kept, in memory of its own. It needs a filter
// that was made for a Go type.
func (f *Filter) Protobuf(raw []byte) ([]byte, error) {
	return f.made(f.root.proto(f.into(raw), raw, 0))
}

// JSON returns the members of an object that are kept, in memory of its own. Of the others only
// brackets and quotes are looked at.
func (f *Filter) JSON(raw []byte) ([]byte, error) {
	s := scanner{raw: raw, to: f.into(raw)}
	err := s.value(f.root, 0)
	if err == nil && s.space() != 0 {
		err = errJSON
	}
	return f.made(s.to, err)
}

func (f *Filter) into(raw []byte) []byte {
	return make([]byte, 0, min(int64(len(raw)), f.size.Load()))
}

func (f *Filter) made(kept []byte, err error) ([]byte, error) {
	if n := int64(len(kept)); n > f.size.Load() {
		f.size.Store(n) // by several at once: it is a guess
	}
	return kept, err
}

// proto appends what is kept of a message.
func (n *node) proto(to, raw []byte, depth int) ([]byte, error) {
	if depth > deepest {
		return to, errDeep
	}
	for len(raw) > 0 {
		number, kind, tagged := protowire.ConsumeTag(raw)
		if tagged < 0 {
			return to, protowire.ParseError(tagged)
		}
		size := protowire.ConsumeFieldValue(number, kind, raw[tagged:])
		if size < 0 {
			return to, protowire.ParseError(size)
		}
		field := raw[:tagged+size]
		raw = raw[tagged+size:]
		child := n.numbers[int(number)]
		var err error
		if to, err = child.field(to, field, kind, tagged, depth); err != nil {
			return to, fmt.Errorf("field %d: %w", number, err)
		}
	}
	return to, nil
}

// field appends what is kept of a field. The node is nil if that is nothing.
func (n *node) field(to, field []byte, kind protowire.Type, tagged, depth int) ([]byte, error) {
	switch {
	case n == nil:
		return to, nil
	case n.members == nil || kind != protowire.BytesType:
		return append(to, field...), nil // of another type than it should be: the decoder says so
	}
	value, size := protowire.ConsumeBytes(field[tagged:])
	if n.entries {
		key, err := keyOf(value)
		child := n.members[key]
		if child == nil || err != nil {
			return to, err
		}
		n = &node{members: n.members, numbers: map[int]*node{1: {}, 2: child}}
	}
	from := len(to) + tagged
	to = append(to, field[:tagged+size-len(value)]...)
	begin := len(to)
	to, err := n.proto(to, value, depth+1)
	putSize(to[from:begin], len(to)-begin)
	return to, err
}

// keyOf returns the key of an entry of a map.
func keyOf(entry []byte) (key string, err error) {
	for len(entry) > 0 {
		number, kind, size := protowire.ConsumeField(entry)
		if size < 0 {
			return "", protowire.ParseError(size)
		}
		if number == 1 && kind == protowire.BytesType {
			_, _, tagged := protowire.ConsumeTag(entry)
			value, _ := protowire.ConsumeBytes(entry[tagged:])
			key = string(value)
		}
		entry = entry[size:]
	}
	return key, nil
}

// putSize writes the size of a message into exactly these bytes, which had that of a larger one.
// It need not be the shortest form.
func putSize(into []byte, size int) {
	for i := range into {
		into[i] = byte(size) | 0x80
		size >>= 7
	}
	into[len(into)-1] &= 0x7f
}
