package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/internal/object"
)

// Sources makes the source of one resource, in one namespace or in all (""), in the form that the
// objects are to have.
type Sources func(r object.Resource, namespace string, form object.Form) Source

// Source lists and watches one resource, with the options of the Kubernetes API (selectors,
// resource versions, pages). Several goroutines may use it at once. Nobody else has the objects
// that it delivers. [Plain] makes one of any lister and watcher of client-go.
type Source interface {
	// ListItems makes one list request. It hands the items to put one by one, as they come, so
	// that the list is never held as a whole. An error of put ends the list. What was put before
	// an error counts for nothing.
	ListItems(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error)
	// WatchWithContext opens a watch. The end of ctx ends it.
	WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	// Lists says how first lists are made.
	Lists() ListMode
	// Form is the form in which objects are delivered now, where that may be another than the
	// one asked for: not every client and server can send metadata alone. The stream then shortens
	// them, and its status says so. For typed objects it also names their encoding.
	Form() object.Form
	// Typed makes a typed object of an untyped one (the answer to an own write), in memory of its
	// own, as it would have been decoded from the wire. An error means that it does not decode.
	Typed(o *unstructured.Unstructured) (object.Object, error)
	// Compact lets typed objects share memory. It is called once for an object that is about to be
	// stored, or to be compared with what is stored. Nobody else has it yet. Unless it is final, a
	// [object.Transform] may still write to it. before is nil, or another version of the object,
	// which is published: it is only read. It need not have the object's Go type.
	Compact(o, before object.Object, final bool)
	// Within returns the source of one namespace, for a source of all namespaces, or nil if it has
	// none. A server finds an object by its namespace and name at once; by its name alone it
	// searches all objects.
	Within(namespace string) Source
}

// Clock is a [Source] that knows its server's newest version without a request.
type Clock interface {
	Source
	NewestRV() string
}

// Receiver is a [Source] that has more of its objects than it delivers.
type Receiver interface {
	// Receiving returns the source that delivers each object as an [object.Received].
	Receiving() Source
}

// ListMode says how the first list of a stream is made.
type ListMode int

const (
	// ListsAsConfigured follows [Config.StreamLists].
	ListsAsConfigured ListMode = iota
	// ListsPaged lists in pages.
	ListsPaged
	// ListsStreamed lists as a stream of events (KEP-3157).
	ListsStreamed
)

// Plain is the [Source] of a lister and watcher that does nothing more. Embed it to offer more.
type Plain struct {
	cache.ListerWatcherWithContext
	// Delivers is the form of the objects.
	Delivers object.Form
	Untyped
}

// ListItems lists as a whole and hands out the items.
func (p Plain) ListItems(ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error) (metav1.ListMeta, error) {
	list, err := p.ListWithContext(ctx, o)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	return EachItem(list, put)
}

// Form is the one that the objects have.
func (p Plain) Form() object.Form { return p.Delivers }

// EachItem hands out the items of a list. It returns the list's metadata.
func EachItem(list runtime.Object, put func(runtime.Object) error) (m metav1.ListMeta, err error) {
	of, err := meta.ListAccessor(list)
	if err != nil {
		return m, fmt.Errorf("a list of %T: %w", list, err)
	}
	m.ResourceVersion, m.Continue = of.GetResourceVersion(), of.GetContinue()
	m.RemainingItemCount = of.GetRemainingItemCount()
	switch l := list.(type) {
	case metav1.ShardedListInterface:
		m.ShardInfo = l.GetShardInfo()
	case *unstructured.UnstructuredList:
		if s, ok, _ := unstructured.NestedString(l.Object, "metadata", "shardInfo", "selector"); ok {
			m.ShardInfo = &metav1.ShardInfo{Selector: s}
		}
	}
	return m, meta.EachListItem(list, put)
}

// Untyped is what a [Source] without Go types of its own embeds.
type Untyped struct{}

// Lists is as configured.
func (Untyped) Lists() ListMode { return ListsAsConfigured }

// Typed knows no Go types.
func (Untyped) Typed(*unstructured.Unstructured) (object.Object, error) {
	return nil, errors.New("its source knows no Go type for it")
}

// Compact does nothing.
func (Untyped) Compact(_, _ object.Object, _ bool) {}

// Within is nil: there is no narrower source.
func (Untyped) Within(string) Source { return nil }

// Packer is a [Source] whose objects can be kept in a file, see package warm. Its methods may be
// called by several goroutines at once.
type Packer interface {
	// Pack returns an object, as a stream without a transform holds it, in wire form. It writes to
	// nothing. The error quotes nothing of the object.
	Pack(o object.Object) ([]byte, error)
	// Unpack makes of that what a list would have brought. It may write to the bytes, and keep
	// them.
	Unpack(raw []byte) (object.Object, error)
	// Packing names the form, and the Go type: Unpack reads only what was packed under the same
	// name.
	Packing() string
}

// Pack packs as JSON.
func (Untyped) Pack(o object.Object) ([]byte, error) {
	switch o.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return json.Marshal(o)
	}
	return nil, fmt.Errorf("a %T cannot be kept", o)
}

// Unpack makes an untyped object, which the stream puts into its form.
func (Untyped) Unpack(raw []byte) (object.Object, error) {
	u := &unstructured.Unstructured{}
	return u, utiljson.Unmarshal(raw, &u.Object)
}

// Packing is that of JSON.
func (Untyped) Packing() string { return "plain" }
