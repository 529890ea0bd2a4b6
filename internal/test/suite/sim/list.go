package sim

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/engine/source"
	"github.com/kates-go/kates/internal/object"
)

// Source returns what lists and watches a resource in a namespace ("" for all).
func (s *Server) Source(r object.Resource, namespace string, _ object.Form) cache.ListerWatcherWithContext {
	return &Source{s, r.Resource, r.Version, namespace}
}

// Plain makes sources of listers and watchers. Some of these implement more.
func Plain(of func(object.Resource, string, object.Form) cache.ListerWatcherWithContext) source.Sources {
	return func(r object.Resource, namespace string, form object.Form) source.Source {
		lw := of(r, namespace, form)
		if s, ok := lw.(source.Source); ok {
			return s
		}
		return source.Plain{ListerWatcherWithContext: lw, Delivers: form}
	}
}

// Source lists and watches one resource of the server, in one version of the API.
type Source struct {
	*Server
	Resource, Version, namespace string
}

// Filter says which objects a request selects.
type Filter struct {
	Namespace string
	Labels    labels.Selector
	Fields    fields.Selector
	Shard     shardrange.Shard
}

func (s *Source) filter(o metav1.ListOptions) Filter {
	f := Filter{Namespace: s.namespace}
	f.Labels, _ = labels.Parse(o.LabelSelector)
	f.Fields, _ = fields.ParseSelector(o.FieldSelector)
	if s.Shards != nil && o.ShardSelector != "" {
		f.Shard, _ = shardrange.Parse(o.ShardSelector)
	}
	return f
}

// Shows reports whether a request shows an object; nil is shown to none.
func (f Filter) Shows(u *unstructured.Unstructured) bool {
	if u == nil || (f.Namespace != "" && u.GetNamespace() != f.Namespace) || !f.Labels.Matches(labels.Set(u.GetLabels())) ||
		!f.Shard.Has(u.GetNamespace(), string(u.GetUID())) {
		return false
	}
	node, _, _ := unstructured.NestedString(u.Object, "spec", "node")
	return f.Fields.Matches(fields.Set{
		"metadata.name": u.GetName(), "metadata.namespace": u.GetNamespace(), "spec.node": node,
	})
}

// request counts a request, waits, and fails as the test says.
func (s *Source) request(ctx context.Context, verb string, limit int64) error {
	s.Mu.Lock()
	switch {
	case verb == "list" && limit == 1:
		s.Probes[s.Resource]++
	case verb == "list":
		s.Lists[s.Resource]++
	default:
		s.Watches[s.Resource]++
	}
	fail, unserved := s.Fail, s.Unserved[s.Resource+"/"+s.Version]
	s.Mu.Unlock()
	if verb == "list" {
		s.delayList(ctx)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if unserved {
		return apierrors.NewNotFound(schema.GroupResource{Resource: s.Resource}, "")
	}
	if fail != nil {
		return fail(verb, s.Resource)
	}
	return nil
}

// ListWithContext answers a list, as late as the test says.
func (s *Source) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if err := s.request(ctx, "list", o.Limit); err != nil {
		return nil, err
	}
	list, err := s.serve(o)
	s.Mu.Lock()
	wait := s.ListAnswer
	s.Mu.Unlock()
	if wait != nil {
		source.Sleep(ctx, wait(s.Resource))
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return list, err
}

// delayList waits until a list, streamed or not, is served.
func (s *Source) delayList(ctx context.Context) {
	s.Mu.Lock()
	wait := s.ListDelay
	s.Mu.Unlock()
	if wait != nil {
		source.Sleep(ctx, wait(s.Resource))
	}
}

// serve returns the answer of a list: the present state, or one as old as it may be.
func (s *Source) serve(o metav1.ListOptions) (runtime.Object, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	rev, start := s.Rev, 0
	atLeast, _ := strconv.Atoi(o.ResourceVersion)
	if o.Continue == "" {
		s.Asked = o.ResourceVersion
	}
	switch {
	case o.Continue != "":
		var token struct{ Rev, Start int }
		_ = json.Unmarshal([]byte(o.Continue), &token)
		rev, start = token.Rev, token.Start
		if rev < s.Oldest {
			return nil, apierrors.NewResourceExpired("the continue token is too old")
		}
	case o.ResourceVersion == "":
	case atLeast > s.Rev:
		err := apierrors.NewTimeoutError("Too large resource version", 1)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return nil, err
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact && atLeast < s.Oldest:
		return nil, apierrors.NewResourceExpired("the version is too old")
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		rev = atLeast
	case s.Lag != nil:
		rev = s.Lag(s.Rev, atLeast)
	}
	f := s.filter(o)
	var items []unstructured.Unstructured
	for _, u := range s.At(s.Resource, rev) {
		if f.Shows(u) {
			items = append(items, *s.render(u))
		}
	}
	sort.Slice(items, func(i, j int) bool {
		a, b := items[i], items[j]
		return a.GetNamespace()+"/"+a.GetName() < b.GetNamespace()+"/"+b.GetName()
	})
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "ThingList"}}
	list.SetResourceVersion(strconv.Itoa(rev))
	if s.Shards != nil && o.ShardSelector != "" {
		if info := s.Shards(o.ShardSelector); info != "" {
			_ = unstructured.SetNestedField(list.Object, info, "metadata", "shardInfo", "selector")
		}
	}
	if start > 0 {
		s.Pages++
	}
	items = items[min(start, len(items)):]
	if o.Limit > 0 && int64(len(items)) > o.Limit {
		if remaining := int64(len(items)) - o.Limit; o.LabelSelector == "" && o.FieldSelector == "" && o.ShardSelector == "" {
			list.SetRemainingItemCount(&remaining)
		}
		items = items[:o.Limit]
		token, _ := json.Marshal(struct{ Rev, Start int }{rev, start + len(items)})
		list.SetContinue(string(token))
	}
	list.Items = items
	return list, nil
}
