package stream

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/object"
)

// pageSize is the default number of items in a page: client-go's.
const pageSize = 500

// ListOnce makes one list request and hands its items to put.
type ListOnce func(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error)

// Pages lists in pages of one version, and returns that of the first page. Each try asks start
// where the items go. Where the version expires half-way, Pages starts over with one page of
// everything. It does so, too, where a page ends with a name that JSON may not say: a server writes
// this name into the token, as JSON, so that the token may lead elsewhere. Pages does not follow a
// server in circles: a token that comes again is an error, and so are too many pages without an
// item.
func Pages(ctx context.Context, list ListOnce, first metav1.ListOptions, start func() func(runtime.Object) error) (rv string, err error) {
	if first.Limit <= 0 {
		first.Limit = pageSize
	}
	o, way := first, newWay(start())
	for {
		lockorder.CallOut("a list request")
		m, err := list(ctx, o, way.put)
		switch {
		case err != nil && o.Continue != "" && o.Limit > 0 && expired(err),
			err == nil && m.Continue != "" && o.Limit > 0 && way.astray():
			o, way = first, newWay(start())
			o.Limit = 0
			continue
		case err != nil:
			return "", err
		}
		if way.pages == 0 {
			rv = m.ResourceVersion // what came since then, the watch brings
		}
		o.ResourceVersion, o.ResourceVersionMatch = "", "" // the token stands for them
		if o.Continue = m.Continue; o.Continue == "" {
			return rv, nil
		}
		if err := way.goesOn(m.Continue); err != nil {
			return "", err
		}
	}
}

// emptyPages is how many pages in a row may have no item: a server may leave out the items that a
// selector drops.
const emptyPages = 1000

// tokenMost is how many bytes a token may have. A server's own has the name of an object, and is
// part of the next request's URL.
const tokenMost = 64 << 10

// way is the way through the pages of one list.
type way struct {
	put          func(runtime.Object) error
	pages, items int // items of the page that is being read
	empty        int // pages in a row
	all          int // items of all pages, also those that put drops
	tokens       map[[sha256.Size]byte]bool
	last         runtime.Object
}

func newWay(put func(runtime.Object) error) *way {
	w := &way{tokens: make(map[[sha256.Size]byte]bool)}
	w.put = func(item runtime.Object) error {
		w.items++
		if w.all++; w.all > objectsMost {
			return tooMany(objectsMost)
		}
		w.last = item
		return put(item)
	}
	return w
}

// astray reports whether the token behind the last item may lead elsewhere.
func (w *way) astray() bool {
	o, ok := w.last.(object.Object)
	return ok && Ambiguous(object.KeyOf(o))
}

// goesOn notes a page with a token for the next one. It is an error if the way leads nowhere.
func (w *way) goesOn(token string) error {
	w.pages++
	w.empty++
	if w.items > 0 {
		w.items, w.empty = 0, 0
	}
	if len(token) > tokenMost {
		return fmt.Errorf("the server gives a continue token of %d bytes: %d are the most that is sent back", len(token), tokenMost)
	}
	digest := sha256.Sum256([]byte(token))
	switch {
	case w.tokens[digest]:
		return errors.New("the server gives the same continue token twice in one list")
	case w.empty >= emptyPages:
		return fmt.Errorf("the server has given %d pages without an item, and goes on", w.empty)
	}
	w.tokens[digest] = true
	return nil
}

// patientTries is how often a list that somebody waits for is tried.
const patientTries = 5

// patiently lists for somebody who waits. Where the server says when to try again (it throttles,
// or is starting), it does so a few times, as long as ctx allows. A reflector does not: it shows
// what the server says, and goes on for ever.
func patiently(list ListOnce) ListOnce {
	return func(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error) {
		for tried := 1; ; tried++ {
			m, err := list(ctx, o, put)
			pause, later := advised(err)
			if err == nil || !later || tried == patientTries || ctx.Err() != nil {
				return m, err
			}
			Sleep(ctx, pause)
		}
	}
}

// within is the source to ask for what has a key.
func (r requests) within(key object.Key) Source {
	if r.namespace == "" && key.Namespace != "" {
		if narrow := r.source.Within(key.Namespace); narrow != nil {
			return narrow
		}
	}
	return r.source
}

// lookup lists one object as the stream would show it, no older than a version; nil if the stream
// would not show it. The second result is the version of the list.
func (r requests) lookup(ctx context.Context, key object.Key, notOlderThanRV string) (found object.Object, rv string, err error) {
	o := r.options()
	if coherence.Comparable(notOlderThanRV) {
		o.ResourceVersion, o.ResourceVersionMatch = notOlderThanRV, metav1.ResourceVersionMatchNotOlderThan
	}
	return r.lookupWith(ctx, key, o)
}

// lookupWith is lookup with options.
func (r requests) lookupWith(ctx context.Context, key object.Key, o metav1.ListOptions) (found object.Object, rv string, err error) {
	name := fields.OneTermEqualSelector("metadata.name", key.Name)
	if o.FieldSelector != "" {
		own, err := fields.ParseSelector(o.FieldSelector)
		if err != nil {
			return nil, "", err
		}
		name = fields.AndSelectors(own, name)
	}
	o.FieldSelector = name.String()
	lockorder.CallOut("the look-up of an object")
	list := patiently(r.within(key).ListItems)
	m, err := list(ctx, o, func(item runtime.Object) error {
		if o, ok := item.(object.Object); ok && object.KeyOf(o) == key {
			found = o
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return found, m.ResourceVersion, nil
}
