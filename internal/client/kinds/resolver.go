package kinds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/internal/client/reach"
)

// ErrIncompleteDiscovery is wrapped by the errors of look-ups that found no such kind while
// discovery was incomplete. It never means that the kind is absent.
var ErrIncompleteDiscovery = errors.New("discovery is incomplete")

// ErrNoDiscovery is the error of methods that need discovery, where there is none.
var ErrNoDiscovery = errors.New("this client was made of a dynamic.Interface and has no discovery")

// UnknownKindError says that the server's complete discovery has no such kind.
// It unwraps to *meta.NoKindMatchError, so meta.IsNoMatchError holds.
type UnknownKindError struct {
	// Kind is the kind as it was asked for: "hosts.getambassador.io".
	Kind string
}

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("the server doesn't have a resource type %q (is a CustomResourceDefinition missing?)", e.Kind)
}

func (e *UnknownKindError) Unwrap() error {
	return &meta.NoKindMatchError{GroupKind: schema.ParseGroupKind(e.Kind)}
}

// resetInterval is the least time between two readings that unknown kinds cause.
const resetInterval = time.Second

// Resolver finds the resource of a kind.
//
// It asks the mapper first, if there is one, then an index of discovery, if there is that. The
// index is of one reading at a time, so that its content, its gaps and its completeness belong
// together (client-go's mappers drop the errors of partial discovery). A miss reads discovery
// again, at most once per resetInterval. Concurrent misses share one reading.
//
// A Resolver is safe for concurrent use and holds no lock during requests. A context bounds its
// call. A reading that a context cut short is repeated by the next call that waits for it.
type Resolver struct {
	mapper meta.RESTMapper
	disco  discovery.CachedDiscoveryInterface
	clock  clock.PassiveClock

	mu        lockorder.Mutex[lockorder.Resolver]
	latest    *served
	reading   *reading
	lastReset time.Time
	canonical map[schema.GroupResource]schema.GroupResource
	documents map[schema.GroupVersion]*document // OpenAPI, read on demand
}

// New returns a resolver on a mapper, on discovery, or on both. Without discovery it knows the
// mapper's kinds, and the short names of built-in kinds.
func New(
	mapper meta.RESTMapper, disco discovery.CachedDiscoveryInterface, clock clock.PassiveClock,
) *Resolver {
	canonical := map[schema.GroupResource]schema.GroupResource{}
	r := &Resolver{mapper: mapper, disco: disco, clock: clock, canonical: canonical}
	if disco == nil {
		r.latest = &served{}
	}
	return r
}

// Kind resolves what kubectl takes, in any letter case: svc, Service, services, deployments.apps,
// Deployment.v1.apps, and apps/v1/Deployment too. A version that is named is the version used. An
// *UnknownKindError means that complete discovery has no such kind; ErrIncompleteDiscovery means
// that this is not known.
func (r *Resolver) Kind(ctx context.Context, arg string) (*meta.RESTMapping, error) {
	requests, err := parse(arg)
	if err != nil {
		return nil, err
	}
	return r.lookup(ctx, arg, requests)
}

// GVK resolves the apiVersion and kind of an object. The kind may also be a plural, singular or
// short name. Without a version it is the preferred one; without group and version any group will
// do. The errors are those of Kind.
func (r *Resolver) GVK(
	ctx context.Context, gvk schema.GroupVersionKind,
) (*meta.RESTMapping, error) {
	if gvk.Kind == "" {
		gv := gvk.GroupVersion()
		return nil, fmt.Errorf("look up an object of apiVersion %q: its kind is missing", gv)
	}
	if gvk.Group == "" && gvk.Version == "" {
		return r.Kind(ctx, gvk.Kind)
	}
	what := gvk.Kind
	for _, part := range []string{gvk.Version, gvk.Group} {
		if part != "" {
			what += "." + part
		}
	}
	return r.lookup(ctx, what, []request{{
		name: strings.ToLower(gvk.Kind), literal: gvk.Kind, kindFirst: true,
		group: strings.ToLower(gvk.Group), version: strings.ToLower(gvk.Version),
	}})
}

// CanWatch is an error if discovery says that a resource has no list or no watch. If discovery
// says nothing, there is no error: the watch will find out. The server is asked again before there
// is one, as for a kind that is not found.
func (r *Resolver) CanWatch(ctx context.Context, gvr schema.GroupVersionResource) error {
	all, fresh := r.current(ctx)
	err := all.canWatch(gvr)
	if err != nil && !fresh {
		err = r.refresh(ctx, all).canWatch(gvr)
	}
	return err
}

