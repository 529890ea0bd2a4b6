package tree

import (
	"math"
	"unicode/utf8"
)

// deepest is how deeply values may be nested. What is deeper is left to plain decoding.
const deepest = 64

// node is a value or a key in a text, with its quotes or brackets.
type node struct {
	from, to int32
	// next is the index of the node after this one and all that is in it.
	next int32
	// count is how many elements an array or pairs an object has.
	count int32
}

// scanner finds the values in a JSON text. It takes less than JSON: see deepest.
type scanner struct {
	raw   []byte
	at    int
	nodes []node
}

// scan reports whether raw is an object, and has nodes of it then.
func (s *scanner) scan(raw []byte) bool {
	s.raw, s.at, s.nodes = raw, 0, s.nodes[:0]
	if len(raw) > math.MaxInt32 || !utf8.Valid(raw) {
		return false
	}
	if s.space(); s.at == len(raw) || raw[s.at] != '{' || !s.value(deepest) {
		return false
	}
	s.space()
	return s.at == len(raw)
}

func (s *scanner) space() {
	for s.at < len(s.raw) {
		switch s.raw[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// skip skips a byte, after white space, if it is the next one.
func (s *scanner) skip(c byte) bool {
	s.space()
	if s.at == len(s.raw) || s.raw[s.at] != c {
		return false
	}
	s.at++
	return true
}

// value scans a value that may have so many levels.
func (s *scanner) value(levels int) bool {
	if s.space(); s.at == len(s.raw) {
		return false
	}
	i := len(s.nodes)
	s.nodes = append(s.nodes, node{from: int32(s.at)})
	ok, count := false, 0
	switch s.raw[s.at] {
	case '{':
		count, ok = s.members('}', levels-1, s.pair)
	case '[':
		count, ok = s.members(']', levels-1, s.value)
	case '"':
		ok = s.text()
	case 't':
		ok = s.word("true")
	case 'f':
		ok = s.word("false")
	case 'n':
		ok = s.word("null")
	default:
		ok = s.number()
	}
	n := &s.nodes[i]
	n.to, n.next, n.count = int32(s.at), int32(len(s.nodes)), int32(count)
	return ok
}

// members scans an array or an object.
func (s *scanner) members(end byte, levels int, member func(int) bool) (count int, ok bool) {
	s.at++
	if levels < 0 {
		return 0, false
	}
	if s.skip(end) {
		return 0, true
	}
	for {
		if !member(levels) {
			return 0, false
		}
		count++
		if s.skip(end) {
			return count, true
		}
		if !s.skip(',') {
			return 0, false
		}
	}
}

func (s *scanner) pair(levels int) bool {
	s.space()
	if s.at == len(s.raw) || s.raw[s.at] != '"' {
		return false
	}
	key := node{from: int32(s.at), next: int32(len(s.nodes) + 1)}
	if !s.text() {
		return false
	}
	key.to = int32(s.at)
	s.nodes = append(s.nodes, key)
	return s.skip(':') && s.value(levels)
}

// text scans a string.
func (s *scanner) text() bool {
	for s.at++; s.at < len(s.raw); s.at++ {
		switch c := s.raw[s.at]; {
		case c == '"':
			s.at++
			return true
		case c < ' ':
			return false
		case c == '\\' && !s.escape():
			return false
		}
	}
	return false
}

// escape scans what a backslash begins, up to its last byte.
func (s *scanner) escape() bool {
	if s.at++; s.at == len(s.raw) {
		return false
	}
	switch s.raw[s.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if s.at++; s.at == len(s.raw) || !isHex(s.raw[s.at]) {
				return false
			}
		}
		return true
	}
	return false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func (s *scanner) word(w string) bool {
	if len(s.raw)-s.at < len(w) || string(s.raw[s.at:s.at+len(w)]) != w {
		return false
	}
	s.at += len(w)
	return true
}

// number scans a number by the grammar of JSON.
func (s *scanner) number() bool {
	s.one('-', '-')
	if !s.one('0', '0') && !s.digits() {
		return false
	}
	if s.one('.', '.') && !s.digits() {
		return false
	}
	if s.one('e', 'E') {
		s.one('+', '-')
		return s.digits()
	}
	return true
}

// one skips one of two bytes.
func (s *scanner) one(a, b byte) bool {
	if s.at == len(s.raw) || s.raw[s.at] != a && s.raw[s.at] != b {
		return false
	}
	s.at++
	return true
}

// digits skips one digit or more.
func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.raw) && '0' <= s.raw[s.at] && s.raw[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}
