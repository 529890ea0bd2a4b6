package derive

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// live is a node of the package, behind functions on texts.
type live struct {
	get              func(r *Reader, key string) string
	all, invalid     func(r *Reader) string
	length           func(r *Reader) string
	value            func(r *Reader) string
	members          func(r *Reader, group string) string
	chosen           func(r *Reader, l look) string
	keep             func(r *Reader, l look) func() string
	follow           func() *copied
	mapped           func(s *spec) *live
	flat             func(s *spec) *live // nil: no FlatMap of this type is compiled
	grouped, matched func(s *spec) *live
	keyed            func() *live
}

// copied is a copy of a collection that is kept by its changes.
type copied struct {
	apply func(r *Reader, to map[string]string) (odd string)
	done  func()
	kept  map[string]string
}

// declare makes a node of a spec.
func (m *model) declare(s *spec) *live {
	switch s.kind {
	case kObjects:
		c := Objects(m.g, s.name, func(w *scene) []*metav1.PartialObjectMetadata { return w.objects })
		return collectionOf(m, c, names, objectText)
	case kRecords:
		return collectionOf(m, Slice(m.g, s.name, func(w *scene) []record { return w.records }, func(r record) string { return r.Key }), texts, recordText)
	case kPointers:
		return collectionOf(m, Slice(m.g, s.name, func(w *scene) []*record { return w.pointers }, func(r *record) string { return r.Key }), texts, pointerText)
	case kText:
		return valueOf(Input(m.g, s.name, func(w *scene) string { return w.text }), func(v string) string { return v })
	case kNumber:
		return valueOf(Input(m.g, s.name, func(w *scene) int { return w.number }, Equal(func(a, b int) bool { return a == b })), strconv.Itoa)
	case kCompute:
		return valueOf(Compute(m.g, s.name, func(r *Reader) (val, error) {
			v, _, err := m.call(s, r, "", "")
			return v, err
		}, s.options()...), s.text)
	case kMap:
		return m.nodes[s.in].mapped(s)
	case kFlat:
		return m.nodes[s.in].flat(s)
	case kGroups:
		return m.nodes[s.in].grouped(s)
	case kKeys:
		return m.nodes[s.in].keyed()
	}
	return m.nodes[s.in].matched(s)
}

func (s *spec) options() []Option[val] {
	if s.coarse {
		return []Option[val]{Equal(sameSeen)}
	}
	return nil
}

// keys writes and reads keys of a type.
type keys[K comparable] struct {
	text func(K) string
	of   func(string) K
}

var (
	texts = keys[string]{func(k string) string { return k }, func(k string) string { return k }}
	names = keys[types.NamespacedName]{types.NamespacedName.String, nameOf}
)

func fromKeys[K comparable](k keys[K]) keys[From[K, string]] {
	return keys[From[K, string]]{
		text: func(f From[K, string]) string { return k.text(f.From) + " " + f.Key },
		of: func(text string) From[K, string] {
			i := strings.LastIndexByte(text, ' ')
			return From[K, string]{k.of(text[:i]), text[i+1:]}
		},
	}
}

func answerOf[V any](v V, err error, text func(V) string) string {
	if err == nil {
		return text(v)
	}
	if entry := (*EntryError)(nil); err != ErrNone && !errors.As(err, &entry) {
		return "not an error of a look-up: " + err.Error()
	}
	return "!" + err.Error()
}

func valueOf[V any](v Value[V], text func(V) string) *live {
	return &live{value: func(r *Reader) string {
		x, err := v.Get(r)
		return answerOf(x, err, text)
	}}
}

// lookable is a collection without the nodes that can be made of it.
func lookable[K comparable, V any](c Collection[K, V], k keys[K], text func(V) string) *live {
	l := &live{}
	l.get = func(r *Reader, key string) string {
		v, err := c.Get(r, k.of(key))
		return answerOf(v, err, text)
	}
	l.all = func(r *Reader) string {
		var b strings.Builder
		for key, v := range c.All(r) {
			b.WriteString(k.text(key) + "=" + text(v) + ";")
		}
		return b.String()
	}
	l.invalid = func(r *Reader) string {
		var b strings.Builder
		for key, err := range c.Invalid(r) {
			b.WriteString(k.text(key) + "=" + err.Error() + ";")
		}
		return b.String()
	}
	l.length = func(r *Reader) string { return strconv.Itoa(c.Len(r)) }
	l.follow = func() *copied {
		f := ChangesOf(c)
		return &copied{done: f.Done, kept: map[string]string{}, apply: func(r *Reader, to map[string]string) (odd string) {
			last := ""
			for ch := range f.All(r) {
				key := k.text(ch.Key)
				if key < last {
					odd = key + " comes after " + last
				}
				last = key
				if was, has := to[key]; ch.Old != nil && was != "."+text(*ch.Old) || ch.Old == nil && has && was[0] != '!' {
					odd = fmt.Sprintf("%s was %q, and the change says %v", key, was, ch.Old)
				}
				switch {
				case ch.New != nil:
					to[key] = "." + text(*ch.New)
				case ch.Err != nil:
					to[key] = "!" + ch.Err.Error()
				default:
					delete(to, key)
				}
			}
			return odd
		}}
	}
	return l
}