func (s *served) canWatch(gvr schema.GroupVersionResource) error {
	found := s.resource(gvr)
	if found == nil || len(found.verbs) == 0 {
		return nil
	}
	if slices.Contains(found.verbs, "list") && slices.Contains(found.verbs, "watch") {
		return nil
	}
	return fmt.Errorf("%s cannot be watched: it has only %s",
		gvr.GroupResource(), strings.Join(found.verbs, ", "))
}

// Invalidate forgets what is known of the server. The next look-up asks it again, however recently
// it was asked.
func (r *Resolver) Invalidate() error {
	r.resetSources()
	r.mu.Lock()
	defer r.mu.Unlock()
	// A reading under way may be older than this call: no new look-up joins it.
	r.latest, r.reading, r.documents = nil, nil, nil
	return nil
}

// Refresh reads discovery again, at most once per resetInterval. The next look-up goes by it.
func (r *Resolver) Refresh(ctx context.Context) {
	if all, fresh := r.current(ctx); !fresh {
		r.refresh(ctx, all)
	}
}

func (r *Resolver) lookup(
	ctx context.Context, what string, requests []request,
) (*meta.RESTMapping, error) {
	all, fresh := r.current(ctx)
	mapping, err := r.find(ctx, all, requests)
	if mapping == nil && !fresh {
		if again := r.refresh(ctx, all); again != all {
			all = again
			mapping, err = r.find(ctx, all, requests)
		}
	}
	switch {
	case mapping != nil:
		return mapping, nil
	case meta.IsAmbiguousError(err):
		return nil, fmt.Errorf("look up kind %q: %w", what, err)
	case err != nil:
		return nil, incomplete(what, err)
	}
	if doubt := all.doubt(requests); doubt != nil {
		return nil, incomplete(what, doubt)
	}
	return nil, &UnknownKindError{Kind: what}
}

// incomplete is the error of a look-up that may have missed the kind.
func incomplete(what string, cause error) error {
	return reach.First(fmt.Errorf("look up kind %q: %w: %w", what, ErrIncompleteDiscovery, cause))
}

// find returns nil without an error if neither the mapper nor discovery has a match.
func (r *Resolver) find(
	ctx context.Context, all *served, requests []request,
) (*meta.RESTMapping, error) {
	mapping, mapperErr := r.askMapper(ctx, requests)
	if mapping != nil {
		return mapping, nil
	}
	for _, request := range requests {
		if found := all.find(request); found != nil {
			return found.mapping(), nil
		}
	}
	if r.disco != nil || mapperErr != nil {
		return nil, mapperErr
	}
	var expanded []request
	for _, request := range requests {
		if long, ok := request.expandShortName(); ok {
			expanded = append(expanded, long)
		}
	}
	return r.askMapper(ctx, expanded)
}

func (r *Resolver) askMapper(ctx context.Context, requests []request) (*meta.RESTMapping, error) {
	if r.mapper == nil {
		return nil, nil
	}
	mapper := meta.ToRESTMapperWithContext(r.mapper)
	for _, request := range requests {
		// An error that is not a mere miss ends this: the next request would fail in the same way.
		mapping, err := inMapper(ctx, mapper, request)
		if mapping != nil || err != nil {
			return mapping, err
		}
	}
	return nil, nil
}

// Serves reports whether the server serves a resource in any version. It goes by complete
// discovery that is newer than the call or, if the server was asked a moment ago, the reading of
// that moment.
func (r *Resolver) Serves(ctx context.Context, gr schema.GroupResource) (bool, error) {
	if r.disco == nil {
		return r.mapperKnows(ctx, gr)
	}
	all, fresh := r.current(ctx)
	if !fresh {
		all = r.refresh(ctx, all)
	}
	serves := func(r servedResource) bool { return r.gvr.GroupResource() == gr }
	if slices.ContainsFunc(all.resources, serves) {
		return true, nil
	}
	return false, all.doubt([]request{{group: gr.Group}})
}

func (r *Resolver) mapperKnows(ctx context.Context, gr schema.GroupResource) (bool, error) {
	meta.MaybeResetRESTMapper(r.mapper)
	mapper := meta.ToRESTMapperWithContext(r.mapper)
	_, err := mapper.ResourcesForWithContext(ctx, gr.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}
