package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/object"
)

// PageSize is the default number of items in a page: client-go's.
const PageSize = 500

// ListOnce makes one list request and hands its items to put.
type ListOnce func(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error)

// Pages lists in pages of one version, and returns that of the first page. Each try asks start
// where the items go. Where the version expires half-way, Pages starts over with one page of
// everything. It does so, too, where the last name of a page may be no valid UTF-8. The server
// writes that name into the token as JSON, which changes such a name, and the token may lead to
// another place. Pages does not follow a
// server in circles: a token that comes again is an error, and so are too many pages without an
// item.
func Pages(ctx context.Context, list ListOnce, first metav1.ListOptions, start func() func(runtime.Object) error) (rv string, err error) {
	if first.Limit <= 0 {
		first.Limit = PageSize
	}
	o, way := first, newWay(start())
	for {
		lockorder.CallOut("a list request")
		m, err := list(ctx, o, way.put)
		switch {
		case err != nil && o.Continue != "" && o.Limit > 0 && Expired(err),
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

// ObjectsMost is how many objects a stream, or a list, may have where nothing is said. No API
// server stores as many: one that goes on and on lies.
const ObjectsMost = 10_000_000

// ErrTooMany says that there is no room for another object.
var ErrTooMany = errors.New("too many objects")

// TooMany is [ErrTooMany] for one list, or one stream.
func TooMany(most int) error {
	return fmt.Errorf("%w: a watch or a list may have %d (WithMaxObjects sets a lower bound for all watches): "+
		"select fewer by a narrower selector", ErrTooMany, most)
}

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
		if w.all++; w.all > ObjectsMost {
			return TooMany(ObjectsMost)
		}
		w.last = item
		return put(item)
	}
	return w
}

// astray reports whether the token behind the last item may lead elsewhere.
func (w *way) astray() bool {
	o, ok := w.last.(object.Object)
	return ok && object.Ambiguous(object.KeyOf(o))
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

const (
	// pageTimeout bounds the request of one page.
	pageTimeout = 3 * time.Minute
	// wholeTimeout bounds that of a list in one page, which may be of any size.
	wholeTimeout = 30 * time.Minute
)

// pageTime is how long a request may take.
func pageTime(o metav1.ListOptions) time.Duration {
	if o.Limit == 0 {
		return wholeTimeout
	}
	return pageTimeout
}

// ListInPages lists in pages of a size, as [Pages] does. Where the source allows it, each page is
// asked for while the one before is read. Without a size, the first page has [PageSize] objects.
// The others have about 4 MiB, by the size of the objects that have come.
func (r Requests) ListInPages(ctx context.Context, size int64, start func() func(runtime.Object) error) (rv string, err error) {
	o, list := r.Options(), r.page
	o.Limit = cmp.Or(max(size, 0), PageSize)
	if source, ok := r.Source.(Opener); ok {
		pages := &ahead{source: source, most: pageTime}
		if size <= 0 {
			pages.sizes = &sizes{}
		}
		defer pages.close()
		list = pages.list
	}
	return Pages(ctx, list, o, start)
}

// ListPatiently is [Requests.ListInPages] of the list with these options, for somebody who waits.
func (r Requests) ListPatiently(
	ctx context.Context, o metav1.ListOptions, start func() func(runtime.Object) error,
) (rv string, err error) {
	return Pages(ctx, patient(r.Source.ListItems), o, start)
}

// page asks for a page, or, without a limit, for the whole list. A page that does not come is
// given up. The server's own time limit for a request is a minute.
func (r Requests) page(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTime(o))
	defer cancel()
	return r.Source.ListItems(ctx, o, put)
}
