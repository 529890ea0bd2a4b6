//go:build !kates_safe

package parts

import (
	"hash/maphash"
	"reflect"
	"slices"
	"sync/atomic"
	"unsafe"
)

// Table decodes objects of one type, and remembers their parts. It is safe for concurrent use:
// each goroutine that decodes takes a memory of its own. Memories that are not in use wait in a
// fixed number of places, the first of which is used first: one goroutine at a time always has the
// same one.
type Table struct {
	plan *message
	idle [8]atomic.Pointer[memory]
}

// New makes the table of a type, a struct. With drop it leaves managed fields out.
func New(typ reflect.Type, drop bool) *Table { return &Table{plan: planOf(typ, drop)} }

// Decode decodes an object into p, which points to a zero value of the table's type. Afterwards
// nobody may write to the object. If the result is false, p is of no use: another value has to be
// decoded by the generated decoder, which tells what is wrong with the bytes, if anything is.
func (t *Table) Decode(p any, raw []byte) bool {
	if t.plan.fields == nil {
		return false
	}
	m := t.take()
	defer t.put(m)
	return m.decode(t.plan, reflect.ValueOf(p).UnsafePointer(), raw)
}

func (t *Table) take() *memory {
	for i := range t.idle {
		if m := t.idle[i].Swap(nil); m != nil {
			return m
		}
	}
	return &memory{seed: maphash.MakeSeed(), numbers: newSmall()}
}

func (t *Table) put(m *memory) {
	m.rest = m.rest[:0]
	for i := range t.idle {
		if t.idle[i].CompareAndSwap(nil, m) {
			return
		}
	}
}

const (
	// fewSlots is how many slots a memory begins with, and mostSlots how many it grows to.
	fewSlots, mostSlots = 256, 4096
	// longestText is the longest string that is remembered.
	longestText = 256
	// longest is the number of bytes of the longest part that is remembered.
	longest = 4096
	// mostHeld is how many bytes the remembered parts of a memory may have had on the wire.
	mostHeld = 1 << 20
	// mostRest is the largest buffer that is kept.
	mostRest = 64 << 10
)

// memory is what a table remembers. One goroutine uses it at a time.
type memory struct {
	seed    maphash.Seed
	texts   []string
	parts   []slot
	missed  int // texts and parts that were not found since the slots grew
	held    int // bytes of the remembered parts
	numbers *small
	rest    []byte // fields that are left to a generated decoder
}

// slot has the hash of a part that has come once, and a part that has come twice. Two slots beside
// each other are a pair: what hashes to either of them is in one of the two, and what came last is
// in the first.
type slot struct {
	once uint64
	hash uint64 // of the part: another one is not looked at
	part *part
}

// part is a remembered part: the bytes of a field, and what became of them.
type part struct {
	field *field
	raw   []byte
	at    unsafe.Pointer // the map, the target of the pointer, the first element or the one element
	n     int            // elements of a list
}

// hash is the hash of a part's bytes.
func (m *memory) hash(f *field, raw []byte) uint64 {
	return maphash.Bytes(m.seed, raw) + f.salt*0x9e3779b97f4a7c15
}

// find returns the remembered part of the same bytes, nil if there is none.
func (m *memory) find(f *field, raw []byte) (*part, uint64) {
	if len(raw) > longest || len(m.parts) == 0 {
		return nil, 0
	}
	h := m.hash(f, raw)
	pair := m.pair(h)
	for i := range pair {
		if pair[i].hash != h {
			continue
		}
		p := pair[i].part
		if p != nil && p.field == f && string(p.raw) == string(raw) {
			pair[i].hash, pair[i].part = pair[0].hash, pair[0].part
			pair[0].hash, pair[0].part = h, p
			return p, h
		}
	}
	return nil, h
}

// pair is the two slots for a hash.
func (m *memory) pair(h uint64) *[2]slot {
	i := h % uint64(len(m.parts)) &^ 1
	return (*[2]slot)(m.parts[i : i+2])
}

// remember takes in a part that was not found. A part that comes once is not remembered.
func (m *memory) remember(f *field, h uint64, raw []byte, at unsafe.Pointer, n int) {
	if len(raw) > longest {
		return
	}
	if m.miss(); h == 0 {
		h = m.hash(f, raw)
	}
	pair := m.pair(h)
	if pair[0].once != h && pair[1].once != h {
		pair[0].once, pair[1].once = h, pair[0].once
		return
	}
	m.keep(pair, h, &part{field: f, raw: raw, at: at, n: n})
}

// keep takes a part into a pair, if the bound on bytes allows that. The pair forgets the part that
// was found longer ago.
func (m *memory) keep(pair *[2]slot, h uint64, p *part) {
	held := m.held + len(p.raw)
	if last := pair[1].part; last != nil {
		held -= len(last.raw)
	}
	if held > mostHeld {
		return
	}
	m.held = held
	p.raw = slices.Clone(p.raw)
	pair[1].hash, pair[1].part = pair[0].hash, pair[0].part
	pair[0].hash, pair[0].part = h, p
}

// miss counts, and lets the slots grow: a kind of few objects needs few.
func (m *memory) miss() {
	m.missed++
	if n := len(m.parts); n > 0 && (n >= mostSlots || m.missed < 2*n) {
		return
	}
	m.missed, m.held = 0, 0
	n := max(fewSlots, 4*len(m.parts))
	parts, texts := m.parts, m.texts
	m.parts, m.texts = make([]slot, n), make([]string, n)
	for _, s := range slices.Backward(parts) {
		if s.part != nil {
			m.keep(m.pair(s.hash), s.hash, s.part)
		}
		pair := m.pair(s.once)
		pair[0].once, pair[1].once = s.once, pair[0].once
	}
	for _, s := range texts {
		if s != "" {
			m.texts[maphash.String(m.seed, s)%uint64(n)] = s
		}
	}
}

// text returns the remembered string of the bytes, or remembers one.
func (m *memory) text(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	if len(raw) > longestText {
		return string(raw)
	}
	if len(m.texts) == 0 {
		m.miss()
	}
	h := maphash.Bytes(m.seed, raw)
	if s := m.texts[h%uint64(len(m.texts))]; s == string(raw) {
		return s
	}
	m.miss()
	s := string(raw)
	m.texts[h%uint64(len(m.texts))] = s
	return s
}

// small has numbers that pointers of many objects point to.
type small struct {
	truths [2]bool
	n32    [128]int32
	n64    [128]int64
}

func newSmall() *small {
	s := &small{truths: [2]bool{false, true}}
	for i := range s.n32 {
		s.n32[i], s.n64[i] = int32(i), int64(i)
	}
	return s
}

func (s *small) truth(is bool) *bool {
	if is {
		return &s.truths[1]
	}
	return &s.truths[0]
}

func (s *small) number32(n int32) *int32 {
	if n >= 0 && int(n) < len(s.n32) {
		return &s.n32[n]
	}
	return &n
}

func (s *small) number64(n int64) *int64 {
	if n >= 0 && n < int64(len(s.n64)) {
		return &s.n64[n]
	}
	return &n
}

// Shares reports whether the table knows the type. Otherwise it decodes nothing.
func (t *Table) Shares() bool { return t.plan.fields != nil }
