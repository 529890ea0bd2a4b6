package tree

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// longest is the length of the longest text that is remembered.
	longest = 2048
	// ways is how many places a text may be in.
	ways = 4
	// least and most bound the number of places.
	least, most = 256, 1 << 17
	// mostText bounds the bytes of all texts of a table.
	mostText = 16 << 20
)

// Table remembers values by their JSON texts. The zero value is ready for use. It is safe for
// concurrent use, and has no lock: what one goroutine remembers, another one may overwrite.
type Table struct{ current atomic.Pointer[places] }

// places are the places of a table. Their number never changes.
type places struct {
	seed maphash.Seed
	// all are in groups of as many as a text may be in.
	all []atomic.Pointer[entry]
	// once are hashes of texts that were seen for the first time.
	once []atomic.Uint32
	// added counts what has entered, text is the bytes of the texts that are in.
	added, text atomic.Int64
}

// entry is a value that is remembered.
type entry struct {
	hash  uint64
	text  string
	value any
	// asked: it was found since a search for room passed it last.
	asked atomic.Bool
}

func newPlaces(n int, seed maphash.Seed) *places {
	return &places{seed: seed, all: make([]atomic.Pointer[entry], n), once: make([]atomic.Uint32, 2*n)}
}

// now returns the places to use for an object.
func (t *Table) now() *places {
	p := t.current.Load()
	if p == nil {
		t.current.CompareAndSwap(nil, newPlaces(least, maphash.MakeSeed()))
		return t.current.Load()
	}
	return p
}

func (p *places) group(hash uint64) []atomic.Pointer[entry] {
	at := hash % uint64(len(p.all)/ways) * ways
	return p.all[at : at+ways]
}

// find returns the value of a text.
func (p *places) find(hash uint64, text []byte) (any, bool) {
	group := p.group(hash)
	for i := range group {
		if e := group[i].Load(); e != nil && e.hash == hash && e.text == string(text) {
			if !e.asked.Load() {
				e.asked.Store(true)
			}
			return e.value, true
		}
	}
	return nil, false
}

// remember notes a text, and remembers its value if the text was noted before.
func (t *Table) remember(p *places, hash uint64, text []byte, v any) {
	note, mark := &p.once[hash%uint64(len(p.once))], uint32(hash>>32)|1
	if note.Load() != mark {
		note.Store(mark)
		return
	}
	p.put(&entry{hash: hash, text: string(text), value: v})
	if p.added.Add(1) == int64(len(p.all)/2) && len(p.all) < most {
		t.grow(p)
	}
}

// put puts an entry into a free place of its group, or into that of an entry that was not asked
// for. With too much text in the table, such entries go as well.
func (p *places) put(e *entry) {
	group := p.group(e.hash)
	at := p.place(group, e.hash)
	p.swap(at, e)
	if p.text.Load() <= mostText {
		return
	}
	for i := range group {
		if old := group[i].Load(); old != nil && !old.asked.Swap(false) {
			p.swap(&group[i], nil)
		}
	}
}

// place returns the place of a group that is for a new entry.
func (p *places) place(group []atomic.Pointer[entry], hash uint64) *atomic.Pointer[entry] {
	for i := range group {
		if group[i].Load() == nil {
			return &group[i]
		}
	}
	for i := range group {
		if old := group[i].Load(); old == nil || !old.asked.Swap(false) {
			return &group[i]
		}
	}
	return &group[hash>>32%ways]
}

func (p *places) swap(at *atomic.Pointer[entry], e *entry) {
	if e != nil {
		p.text.Add(int64(len(e.text)))
	}
	if old := at.Swap(e); old != nil {
		p.text.Add(-int64(len(old.text)))
	}
}

// grow doubles the places.
func (t *Table) grow(p *places) {
	larger := newPlaces(2*len(p.all), p.seed)
	for i := range p.all {
		if e := p.all[i].Load(); e != nil {
			larger.put(e)
		}
	}
	larger.added.Store(int64(len(p.all) / 2))
	t.current.CompareAndSwap(p, larger)
}
