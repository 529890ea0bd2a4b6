package frames

import (
	"errors"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// uvarint reads a number. The buffer may end within it, so it is parsed again with more.
func (b *body) uvarint() (uint64, error) {
	for {
		n, size := protowire.ConsumeVarint(b.buf[b.at:b.end])
		if size >= 0 {
			b.at += size
			return n, nil
		}
		if err := protowire.ParseError(size); !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, broken("a number: %v", err)
		}
		b.drop()
		if _, err := b.more(); err != nil {
			return 0, unexpected(err)
		}
	}
}

// message reads the fields of a message that ends at an offset, or at the end of the answer if
// until is negative. The function reads each field of bytes, which has n of them; fields of other
// types are skipped, but an error if their number is known: a list whose items are no bytes is not
// empty. The walk is by hand because protowire needs the whole message in memory.
func (b *body) message(
	until int64, known protowire.Number, field func(number protowire.Number, n int) error,
) error {
	for until < 0 || b.offset() < until {
		if _, err := b.peek(); err != nil {
			if until < 0 && err == io.EOF {
				return nil
			}
			return unexpected(err)
		}
		tag, err := b.uvarint()
		if err != nil {
			return err
		}
		number, kind := protowire.DecodeTag(tag)
		switch {
		case !number.IsValid():
			err = broken("a field of number %d", number)
		case number <= known && kind != protowire.BytesType:
			err = wrongType(number, kind)
		case kind == protowire.VarintType:
			_, err = b.uvarint()
		case kind == protowire.Fixed64Type:
			err = b.pass(protowire.SizeFixed64())
		case kind == protowire.Fixed32Type:
			err = b.pass(protowire.SizeFixed32())
		case kind == protowire.BytesType:
			err = b.sized(number, until, field)
		default:
			err = broken("a field of wire type %d", kind)
		}
		if err != nil {
			return err
		}
	}
	if until >= 0 && b.offset() != until {
		return broken("a field that is longer than its message")
	}
	return nil
}

// maxField is the largest field that is read; the server's own limit is far below it.
const maxField = 1<<31 - 1

// sized reads a field of bytes, and checks that the function reads all of it.
func (b *body) sized(
	number protowire.Number, until int64, field func(number protowire.Number, n int) error,
) error {
	n, err := b.uvarint()
	if err != nil {
		return err
	}
	if n > maxField || until >= 0 && int64(n) > until-b.offset() {
		return broken("a field of %d bytes", n)
	}
	end := b.offset() + int64(n)
	if err := field(number, int(n)); err != nil {
		return err
	}
	if b.offset() != end {
		return broken("a field that is not as long as it says")
	}
	return nil
}

// pass skips n bytes.
func (b *body) pass(n int) error {
	for n > 0 {
		if _, err := b.peek(); err != nil {
			return unexpected(err)
		}
		step := min(n, b.end-b.at)
		b.at += step
		n -= step
	}
	return nil
}

func wrongType(number protowire.Number, kind protowire.Type) error {
	return broken("field %d of wire type %d", number, kind)
}

// fields calls the function with each field of bytes of a message. It stops at the first field
// that is broken, or that is known and is of another type or there twice, and at an error of the
// function.
func fields(
	raw []byte, known protowire.Number, field func(number protowire.Number, value []byte) error,
) error {
	var seen [unknownFields + 1]bool
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return broken("a field: %v", protowire.ParseError(n))
		}
		if number <= known && kind != protowire.BytesType {
			return wrongType(number, kind)
		}
		if number <= known {
			if seen[number] {
				return broken("field %d twice", number)
			}
			seen[number] = true
		}
		raw = raw[n:]
		var value []byte
		if kind == protowire.BytesType {
			value, n = protowire.ConsumeBytes(raw)
		} else {
			n = protowire.ConsumeFieldValue(number, kind, raw)
		}
		if n < 0 {
			return broken("field %d: %v", number, protowire.ParseError(n))
		}
		if kind == protowire.BytesType {
			if err := field(number, value); err != nil {
				return err
			}
		}
		raw = raw[n:]
	}
	return nil
}

// dropField removes the fields of a number from the message that is field 1 of a message, in
// place, and returns the rest. A broken message stays as it is.
func dropField(raw []byte, number protowire.Number) []byte {
	first, kind, tagged := protowire.ConsumeTag(raw)
	if first != 1 || kind != protowire.BytesType {
		return raw
	}
	size, n := protowire.ConsumeVarint(raw[tagged:])
	if n < 0 || size > uint64(len(raw)-tagged-n) {
		return raw
	}
	start := tagged + n
	end := start + int(size)
	found := false
	whole := eachField(raw[start:end], func(got protowire.Number, _, _ int) {
		found = found || got == number
	})
	if !found || !whole {
		return raw
	}
	to := start
	inner := raw[start:end]
	eachField(inner, func(got protowire.Number, from, until int) {
		if got != number {
			to += copy(raw[to:], inner[from:until])
		}
	})
	put(raw[tagged:start], uint64(to-start))
	return raw[:to+copy(raw[to:], raw[end:])]
}

// eachField calls the function with where each field of a message begins and ends. It is false
// if the message is broken. The function may overwrite what is before the field.
func eachField(raw []byte, f func(number protowire.Number, from, until int)) (whole bool) {
	for at := 0; at < len(raw); {
		number, _, n := protowire.ConsumeField(raw[at:])
		if n < 0 {
			return false
		}
		f(number, at, at+n)
		at += n
	}
	return true
}

// put writes a number into exactly these bytes. protowire writes the shortest form, which would
// move what follows.
func put(into []byte, n uint64) {
	for i := range into {
		into[i] = byte(n) | 0x80
		n >>= 7
	}
	into[len(into)-1] &= 0x7f
}
