package wire

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/wire/frames"
	"github.com/kates-go/kates/internal/engine/source"
	objects "github.com/kates-go/kates/internal/object"
)

// kindError is an answer of another kind than the one that was asked for.
type kindError struct {
	what      string // aList or anObject
	got, want schema.GroupVersionKind
}

const (
	aList    = "a list"
	anObject = "an object"
)

func (e *kindError) Error() string {
	if e.got.Kind == "" || e.got.Version == "" {
		return fmt.Sprintf("%s that does not say what it is, in place of a %s", e.what, named(e.want))
	}
	return fmt.Sprintf("%s of kind %s in place of a %s", e.what, named(e.got), named(e.want))
}

// Is reports whether target is [object.ErrContradicts], and the answer is of another kind of the
// same group.
func (e *kindError) Is(target error) bool {
	return target == objects.ErrContradicts && e.got.Kind != "" && e.got.Group == e.want.Group && e.got.Kind != e.want.Kind
}

func named(k schema.GroupVersionKind) string {
	return plain.Clip(fmt.Sprintf("%s (%s)", k.Kind, k.GroupVersion()))
}

// lists judges what a kind's lists say of themselves. They are named after the kind. A custom kind
// may have another name for them, and nothing but a list tells it: the first one does. From then
// on an empty list of a third name is refused, as it could be of another kind. It is safe for
// concurrent use.
type lists struct {
	of   schema.GroupVersionKind // the items
	name atomic.Pointer[string]  // of the first list that was taken
}

func newLists(of schema.GroupVersionKind) *lists { return &lists{of: of} }

func (l *lists) wanted() schema.GroupVersionKind {
	want := l.of
	want.Kind += "List"
	return want
}

// custom reports whether the lists may have another name.
func (l *lists) custom() bool {
	return l.of != shortKind && !scheme.Scheme.Recognizes(l.wanted())
}

// shortKind is the kind of objects that are their metadata alone.
var shortKind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")

// listing is one list that is being read.
type listing struct {
	*lists
	said   schema.GroupVersionKind
	items  int
	silent int // items that do not say their kind
}

// accept judges what a list says of itself.
func (l *listing) accept(apiVersion, kind string) error {
	l.said = schema.FromAPIVersionAndKind(apiVersion, kind)
	want := l.wanted()
	another := l.said.GroupVersion() == want.GroupVersion() && kind != "" && kind != l.of.Kind
	if l.said == want || another && l.custom() {
		return nil
	}
	return l.other()
}

func (l *listing) other() error { return &kindError{what: aList, got: l.said, want: l.wanted()} }

// end judges a list that was read, with its items.
func (l *listing) end() error {
	name := l.name.Load()
	switch {
	case l.said == l.wanted() && name != nil, name != nil && *name == l.said.Kind:
		return nil
	case l.silent > 0 && l.said != l.wanted(), l.items == 0 && name != nil:
		return l.other()
	}
	l.name.Store(&l.said.Kind)
	return nil
}

// decode makes an object of an item of a list, or of an event.
type decode func(raw []byte, e frames.Encoding) (o objects.Object, silent bool, err error)

// readList reads the answer to a list, and closes it.
func (s *restSource) readList(
	body io.ReadCloser, d decode, put func(runtime.Object) error, head func(metav1.ListMeta),
) (metav1.ListMeta, frames.Encoding, error) {
	defer func() { _ = body.Close() }() // its error says nothing about what was read
	l := &listing{lists: s.lists}
	all := newItems(s.helpers, s.originals.ofItem(d), func(o objects.Object, silent bool) error {
		l.items++
		if silent {
			l.silent++
		}
		return put(o)
	})
	defer all.close()
	w := frames.Wanted{MaxObjectBytes: s.maxObjectBytes, Accept: l.accept, Head: head}
	m, e, err := frames.List(body, w, all.add)
	if earlier := all.flush(); earlier != nil {
		err = earlier // an item before is what was wrong first
	}
	if err == nil {
		err = l.end()
	}
	if err != nil {
		return m, e, fmt.Errorf("read a list: %w", err)
	}
	return m, e, nil
}

// page is the answer to a list.
type page struct {
	body *measured
	read func(put func(runtime.Object) error, head func(metav1.ListMeta)) (metav1.ListMeta, error)
}

// measured counts the bytes that are read of an answer.
type measured struct {
	io.ReadCloser
	bytes int64
}

func (m *measured) Read(into []byte) (int, error) {
	n, err := m.ReadCloser.Read(into)
	m.bytes += int64(n)
	return n, err
}

func (p *page) Items(put func(runtime.Object) error, head func(metav1.ListMeta)) (metav1.ListMeta, error) {
	return p.read(put, head)
}

func (p *page) Bytes() int64 { return p.body.bytes }

func (p *page) Close() { _ = p.body.Close() } // its error says nothing: nothing was read

// listItems makes one list request, and reads the answer.
func listItems(
	ctx context.Context, s source.Opener, o metav1.ListOptions, put func(runtime.Object) error,
) (metav1.ListMeta, error) {
	p, err := s.OpenPage(ctx, o)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	return p.Items(put, nil)
}
