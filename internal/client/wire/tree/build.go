package tree

import (
	"bytes"
	"hash/maphash"
	"strconv"
	"sync"

	kjson "sigs.k8s.io/json"
)

// Decode decodes a JSON object as sigs.k8s.io/json does: integers are int64 where they fit, other
// numbers are float64. Maps and slices that are in it may be those of other objects, if share is
// true; the map of the object itself is its own. It returns false for what it leaves to plain
// decoding: what is no object or no valid JSON, has a key twice or is nested very deeply. A nil
// table leaves everything.
func (t *Table) Decode(raw []byte, share bool) (map[string]any, bool) {
	if t == nil {
		return nil, false
	}
	b := builders.Get().(*builder)
	defer b.release()
	if !b.scan(raw) {
		return nil, false
	}
	b.table, b.places, b.share = t, t.now(), share
	m := b.object(0)
	if b.failed {
		return nil, false
	}
	return m, true
}

var builders = sync.Pool{New: func() any { return new(builder) }}

// builder makes the values of one text.
type builder struct {
	scanner
	table  *Table
	places *places
	share  bool
	// failed: a key is there twice, or a number does not fit.
	failed bool
}

// mostNodes is how many nodes a builder keeps room for.
const mostNodes = 1 << 16

func (b *builder) release() {
	nodes := b.nodes
	if cap(nodes) > mostNodes {
		nodes = nil
	}
	*b = builder{scanner: scanner{nodes: nodes}}
	builders.Put(b)
}

// value makes the value of a node.
func (b *builder) value(i int32) any {
	text := b.raw[b.nodes[i].from:b.nodes[i].to]
	switch text[0] {
	case 't':
		return true
	case 'f':
		return false
	case 'n':
		return nil
	case '{', '[':
		if !b.share {
			return b.make(i, text)
		}
	}
	if len(text) > longest {
		return b.make(i, text)
	}
	hash := maphash.Bytes(b.places.seed, text)
	if v, ok := b.places.find(hash, text); ok {
		return v
	}
	v := b.make(i, text)
	if !b.failed {
		b.table.remember(b.places, hash, text, v)
	}
	return v
}

// make makes a value that nothing has been remembered of.
func (b *builder) make(i int32, text []byte) any {
	switch text[0] {
	case '{':
		return b.object(i)
	case '[':
		l := make([]any, b.nodes[i].count)
		at := i + 1
		for j := range l {
			l[j] = b.value(at)
			at = b.nodes[at].next
		}
		return l
	case '"':
		return b.text(text)
	}
	return b.number(string(text))
}

func (b *builder) object(i int32) map[string]any {
	n := b.nodes[i].count
	m := make(map[string]any, n)
	at := i + 1
	for range n {
		key := b.value(at).(string)
		m[key] = b.value(at + 1)
		at = b.nodes[at+1].next
	}
	if len(m) != int(n) {
		b.failed = true
	}
	return m
}

// text makes a string.
func (b *builder) text(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	if kjson.UnmarshalCaseSensitivePreserveInts(quoted, &s) != nil {
		b.failed = true
	}
	return s
}

func (b *builder) number(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		b.failed = true
	}
	return f
}
