package query

import (
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
)

// Past is how new what a reader has had under each name of a query is. A query that takes the
// name, at once or later, has to be as new: nothing that was shown is taken back (G5). The zero
// value is empty.
type Past struct {
	mu  lockorder.Mutex[lockorder.Past]
	had map[pastKey]position // bounded by the names and the resources that were ever watched
}

// pastKey is a query's name and a stored resource: versions compare within one.
type pastKey struct{ name, storage string }

// note adds how new what the reader has is now. With newHistory versions from before do not
// compare.
func (p *Past) note(name string, at position, newHistory bool) {
	if at.storage == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.had == nil {
		p.had = make(map[pastKey]position)
	}
	key := pastKey{name, at.storage}
	if !newHistory {
		old := p.had[key]
		at.rv, at.deletion = coherence.Newest(at.rv, old.rv), max(at.deletion, old.deletion)
	}
	p.had[key] = at
}

// of returns what was noted of a name and a resource.
func (p *Past) of(name, storage string) position {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.had[pastKey{name, storage}]
	at.storage = storage
	return at
}

// Forget forgets everything: nothing of it was shown.
func (p *Past) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.had = nil
}
