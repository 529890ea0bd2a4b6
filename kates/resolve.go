package kates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	"github.com/kates-go/kates/internal/reach"
)

// ErrIncompleteDiscovery is wrapped by the errors of look-ups that found no such
// kind while the server's discovery could not be read whole (an aggregated API
// that is down, a time-out, no rights): the kind may or may not be served. It
// never means that a kind is absent; UnknownKindError does. Where the server could not be reached, their text
// begins with that, and with its address.
var ErrIncompleteDiscovery = errors.New("discovery is incomplete")

// UnknownKindError says that the server's complete discovery has no such kind.
// It unwraps to *meta.NoKindMatchError, so meta.IsNoMatchError holds.
type UnknownKindError struct {
	// Kind is the kind as it was asked for: "hosts.getambassador.io".
	Kind string
}

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("the server doesn't have a resource type %q", e.Kind)
}

func (e *UnknownKindError) Unwrap() error {
	return &meta.NoKindMatchError{GroupKind: schema.ParseGroupKind(e.Kind)}
}

// resetInterval bounds how often unknown kinds make a resolver ask the server
// again.
const resetInterval = time.Second

// resolver finds the resource that a kind, as a user writes it, stands for.
//
// It asks the mapper, if any, then an index of discovery, if any: of one
// reading of it at a time, so that what is found, what is missing and whether
// that reading was complete belong together (client-go's mappers drop the
// errors of partial discovery). A miss reads discovery again, at most once per
// resetInterval; concurrent misses share one reading.
//
// It is safe for concurrent use and holds no lock during requests. A context
// bounds its call; a reading that it cut short is made again by whoever waits
// for it.
type resolver struct {
	mapper meta.RESTMapper
	disco  discovery.CachedDiscoveryInterface
	clock  clock.PassiveClock

	mu        sync.Mutex
	latest    *served
	reading   *reading
	lastReset time.Time
	canonical map[schema.GroupResource]schema.GroupResource
	documents map[schema.GroupVersion]*document // OpenAPI, by what has been asked for
}

// newResolver needs a mapper or discovery or both. Without discovery, kinds are
// what the mapper knows and the short names of built-in kinds.
func newResolver(mapper meta.RESTMapper, disco discovery.CachedDiscoveryInterface, clock clock.PassiveClock) *resolver {
	r := &resolver{mapper: mapper, disco: disco, clock: clock, canonical: map[schema.GroupResource]schema.GroupResource{}}
	if disco == nil {
		r.latest = &served{}
	}
	return r
}

// kind resolves what kubectl takes, in any letter case: svc, Service, services,
// deployments.apps, Deployment.v1.apps, and apps/v1/Deployment too. A version
// that is named is the version used. An *UnknownKindError means that complete
// discovery has no such kind, ErrIncompleteDiscovery that nobody knows.
func (r *resolver) kind(arg string) (*meta.RESTMapping, error) {
	return r.kindContext(context.Background(), arg)
}

// kindContext is kind within the bounds of ctx.
func (r *resolver) kindContext(ctx context.Context, arg string) (*meta.RESTMapping, error) {
	requests, err := parseKind(arg)
	if err != nil {
		return nil, err
	}
	return r.lookup(ctx, arg, requests)
}

// gvk resolves the apiVersion and kind of an object. The kind may be a plural,
// singular or short name too. No version means the preferred one, no group and
// no version any group; errors are those of kind.
func (r *resolver) gvk(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	return r.gvkContext(context.Background(), gvk)
}

// gvkContext is gvk within the bounds of ctx.
func (r *resolver) gvkContext(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if gvk.Kind == "" {
		return nil, fmt.Errorf("look up an object of apiVersion %q: its kind is missing", gvk.GroupVersion())
	}
	if gvk.Group == "" && gvk.Version == "" {
		return r.kindContext(ctx, gvk.Kind)
	}
	what := gvk.Kind
	for _, part := range []string{gvk.Version, gvk.Group} {
		if part != "" {
			what += "." + part
		}
	}
	return r.lookup(ctx, what, []kindRequest{{
		name: strings.ToLower(gvk.Kind), literal: gvk.Kind, kindFirst: true,
		group: strings.ToLower(gvk.Group), version: strings.ToLower(gvk.Version),
	}})
}

// canWatch is an error if discovery says that a resource has no list or no
// watch. Where discovery says nothing, the watch will.
func (r *resolver) canWatch(gvr schema.GroupVersionResource) error {
	all, _ := r.current(context.Background())
	found := all.resource(gvr)
	if found == nil || len(found.verbs) == 0 {
		return nil
	}
	if slices.Contains(found.verbs, "list") && slices.Contains(found.verbs, "watch") {
		return nil
	}
	return fmt.Errorf("%s cannot be watched: it has only %s", gvr.GroupResource(), strings.Join(found.verbs, ", "))
}

// invalidate forgets what is known of the server; the next look-up asks it
// again, however recently it was asked.
func (r *resolver) invalidate() error {
	r.resetSources()
	r.mu.Lock()
	defer r.mu.Unlock()
	// A reading under way may be older than this call: nobody new joins it.
	r.latest, r.reading, r.documents = nil, nil, nil
	return nil
}

func (r *resolver) lookup(ctx context.Context, what string, requests []kindRequest) (*meta.RESTMapping, error) {
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
		return nil, reach.First(fmt.Errorf("look up kind %q: %w: %w", what, ErrIncompleteDiscovery, err))
	}
	if doubt := all.doubt(requests); doubt != nil {
		return nil, reach.First(fmt.Errorf("look up kind %q: %w: %w", what, ErrIncompleteDiscovery, doubt))
	}
	return nil, &UnknownKindError{Kind: what}
}

// find is (nil, nil) where neither the mapper nor discovery has a match.
func (r *resolver) find(ctx context.Context, all *served, requests []kindRequest) (*meta.RESTMapping, error) {
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
	var expanded []kindRequest
	for _, request := range requests {
		if long, ok := request.expandShortName(); ok {
			expanded = append(expanded, long)
		}
	}
	return r.askMapper(ctx, expanded)
}

func (r *resolver) askMapper(ctx context.Context, requests []kindRequest) (*meta.RESTMapping, error) {
	if r.mapper == nil {
		return nil, nil
	}
	mapper := meta.ToRESTMapperWithContext(r.mapper)
	for _, request := range requests {
		// After an error, which is not a mere miss, the next request would only
		// wait for the same.
		if mapping, err := findInMapper(ctx, mapper, request); mapping != nil || err != nil {
			return mapping, err
		}
	}
	return nil, nil
}
