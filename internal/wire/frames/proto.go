package frames

import (
	"io"
	"math"
)

// The wire types of protobuf.
const (
	asVarint  = 0
	asFixed64 = 1
	asBytes   = 2
	asFixed32 = 5
)

// uvarint reads a number.
func (b *body) uvarint() (uint64, error) {
	var n uint64
	for shift := 0; shift < 64; shift += 7 {
		c, err := b.peek()
		if err != nil {
			return 0, unexpected(err)
		}
		b.at++
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return n, nil
		}
	}
	return 0, broken("a number without end")
}

// message reads the fields of a message that ends at an offset (or where the answer does, below 0). The
// function reads the field if it is one of bytes, n of them; of other types they are skipped.
func (b *body) message(until int64, field func(number, n int) error) error {
	for until < 0 || b.offset() < until {
		if _, err := b.peek(); err != nil {
			if until < 0 && err == io.EOF {
				return nil
			}
			return unexpected(err)
		}
		b.tag = b.at
		tag, err := b.uvarint()
		if err != nil {
			return err
		}
		switch tag & 7 {
		case asVarint:
			_, err = b.uvarint()
		case asFixed64:
			_, err = b.take(8)
		case asFixed32:
			_, err = b.take(4)
		case asBytes:
			err = b.sized(tag>>3, until, field)
		default:
			err = broken("a field of wire type %d", tag&7)
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

func (b *body) sized(number uint64, until int64, field func(number, n int) error) error {
	n, err := b.uvarint()
	if err != nil {
		return err
	}
	if n > math.MaxInt32 || number > math.MaxInt32 || until >= 0 && int64(n) > until-b.offset() {
		return broken("a field of %d bytes", n)
	}
	end := b.offset() + int64(n)
	if err := field(int(number), int(n)); err != nil {
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

// fields calls the function with each field of bytes of a message. It stops where the message is broken.
func fields(raw []byte, field func(number int, value []byte)) error {
	b := inMemory(raw)
	return b.message(int64(len(raw)), func(number, n int) error {
		value, err := b.take(n)
		if err == nil {
			field(number, value)
		}
		return err
	})
}

// dropField removes the fields of a number, of bytes, from the message that is field 1 of a message, in place, and returns what
// is left. A message that is broken is left as it is.
func dropField(raw []byte, number int) []byte {
	b := inMemory(raw)
	if tag, err := b.uvarint(); err != nil || tag != 1<<3|asBytes {
		return raw
	}
	length := b.at
	n, err := b.uvarint()
	start := b.at
	if err != nil || n > uint64(len(raw)-start) {
		return raw
	}
	end := start + int(n)
	type span struct{ from, to int }
	var drop []span
	err = b.message(int64(end), func(got, n int) error {
		b.at += n
		if got == number {
			drop = append(drop, span{b.tag, b.at})
		}
		return nil
	})
	if err != nil || drop == nil {
		return raw
	}
	to, from := start, start
	for _, d := range drop {
		to += copy(raw[to:], raw[from:d.from])
		from = d.to
	}
	to += copy(raw[to:], raw[from:end])
	put(raw[length:start], uint64(to-start))
	return raw[:to+copy(raw[to:], raw[end:])]
}

// put writes a number in just as many bytes as there are.
func put(into []byte, n uint64) {
	for i := range into {
		into[i] = byte(n) | 0x80
		n >>= 7
	}
	into[len(into)-1] &= 0x7f
}
