package frames

import (
	"bytes"
	"encoding/json"
)

// space skips white space and returns the next byte without reading it. White space that is longer
// than an object may be is an error.
func (b *body) space() (byte, error) {
	for skipped := int64(0); ; skipped++ {
		c, err := b.peek()
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\n', '\r', '\t':
			if skipped >= b.most {
				return 0, b.tooLarge()
			}
			b.at++
		default:
			return c, nil
		}
	}
}

// next reads the next byte that is not white space.
func (b *body) next() (byte, error) {
	c, err := b.space()
	if err != nil {
		return 0, unexpected(err)
	}
	b.at++
	return c, nil
}

func (b *body) expect(want byte) error {
	c, err := b.next()
	if err == nil && c != want {
		err = broken("%q where %q was to be", c, want)
	}
	return err
}

// value cuts out the next JSON value. Its bytes are valid until the next read. Only brackets and
// quotes are checked.
func (b *body) value() ([]byte, error) {
	c, err := b.space()
	if err != nil {
		return nil, unexpected(err)
	}
	b.drop()
	switch c {
	case '{', '[':
		err = b.composite()
	case '"':
		b.at++
		err = b.text()
	case ',', ':', '}', ']':
		return nil, broken("%q where a value was to be", c)
	default:
		err = b.scalar()
	}
	if err != nil {
		return nil, err
	}
	return b.buf[b.kept:b.at], nil
}

// composite skips an object or array.
func (b *body) composite() error {
	for depth := 0; ; {
		quoted := false
		n := 0
		for _, c := range b.buf[b.at:b.end] {
			n++
			if c == '"' {
				quoted = true
				break
			}
			switch c {
			case '{', '[':
				if depth++; b.follows(b.at + n - 1) {
					return broken("%q right behind a value: something before it is garbled", c)
				}
			case '}', ']':
				depth--
			case '\t', '\n', '\r':
				continue
			default:
				if c < ' ' {
					return broken("the control character %q", c)
				}
				continue
			}
			if depth == 0 {
				b.at += n
				return nil
			}
		}
		b.at += n
		var err error
		if quoted {
			err = b.text()
		} else {
			_, err = b.more()
		}
		if err != nil {
			return unexpected(err)
		}
	}
}

// follows reports whether a value has ended right before a place. No value may begin there: it is
// another event, and without this check one garbled bracket would swallow all that come after it.
func (b *body) follows(at int) bool {
	before := bytes.TrimRight(b.buf[b.kept:at], " \t\r\n")
	if len(before) == 0 {
		return false
	}
	last := before[len(before)-1]
	return last == '}' || last == ']' || last == '"'
}

// text skips the rest of a string.
func (b *body) text() error {
	escaped := false
	for {
		for i, c := range b.buf[b.at:b.end] {
			switch {
			case c < ' ': // no server sends it so, and garbage may have no end
				return broken("the control character %q in a text", c)
			case escaped:
				escaped = false
			case c == '\\':
				escaped = true
			case c == '"':
				b.at += i + 1
				return nil
			}
		}
		b.at = b.end
		if _, err := b.more(); err != nil {
			return unexpected(err)
		}
	}
}

// scalar skips a number, true, false or null.
func (b *body) scalar() error {
	for {
		for i, c := range b.buf[b.at:b.end] {
			switch c {
			case ' ', '\n', '\r', '\t', ',', ':', '}', ']':
				b.at += i
				return nil
			}
		}
		b.at = b.end
		if _, err := b.more(); err != nil {
			if b.r == nil {
				return nil // the value ends with the buffer
			}
			return unexpected(err)
		}
	}
}

// object reads an object. The function reads the value of each member; the key is in quotes.
func (b *body) object(member func(key []byte) error) error {
	var key []byte
	return b.sequence('{', '}', func() error {
		raw, err := b.value()
		if err != nil {
			return err
		}
		if key, err = plain(append(key[:0], raw...)); err != nil { // reading on overwrites it
			return err
		}
		if err := b.expect(':'); err != nil {
			return err
		}
		return member(key)
	})
}

// plain returns a key as the decoder will read it: a letter may be written as an escape. No
// decoder reads the keys of a list and of an event after this.
func plain(key []byte) ([]byte, error) {
	if key[0] != '"' {
		return nil, broken("a key that begins with %q", key[0])
	}
	if bytes.IndexByte(key, '\\') < 0 {
		return key, nil
	}
	var s string
	if err := json.Unmarshal(key, &s); err != nil {
		return nil, broken("a key: %v", err)
	}
	return append(append(append(key[:0], '"'), s...), '"'), nil
}

// array reads an array, or null, element by element.
func (b *body) array(element func(raw []byte) error) error {
	if c, err := b.space(); err == nil && c == 'n' {
		raw, err := b.value()
		if err == nil && string(raw) != "null" {
			err = broken("items that begin with %q", c)
		}
		return err
	}
	return b.sequence('[', ']', func() error {
		raw, err := b.value()
		if err != nil {
			return err
		}
		return element(raw)
	})
}

// sequence reads what is between two brackets. The function reads each part of it; commas are
// between the parts.
func (b *body) sequence(first, last byte, part func() error) error {
	if err := b.expect(first); err != nil {
		return err
	}
	if c, err := b.space(); err != nil || c == last {
		b.at++
		return unexpected(err)
	}
	for {
		if err := part(); err != nil {
			return err
		}
		switch c, err := b.next(); {
		case err != nil:
			return err
		case c == last:
			return nil
		case c != ',':
			return broken("%q where %q or a comma was to be", c, last)
		}
	}
}
