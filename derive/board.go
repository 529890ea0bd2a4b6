package derive

import (
	"iter"
	"maps"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// post is a label set or a selector, in a scope. Only posts of one scope match.
type post[T any] struct {
	scope    string
	set      map[string]string // of a label set
	selector labels.Selector   // nil: this is a label set
	text     string            // of the selector
	of       T
}

// sameAs tells whether two posts match the same.
func (p *post[T]) sameAs(q *post[T]) bool {
	return p.scope == q.scope && (p.selector == nil) == (q.selector == nil) && p.text == q.text && maps.Equal(p.set, q.set)
}

// place is where a post hangs. An empty key is for all of the scope.
type place struct{ scope, key, value string }

// board finds the selectors that match a label set, and the label sets that a selector matches,
// without a look at all of them.
//
// A selector hangs at one label that it requires; it hangs at several places if that label may have
// several values, and at its whole scope if it requires none. So one label set finds all selectors
// that can match it at its own labels and at its scope. A label set hangs at those of its labels
// whose keys a selector was ever looked up by.
type board[T any] struct {
	sets, selectors map[place]map[*post[T]]struct{}
	wanted          map[string]bool
	all             map[*post[T]]struct{} // label sets
}

func newBoard[T any]() *board[T] {
	return &board[T]{
		sets: make(map[place]map[*post[T]]struct{}), selectors: make(map[place]map[*post[T]]struct{}),
		wanted: make(map[string]bool), all: make(map[*post[T]]struct{}),
	}
}

func (b *board[T]) add(p *post[T]) {
	if p.selector != nil {
		for at := range p.required() {
			hang(b.selectors, at, p)
		}
		return
	}
	b.all[p] = struct{}{}
	for at := range b.placesOf(p) {
		hang(b.sets, at, p)
	}
}

func (b *board[T]) remove(p *post[T]) {
	if p.selector != nil {
		for at := range p.required() {
			unhang(b.selectors, at, p)
		}
		return
	}
	delete(b.all, p)
	for at := range b.placesOf(p) {
		unhang(b.sets, at, p)
	}
}

func hang[T any](on map[place]map[*post[T]]struct{}, at place, p *post[T]) {
	if on[at] == nil {
		on[at] = make(map[*post[T]]struct{})
	}
	on[at][p] = struct{}{}
}

func unhang[T any](on map[place]map[*post[T]]struct{}, at place, p *post[T]) {
	if delete(on[at], p); len(on[at]) == 0 {
		delete(on, at)
	}
}

// matching returns the posts of the other kind that match, in any order, each once.
func (b *board[T]) matching(p *post[T]) iter.Seq[*post[T]] {
	if p.selector == nil {
		return func(yield func(*post[T]) bool) {
			for at := range p.places() {
				for q := range b.selectors[at] {
					if q.selector.Matches(labels.Set(p.set)) && !yield(q) {
						return
					}
				}
			}
		}
	}
	return func(yield func(*post[T]) bool) {
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
func (b *board[T]) want(key string) {
	if b.wanted[key] {
		return
	}
	b.wanted[key] = true
	for p := range b.all {
		if value, has := p.set[key]; has || key == "" {
			hang(b.sets, place{p.scope, key, value}, p)
		}
	}
}

// places returns a label set's labels, and its scope.
func (p *post[T]) places() iter.Seq[place] {
	return func(yield func(place) bool) {
		for k, v := range p.set {
			if k != "" && !yield(place{p.scope, k, v}) {
				return
			}
		}
		yield(place{p.scope, "", ""})
	}
}

func (b *board[T]) placesOf(p *post[T]) iter.Seq[place] {
	return func(yield func(place) bool) {
		for at := range p.places() {
			if b.wanted[at.key] && !yield(at) {
				return
			}
		}
	}
}

// required returns the places at which a selector hangs: of the labels that it requires, that with
// the fewest values. A selector that matches nothing hangs nowhere.
func (p *post[T]) required() iter.Seq[place] {
	return func(yield func(place) bool) {
		needs, selectable := p.selector.Requirements()
		if !selectable {
			return
		}
		best := -1
		for i := range needs {
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
