package accumulator

import (
	"context"
	"encoding/json"
	"sort"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/accumulator/stream"
)

func (s *sim) source(r Resource, namespace string, _ Form) cache.ListerWatcherWithContext {
	return &simSource{s, r.Resource, namespace}
}

// plain makes sources of listers and watchers. Some of these implement more.
func plain(source func(Resource, string, Form) cache.ListerWatcherWithContext) stream.Sources {
	return func(r Resource, namespace string, form Form) stream.Source {
		lw := source(r, namespace, form)
		if s, ok := lw.(stream.Source); ok {
			return s
		}
		return stream.Plain{ListerWatcherWithContext: lw, Delivers: form}
	}
}

type simSource struct {
	*sim
	resource, namespace string
}

// simFilter selects the objects of a request.
type simFilter struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func (s *simSource) filter(o metav1.ListOptions) simFilter {
	f := simFilter{namespace: s.namespace}
	f.labels, _ = labels.Parse(o.LabelSelector)
	f.fields, _ = fields.ParseSelector(o.FieldSelector)
	return f
}

func (f simFilter) shows(u *unstructured.Unstructured) bool {
	if u == nil || (f.namespace != "" && u.GetNamespace() != f.namespace) || !f.labels.Matches(labels.Set(u.GetLabels())) {
		return false
	}
	node, _, _ := unstructured.NestedString(u.Object, "spec", "node")
	return f.fields.Matches(fields.Set{
		"metadata.name": u.GetName(), "metadata.namespace": u.GetNamespace(), "spec.node": node,
	})
}

func (s *simSource) request(ctx context.Context, verb string, limit int64) error {
	s.mu.Lock()
	switch {
	case verb == "list" && limit == 1:
		s.probes[s.resource]++
	case verb == "list":
		s.lists[s.resource]++
	default:
		s.watches[s.resource]++
	}
	fail := s.fail
	s.mu.Unlock()
	if verb == "list" {
		s.delayList(ctx)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if fail != nil {
		return fail(verb, s.resource)
	}
	return nil
}

func (s *simSource) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if err := s.request(ctx, "list", o.Limit); err != nil {
		return nil, err
	}
	list, err := s.serve(o)
	s.mu.Lock()
	wait := s.listAnswer
	s.mu.Unlock()
	if wait != nil {
		stream.Sleep(ctx, wait(s.resource))
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return list, err
}

// delayList waits until a list, streamed or not, is served.
func (s *simSource) delayList(ctx context.Context) {
	s.mu.Lock()
	wait := s.listDelay
	s.mu.Unlock()
	if wait != nil {
		stream.Sleep(ctx, wait(s.resource))
	}
}

// serve returns the answer of a list: the present state, or one as old as it may be.
func (s *simSource) serve(o metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rev, start := s.rev, 0
	atLeast, _ := strconv.Atoi(o.ResourceVersion)
	if o.Continue == "" {
		s.asked = o.ResourceVersion
	}
	switch {
	case o.Continue != "":
		var token struct{ Rev, Start int }
		_ = json.Unmarshal([]byte(o.Continue), &token)
		rev, start = token.Rev, token.Start
		if rev < s.oldest {
			return nil, apierrors.NewResourceExpired("the continue token is too old")
		}
	case o.ResourceVersion == "":
	case atLeast > s.rev:
		err := apierrors.NewTimeoutError("Too large resource version", 1)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return nil, err
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact && atLeast < s.oldest:
		return nil, apierrors.NewResourceExpired("the version is too old")
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		rev = atLeast
	case s.lag != nil:
		rev = s.lag(s.rev, atLeast)
	}
	f := s.filter(o)
	var items []unstructured.Unstructured
	for _, u := range s.at(s.resource, rev) {
		if f.shows(u) {
			items = append(items, *u.DeepCopy())
		}
	}
	sort.Slice(items, func(i, j int) bool {
		a, b := items[i], items[j]
		return a.GetNamespace()+"/"+a.GetName() < b.GetNamespace()+"/"+b.GetName()
	})
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "ThingList"}}
	list.SetResourceVersion(strconv.Itoa(rev))
	if start > 0 {
		s.pages++
	}
	items = items[min(start, len(items)):]
	if o.Limit > 0 && int64(len(items)) > o.Limit {
		items = items[:o.Limit]
		token, _ := json.Marshal(struct{ Rev, Start int }{rev, start + len(items)})
		list.SetContinue(string(token))
	}
	list.Items = items
	return list, nil
}
