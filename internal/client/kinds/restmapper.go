package kinds

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RESTMapper returns the resolver in the form that other libraries take. It is always as new as
// the resolver: a kind that is unknown is looked for again.
func (r *Resolver) RESTMapper() RESTMapper { return &restMapper{r} }

// RESTMapper is a mapper with both sets of methods.
type RESTMapper interface {
	meta.RESTMapper
	meta.RESTMapperWithContext
}

// restMapper is a [Resolver] as a mapper. It finds names in any letter case, as the resolver does,
// and kinds as they are written.
type restMapper struct{ resolver *Resolver }

func (m *restMapper) KindForWithContext(
	ctx context.Context, partial schema.GroupVersionResource,
) (schema.GroupVersionKind, error) {
	all, err := m.KindsForWithContext(ctx, partial)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return all[0], nil
}

func (m *restMapper) KindsForWithContext(
	ctx context.Context, partial schema.GroupVersionResource,
) (kinds []schema.GroupVersionKind, err error) {
	all, err := m.resolver.matches(ctx, named(partial))
	for _, mapping := range all {
		kinds = append(kinds, mapping.GroupVersionKind)
	}
	return kinds, err
}

func (m *restMapper) ResourceForWithContext(
	ctx context.Context, partial schema.GroupVersionResource,
) (schema.GroupVersionResource, error) {
	all, err := m.ResourcesForWithContext(ctx, partial)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return all[0], nil
}

func (m *restMapper) ResourcesForWithContext(
	ctx context.Context, partial schema.GroupVersionResource,
) (resources []schema.GroupVersionResource, err error) {
	all, err := m.resolver.matches(ctx, named(partial))
	for _, mapping := range all {
		resources = append(resources, mapping.Resource)
	}
	return resources, err
}

// named reads a partial resource: without a group it may be of any.
func named(partial schema.GroupVersionResource) request {
	group := strings.ToLower(partial.Group)
	return request{
		name: strings.ToLower(partial.Resource), literal: partial.Resource,
		group: group, anyGroup: group == "", prefix: true,
		version: strings.ToLower(partial.Version),
	}
}

func (m *restMapper) RESTMappingWithContext(
	ctx context.Context, gk schema.GroupKind, versions ...string,
) (*meta.RESTMapping, error) {
	all, err := m.RESTMappingsWithContext(ctx, gk, versions...)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func (m *restMapper) RESTMappingsWithContext(
	ctx context.Context, gk schema.GroupKind, versions ...string,
) (found []*meta.RESTMapping, err error) {
	versions = slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return v == "" })
	wanted := request{
		name: strings.ToLower(gk.Kind), literal: gk.Kind, group: strings.ToLower(gk.Group),
		kindFirst: true,
	}
	if len(versions) == 0 {
		found, err = m.resolver.matches(ctx, wanted)
	}
	for _, version := range versions {
		wanted.version = strings.ToLower(version)
		all, missing := m.resolver.matches(ctx, wanted)
		if found = append(found, all...); missing != nil && !meta.IsNoMatchError(missing) {
			return nil, missing
		}
	}
	found = slices.DeleteFunc(found, func(mapping *meta.RESTMapping) bool {
		return mapping.GroupVersionKind.GroupKind() != gk // a name of a resource is no kind
	})
	if err == nil && len(found) == 0 {
		err = &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return found, err
}

func (m *restMapper) ResourceSingularizerWithContext(
	ctx context.Context, resource string,
) (string, error) {
	gr := schema.ParseGroupResource(resource)
	found, err := m.ResourceForWithContext(ctx, gr.WithVersion(""))
	if err != nil {
		return resource, err
	}
	all, _ := m.resolver.current(ctx)
	if served := all.resource(found); served != nil && served.singular != "" {
		return served.singular, nil
	}
	if m.resolver.mapper == nil {
		return resource, nil
	}
	mapper := meta.ToRESTMapperWithContext(m.resolver.mapper)
	return mapper.ResourceSingularizerWithContext(ctx, found.Resource)
}

// matches returns all that a request may mean, the preferred one first. It returns one if there is
// no discovery.
func (r *Resolver) matches(ctx context.Context, wanted request) ([]*meta.RESTMapping, error) {
	if wanted.name == "" {
		return nil, errors.New("look up a kind: it is empty")
	}
	what := wanted.literal
	for _, part := range []string{wanted.version, wanted.group} {
		if part != "" {
			what += "." + part
		}
	}
	first, err := r.lookup(ctx, what, []request{wanted})
	if err != nil {
		return nil, err
	}
	found := []*meta.RESTMapping{first}
	served, _ := r.current(ctx)
	for i := range served.resources {
		s := &served.resources[i]
		other := s.mapping()
		versioned := wanted.version == "" || s.gvr.Version == wanted.version
		known := slices.ContainsFunc(found, func(m *meta.RESTMapping) bool {
			return m.Resource == other.Resource
		})
		if versioned && !known && wanted.means(s) {
			found = append(found, other)
		}
	}
	return found, nil
}

// means reports whether a request may mean a resource.
func (k request) means(r *servedResource) bool {
	inGroup := slices.ContainsFunc(k.groupMatches(), func(in func(string) bool) bool {
		return in(r.gvr.Group)
	})
	return inGroup && slices.ContainsFunc(k.nameMatches(), func(named func(*servedResource) bool) bool {
		return named(r)
	})
}
