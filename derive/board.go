package derive

import (
	"iter"
	"maps"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// post is a label set or a selector, in a scope. Only posts of one scope match.
type post struct {
	scope    string
	set      map[string]string // of a label set
	selector labels.Selector   // nil: this is a label set
	text     string            // of the selector
	// cell is that of the entry whose post this is. Else the post is that of a selection.
	cell      cell
	selection *selected
}

// sameAs tells whether two posts match the same.
func (p *post) sameAs(q *post) bool {
	return p.scope == q.scope && (p.selector == nil) == (q.selector == nil) && p.text == q.text && maps.Equal(p.set, q.set)
}

// place is where a post hangs. An empty key is for all of the scope.
type place struct{ scope, key, value string }

// board finds the selectors that match a label set, and the label sets that a selector matches,
// without a look at all of them.
//
// A selector hangs at one label that it requires; it hangs at several places if that label may
// have several values, and at its whole scope if it requires none. So one label set finds all
// selectors that can match it at its own labels and at its scope. A label set hangs at those of
// its labels whose keys selectors hang at, or were looked up by of late.
type board struct {
	sets, selectors map[place]map[*post]struct{}
	// wanted has the keys at which label sets hang, and how many selectors hang there. The keys
	// that have none are counted in spare.
	wanted map[string]int
	spare  int
	all    map[*post]struct{} // label sets
}

func newBoard() *board {
	return &board{
		sets: make(map[place]map[*post]struct{}), selectors: make(map[place]map[*post]struct{}),
		wanted: make(map[string]int), all: make(map[*post]struct{}),
	}
}

func (b *board) add(p *post) {
	if p.selector != nil {
		for at := range p.required() {
			hang(b.selectors, at, p)
			b.use(at.key, 1)
		}
		return
	}
	b.all[p] = struct{}{}
	for at := range b.placesOf(p) {
		hang(b.sets, at, p)
	}
}

func (b *board) remove(p *post) {
	if p.selector != nil {
		for at := range p.required() {
			unhang(b.selectors, at, p)
			b.use(at.key, -1)
		}
		return
	}
	delete(b.all, p)
	for at := range b.placesOf(p) {
		unhang(b.sets, at, p)
	}
}

func hang(on map[place]map[*post]struct{}, at place, p *post) {
	if on[at] == nil {
		on[at] = make(map[*post]struct{})
	}
	on[at][p] = struct{}{}
}

func unhang(on map[place]map[*post]struct{}, at place, p *post) {
	if delete(on[at], p); len(on[at]) == 0 {
		delete(on, at)
	}
}

// matching returns the posts of the other kind that match, in any order, each once.
func (b *board) matching(p *post) iter.Seq[*post] {
	if p.selector == nil {
		return func(yield func(*post) bool) {
			for at := range p.places() {
				for q := range b.selectors[at] {
					if q.selector.Matches(labels.Set(p.set)) && !yield(q) {
						return
					}
				}
			}
		}
	}
	return func(yield func(*post) bool) {
		for at := range p.required() {
			b.want(at.key)
			for q := range b.sets[at] {
				if p.selector.Matches(labels.Set(q.set)) && !yield(q) {
					return
				}
			}
		}
	}
}

// want hangs the label sets at a label, before it is looked at for the first time.
func (b *board) want(key string) {
	if _, is := b.wanted[key]; is {
		return
	}
	b.forget()
	b.wanted[key] = 0
	b.spare++
	for p := range b.all {
		for at := range p.places() {
			if at.key == key {
				hang(b.sets, at, p)
			}
		}
	}
}

// use counts the selectors at a key.
func (b *board) use(key string, by int) {
	b.want(key)
	n := b.wanted[key]
	b.wanted[key] = n + by
	switch {
	case n == 0:
		b.spare--
	case n+by == 0:
		b.spare++
	}
}

// forget takes the label sets off the keys at which no selector hangs, once there are many of
// these: else a program whose selectors have ever new keys would hold all of them.
func (b *board) forget() {
	if b.spare <= 16+len(b.wanted)/2 {
		return
	}
	for at := range b.sets {
		if b.wanted[at.key] == 0 {
			delete(b.sets, at)
		}
	}
	maps.DeleteFunc(b.wanted, func(_ string, selectors int) bool { return selectors == 0 })
	b.spare = 0
}

// places returns a label set's labels, and its scope.
func (p *post) places() iter.Seq[place] {
	return func(yield func(place) bool) {
		for k, v := range p.set {
			if k != "" && !yield(place{p.scope, k, v}) {
				return
			}
		}
		yield(place{p.scope, "", ""})
	}
}

func (b *board) placesOf(p *post) iter.Seq[place] {
	return func(yield func(place) bool) {
		for at := range p.places() {
			if _, is := b.wanted[at.key]; is && !yield(at) {
				return
			}
		}
	}
}

// required returns the places at which a selector hangs: of the labels that it requires, that with
// the fewest values. A selector that matches nothing hangs nowhere. An empty key is no label's: it
// stands for the scope.
func (p *post) required() iter.Seq[place] {
	return func(yield func(place) bool) {
		needs, selectable := p.selector.Requirements()
		if !selectable {
			return
		}
		best := -1
		for i := range needs {
			if needs[i].Key() == "" {
				continue
			}
			switch needs[i].Operator() {
			case selection.Equals, selection.DoubleEquals, selection.In:
				if best < 0 || needs[i].Values().Len() < needs[best].Values().Len() {
					best = i
				}
			}
		}
		if best < 0 {
			yield(place{p.scope, "", ""})
			return
		}
		for value := range needs[best].Values() {
			if !yield(place{p.scope, needs[best].Key(), value}) {
				return
			}
		}
	}
}