func groupText[K comparable, V any](k keys[K], text func(V) string) func(Group[K, V]) string {
	return func(g Group[K, V]) string {
		var b strings.Builder
		for key, v := range g.All() {
			b.WriteString(k.text(key) + "=" + text(v) + ";")
		}
		return b.String()
	}
}

// mappable adds the Map of a collection.
func mappable[K comparable, V any](m *model, c Collection[K, V], k keys[K], text func(V) string) *live {
	l := lookable(c, k, text)
	l.mapped = func(s *spec) *live {
		out := Map(c, s.name, func(r *Reader, key K, v V) (val, error) {
			x, _, err := m.call(s, r, k.text(key), text(v))
			return x, err
		}, s.options()...)
		return collectionOf(m, out, k, s.text)
	}
	return l
}

// collectionOf is a collection with all that can be made of it.
func collectionOf[K comparable, V any](m *model, c Collection[K, V], k keys[K], text func(V) string) *live {
	l := mappable(m, c, k, text)
	members := groupText(k, text)
	l.grouped = func(s *spec) *live {
		x := GroupBy(c, s.name, func(key K, v V) []string { return s.groupsFor(k.text(key), text(v)) })
		g := mappable(m, x.Groups(), texts, members)
		g.members = func(r *Reader, group string) string { return members(x.Members(r, group)) }
		g.keep = func(r *Reader, l look) func() string {
			kept := x.Members(r, l.key)
			return func() string { return members(kept) }
		}
		g.keyed = func() *live {
			return flattened(m, mappable(m, x.Keys(), texts, func(struct{}) string { return "" }), x.Keys(), nil)
		}
		return g
	}
	l.matched = func(s *spec) *live {
		if s.kind == kLabels {
			x := ByLabels(c, s.name, func(key K, v V) (string, map[string]string) { return s.labelsFor(k.text(key), text(v)) })
			return chosen(func(r *Reader, l look) Group[K, V] {
				return x.Select(r, scopes[l.n%2], selectors[l.n/2%len(selectors)])
			}, members)
		}
		x := BySelector(c, s.name, func(key K, v V) (string, labels.Selector) { return s.selectorFor(k.text(key), text(v)) })
		return chosen(func(r *Reader, l look) Group[K, V] {
			return x.Matching(r, scopes[l.n%2], labelSets[l.n/2%len(labelSets)])
		}, members)
	}
	return flattened(m, l, c, text)
}

func chosen[K comparable, V any](choose func(r *Reader, l look) Group[K, V], members func(Group[K, V]) string) *live {
	return &live{
		chosen: func(r *Reader, l look) string { return members(choose(r, l)) },
		keep: func(r *Reader, l look) func() string {
			kept := choose(r, l)
			return func() string { return members(kept) }
		},
	}
}

// flattened adds the FlatMap of a collection, if there is one of its type.
func flattened(m *model, l *live, c, texted any) *live {
	text, _ := texted.(func(val) string)
	switch c := c.(type) {
	case Collection[types.NamespacedName, *metav1.PartialObjectMetadata]:
		l.flat = func(s *spec) *live { return flatOf(m, s, c, names, objectText) }
	case Collection[types.NamespacedName, val]:
		l.flat = func(s *spec) *live { return flatOf(m, s, c, names, text) }
	case Collection[string, record]:
		l.flat = func(s *spec) *live { return flatOf(m, s, c, texts, recordText) }
	case Collection[string, *record]:
		l.flat = func(s *spec) *live { return flatOf(m, s, c, texts, pointerText) }
	case Collection[string, val]:
		l.flat = func(s *spec) *live { return flatOf(m, s, c, texts, text) }
	case Collection[string, struct{}]:
		l.flat = func(s *spec) *live { return flatOf(m, s, c, texts, func(struct{}) string { return "" }) }
	case Collection[From[types.NamespacedName, string], val]:
		l.flat = func(s *spec) *live { return flatOf(m, s, c, fromKeys(names), text) }
	}
	return l
}

func flatOf[K comparable, V any](m *model, s *spec, c Collection[K, V], k keys[K], text func(V) string) *live {
	out := FlatMap(c, s.name, func(r *Reader, key K, v V, put func(string, val)) error {
		_, puts, err := m.call(s, r, k.text(key), text(v))
		for _, p := range puts {
			put(p.key, p.val)
		}
		return err
	}, s.options()...)
	return collectionOf(m, out, fromKeys(k), s.text)
}

// call runs a function of a node for the package, and counts the run.
func (m *model) call(s *spec, r *Reader, key, in string) (v val, puts []putting, err error) {
	if m.counting {
		m.ran[runOf{s.index, key}]++
	}
	return s.run(reading{m, r}, key, in)
}

// reading answers the look-ups of a function through its Reader.
type reading struct {
	m *model
	r *Reader
}

func (e reading) look(l look) string {
	n := e.m.nodes[l.node]
	switch l.how {
	case 'g':
		return n.get(e.r, l.key)
	case 'a':
		return n.all(e.r)
	case 'i':
		return n.invalid(e.r)
	case 'l':
		return n.length(e.r)
	case 'm':
		return n.members(e.r, l.key)
	case 'v':
		return n.value(e.r)
	case 'f':
		if n.value != nil {
			return n.value(e.r)
		}
		return n.length(e.r)
	}
	return n.chosen(e.r, l)
}
