package fake

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// Source lists and watches a resource in one namespace, or in all if that is empty. The form is
// always whole objects. They cannot be kept in files: what a fake has is gone with its process.
func (s *Server) Source(r object.Resource, namespace string, _ object.Form) source.Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.Namespaced {
		namespace = ""
	}
	return &view{mirror: s.mirrorOf(r.GroupVersionResource), of: r, namespace: namespace}
}

type view struct {
	*mirror
	of        object.Resource
	namespace string
	listed    atomic.Pointer[listed]
}

// listed is what a watch goes on from.
type listed struct {
	fakeRV string // the version that the fake gave the list
}

func (s *view) in() dynamic.ResourceInterface {
	all := s.server.client.Resource(s.of.GroupVersionResource)
	if s.namespace == "" {
		return all
	}
	return all.Namespace(s.namespace)
}

// Within is the source of one namespace.
func (s *view) Within(namespace string) source.Source {
	return s.server.Source(s.of, namespace, object.Whole)
}

// Form is whole objects.
func (*view) Form() object.Form { return object.Whole }

// Lists is in one page, since the fake has no other.
func (*view) Lists() source.ListMode { return source.ListsPaged }

// Typed knows no Go types.
func (*view) Typed(*unstructured.Unstructured) (object.Object, error) {
	return nil, errors.New("a fake knows no Go types")
}

// Compact does nothing.
func (*view) Compact(_, _ object.Object, _ bool) {}

// NewestRV is the version of the server. Nobody asks the fake, which has none.
func (s *view) NewestRV() string {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return text(s.server.version)
}

// ListItems lists once. The version of the list is that of the server now, or, if something has
// happened meanwhile, when the list began.
func (s *view) ListItems(
	ctx context.Context, o metav1.ListOptions, put func(runtime.Object) error,
) (metav1.ListMeta, error) {
	selection, err := selectionOf(o)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	asked := s.beginRequest()
	defer asked.endRequest()
	before := s.tracked()
	list, err := s.in().List(ctx, o)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	s.drain()
	if list == nil { // a reactor has answered with nothing
		list = &unstructured.UnstructuredList{}
	}
	var items []object.Object
	m, err := source.EachItem(list, func(item runtime.Object) error {
		if one, ok := item.(object.Object); ok {
			items = append(items, one)
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	whole := o.Continue == "" && m.Continue == ""
	s.listed.Store(&listed{m.ResourceVersion})
	selected, rv := s.took(asked, items, selection, whole, before)
	m.ResourceVersion = text(rv)
	for _, one := range selected {
		if err := put(one); err != nil {
			return m, err
		}
	}
	return m, nil
}

// took takes in the items of a list. It returns those that are selected, with their stamps, and the
// version of the list. What a whole list lacks is gone, if the tracker does not have it either: a
// reactor may have answered this list alone.
func (s *view) took(
	asked *request, items []object.Object, selection object.Selection, whole bool, before map[object.Key]bool,
) (selected []runtime.Object, rv int64) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	there := make(map[object.Key]bool, len(items))
	isNow := whole
	for _, one := range items {
		key := object.KeyOf(one)
		there[key] = true
		state, known := asked.finds(key, one)
		if !known {
			state = s.add(key, one)
		}
		isNow = isNow && state.version == s.objects[key].now().version
		if Selects(s.of, selection, one) {
			selected = append(selected, object.Stamp(one, state.uid, text(state.version)))
		}
	}
	for key, h := range s.objects {
		now := h.now()
		if there[key] || now.object == nil || s.namespace != "" && s.namespace != key.Namespace ||
			!Selects(s.of, selection, now.object) {
			continue
		}
		if isNow = isNow && now.version <= asked.since; whole && now.version <= asked.since && !before[key] {
			s.add(key, nil)
		}
	}
	for key := range before {
		if s.objects[key].now().object != nil {
			s.had[key] = true
		}
	}
	rv = asked.since
	if isNow {
		rv = s.server.version
	}
	for w := range s.watchers {
		w.bookmark()
	}
	return selected, rv
}

// WatchWithContext watches from a version.
func (s *view) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	selection, err := selectionOf(o)
	if err != nil {
		return nil, err
	}
	fromRV, _ := strconv.ParseInt(o.ResourceVersion, 10, 64)
	known := s.listed.Load()
	if known != nil {
		o.ResourceVersion = known.fakeRV
	} else {
		o.ResourceVersion = ""
	}
	asked := s.beginRequest() // the states since now may come twice
	defer asked.endRequest()
	upstream, err := s.in().Watch(ctx, o)
	if err != nil {
		if s.check(); s.outdated(fromRV) {
			return nil, errExpired // no watch will bring it, but a list will
		}
		return nil, err
	}
	if upstream == nil {
		return nil, errors.New("a reactor has answered the watch with nil")
	}
	w, ctx := newWatcher(ctx, s, selection, upstream, asked.since)
	if err := w.start(ctx, fromRV); err != nil {
		w.abandon()
		return nil, err
	}
	s.missed(w)
	return w, nil
}
