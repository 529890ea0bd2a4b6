package tree

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"sync"
)

// Share returns an object that is equal to m, in which equal parts of the objects that the table
// has shared are the same maps and slices. It writes to nothing: where a part is replaced, what it
// is in is copied. Nobody writes to m or to its parts from now on. Parts that have anything but
// the values that Decode makes, or are nested very deeply, are left as they are.
func (t *Table) Share(m map[string]any) map[string]any {
	if t == nil {
		return m
	}
	s := sharers.Get().(*sharer)
	defer s.release()
	s.table, s.places = t, t.now()
	shared, _, _ := s.object(m, deepest)
	return shared
}

var sharers = sync.Pool{New: func() any { return new(sharer) }}

// sharer looks up the parts of one object. It writes them as texts, which are equal where the
// parts are. No such text is JSON.
type sharer struct {
	table  *Table
	places *places
	text   []byte
	keys   []string
	// seen is how many values it has met.
	seen int
}

// mostSeen is how many values of an object are looked at. What a user's function has made may have
// a part in it any number of times.
const mostSeen = 1 << 17

// Each value begins with one of these.
const (
	isNull byte = iota + 1
	isTrue
	isFalse
	isText
	isInteger
	isNumber
	isObject
	isArray
)

func (s *sharer) release() {
	text, keys := s.text[:0], s.keys[:0]
	if cap(text) > 1<<20 {
		text = nil
	}
	clear(keys[:cap(keys)])
	*s = sharer{text: text, keys: keys}
	sharers.Put(s)
}

// value returns what to have in place of a value, and whether that is something else. It is known
// if its text was written.
func (s *sharer) value(v any, levels int) (_ any, other, known bool) {
	if s.seen++; s.seen > mostSeen {
		return v, false, false
	}
	switch v := v.(type) {
	case nil:
		s.text = append(s.text, isNull)
	case bool:
		if v {
			s.text = append(s.text, isTrue)
		} else {
			s.text = append(s.text, isFalse)
		}
	case string:
		s.string(v)
	case int64:
		s.text = binary.BigEndian.AppendUint64(append(s.text, isInteger), uint64(v))
	case float64:
		s.text = binary.BigEndian.AppendUint64(append(s.text, isNumber), math.Float64bits(v))
	default:
		return s.part(v, levels)
	}
	return v, false, true
}

func (s *sharer) string(v string) {
	s.text = binary.AppendUvarint(append(s.text, isText), uint64(len(v)))
	s.text = append(s.text, v...)
}

// part is value for maps and slices. One that is nil is none that Decode makes.
func (s *sharer) part(v any, levels int) (_ any, other, known bool) {
	from := len(s.text)
	switch part := v.(type) {
	case map[string]any:
		if part == nil || levels == 0 {
			return v, false, false
		}
		v, other, known = s.object(part, levels-1)
	case []any:
		if part == nil || levels == 0 {
			return v, false, false
		}
		v, other, known = s.array(part, levels-1)
	}
	text := s.text[from:]
	if !known || len(text) > longest {
		return v, other, known
	}
	hash := maphash.Bytes(s.places.seed, text)
	if had, ok := s.places.find(hash, text); ok {
		return had, true, true
	}
	s.table.remember(s.places, hash, text, v)
	return v, other, true
}

func (s *sharer) object(m map[string]any, levels int) (_ map[string]any, other, known bool) {
	s.text = binary.AppendUvarint(append(s.text, isObject), uint64(len(m)))
	from := len(s.keys)
	for k := range m {
		s.keys = append(s.keys, k)
	}
	keys := s.keys[from:]
	slices.Sort(keys)
	fresh, known := m, true
	for i := range keys {
		k := s.keys[from+i]
		s.string(k)
		v, changed, ok := s.value(m[k], levels)
		if known = known && ok; !changed {
			continue
		}
		if !other {
			fresh, other = maps.Clone(m), true
		}
		fresh[k] = v
	}
	s.keys = s.keys[:from]
	return fresh, other, known
}

func (s *sharer) array(l []any, levels int) (_ []any, other, known bool) {
	s.text = binary.AppendUvarint(append(s.text, isArray), uint64(len(l)))
	fresh, known := l, true
	for i := range l {
		v, changed, ok := s.value(l[i], levels)
		if known = known && ok; !changed {
			continue
		}
		if !other {
			fresh, other = slices.Clip(slices.Clone(l)), true
		}
		fresh[i] = v
	}
	return fresh, other, known
}
