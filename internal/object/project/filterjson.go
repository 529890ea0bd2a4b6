package project

import (
	"bytes"
	"encoding/json"
	"errors"
)

// scanner copies what is kept of a JSON text.
type scanner struct {
	raw []byte
	at  int
	to  []byte
}

var errJSON = errors.New("its JSON is malformed")

// space skips white space, and returns the next byte without reading it; 0 at the end.
func (s *scanner) space() byte {
	for ; s.at < len(s.raw); s.at++ {
		switch c := s.raw[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// value copies what is kept of the next value. One that has another form than the paths say is
// copied as a whole: the decoder says what is wrong.
func (s *scanner) value(n *node, depth int) error {
	if depth > deepest {
		return errDeep
	}
	c := s.space()
	if n.members != nil && c == '{' {
		return s.object(n, depth)
	}
	if n.members != nil && c == '[' {
		return s.sequence(']', func(first bool) error {
			s.comma(first)
			return s.value(n, depth+1)
		})
	}
	raw, err := s.skip()
	s.to = append(s.to, raw...)
	return err
}

func (s *scanner) object(n *node, depth int) error {
	kept := 0
	return s.sequence('}', func(bool) error {
		if s.space() != '"' {
			return errJSON
		}
		key, err := s.skip()
		if err != nil {
			return err
		}
		if s.space() != ':' {
			return errJSON
		}
		s.at++
		child, err := n.member(key)
		if child == nil {
			if err == nil {
				_, err = s.skip()
			}
			return err
		}
		s.comma(kept == 0)
		kept++
		s.to = append(append(s.to, key...), ':')
		return s.value(child, depth+1)
	})
}

// member returns what is kept of the member with a key, which is in quotes; nil if that is
// nothing.
func (n *node) member(key []byte) (*node, error) {
	if bytes.IndexByte(key, '\\') < 0 {
		return n.members[string(key[1:len(key)-1])], nil
	}
	var name string
	if json.Unmarshal(key, &name) != nil {
		return nil, errJSON
	}
	return n.members[name], nil
}

func (s *scanner) comma(first bool) {
	if !first {
		s.to = append(s.to, ',')
	}
}

// sequence copies the brackets of an object or a list. The function reads each part of it.
func (s *scanner) sequence(last byte, part func(first bool) error) error {
	s.to = append(s.to, s.raw[s.at])
	s.at++
	for first := true; ; first = false {
		switch c := s.space(); {
		case first && c == last:
		case first:
			if err := part(true); err != nil {
				return err
			}
			continue
		case c == ',':
			s.at++
			if err := part(false); err != nil {
				return err
			}
			continue
		case c != last:
			return errJSON
		}
		s.to = append(s.to, last)
		s.at++
		return nil
	}
}

// skip returns the bytes of the next value. Of an object or a list only brackets and quotes are
// looked at.
func (s *scanner) skip() ([]byte, error) {
	c := s.space()
	from := s.at
	switch c {
	case 0, ',', ':', '}', ']':
		return nil, errJSON
	case '"', '{', '[':
		for depth := 0; ; {
			switch c := s.next(); c {
			case 0:
				return nil, errJSON
			case '"':
				if !s.text() {
					return nil, errJSON
				}
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			default:
				continue
			}
			if depth == 0 {
				return s.raw[from:s.at], nil
			}
		}
	}
	for s.at < len(s.raw) && bytes.IndexByte([]byte(" \t\r\n,:}]"), s.raw[s.at]) < 0 {
		s.at++
	}
	return s.raw[from:s.at], nil
}

// next reads a byte; 0 at the end.
func (s *scanner) next() byte {
	if s.at == len(s.raw) {
		return 0
	}
	s.at++
	return s.raw[s.at-1]
}

// text reads the rest of a string, and reports whether it ends.
func (s *scanner) text() bool {
	for ; s.at < len(s.raw); s.at++ {
		switch s.raw[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return true
		}
	}
	return false
}
