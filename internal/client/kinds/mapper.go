package kinds

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// inMapper asks a mapper. It returns nil without an error if there is no match.
func inMapper(
	ctx context.Context, mapper meta.RESTMapperWithContext, wanted request,
) (*meta.RESTMapping, error) {
	type way func(context.Context, meta.RESTMapperWithContext, request) (*meta.RESTMapping, error)
	ways := []way{findResource, findKind}
	if wanted.kindFirst {
		slices.Reverse(ways)
	}
	for _, find := range ways {
		mapping, err := find(ctx, mapper, wanted)
		if mapping != nil {
			return mapping, nil
		}
		if err != nil && !meta.IsNoMatchError(err) {
			return nil, err
		}
	}
	return nil, nil
}

// findKind looks up the kind as it was written: mappers compare kinds by letter case.
func findKind(
	ctx context.Context, mapper meta.RESTMapperWithContext, wanted request,
) (*meta.RESTMapping, error) {
	var versions []string
	if wanted.version != "" {
		versions = []string{wanted.version}
	}
	gk := schema.GroupKind{Group: wanted.group, Kind: wanted.literal}
	mapping, err := mapper.RESTMappingWithContext(ctx, gk, versions...)
	if err != nil {
		return nil, err
	}
	if wanted.version != "" && mapping.GroupVersionKind.Version != wanted.version {
		return nil, nil // never another version than the one asked for
	}
	// A discovery mapper answers "deployment" with a kind of that spelling.
	gvk, err := mapper.KindForWithContext(ctx, mapping.Resource)
	if err == nil && strings.EqualFold(gvk.Kind, mapping.GroupVersionKind.Kind) {
		proper := *mapping
		proper.GroupVersionKind.Kind = gvk.Kind
		return &proper, nil
	}
	return mapping, nil
}

// findResource looks up a plural or singular name.
func findResource(
	ctx context.Context, mapper meta.RESTMapperWithContext, wanted request,
) (*meta.RESTMapping, error) {
	partial := schema.GroupVersionResource{
		Group: wanted.group, Version: wanted.version, Resource: wanted.name,
	}
	kinds, err := mapper.KindsForWithContext(ctx, partial)
	if err != nil {
		return nil, err
	}
	for _, inGroup := range wanted.groupMatches() {
		matching := slices.DeleteFunc(slices.Clone(kinds), func(gvk schema.GroupVersionKind) bool {
			return !inGroup(gvk.Group) || (wanted.version != "" && gvk.Version != wanted.version)
		})
		if len(matching) == 0 {
			continue
		}
		gvk, err := preferred(ctx, mapper, partial, matching)
		if err != nil {
			return nil, err
		}
		return mapper.RESTMappingWithContext(ctx, gvk.GroupKind(), gvk.Version)
	}
	return nil, nil
}

// preferred chooses among several kinds of one name. The mapper's own choice comes first. Mappers
// made from a scheme make none; then it is the core group, or else the most mature version, if
// only one group has that version.
func preferred(
	ctx context.Context, mapper meta.RESTMapperWithContext, partial schema.GroupVersionResource,
	kinds []schema.GroupVersionKind,
) (schema.GroupVersionKind, error) {
	gvk, err := mapper.KindForWithContext(ctx, partial)
	if err == nil && slices.Contains(kinds, gvk) {
		return gvk, nil
	}
	slices.SortFunc(kinds, byMaturity)
	best := kinds[0]
	for _, other := range kinds[1:] {
		if best.Group != "" && other.Group != best.Group && other.Version == best.Version {
			return best, &meta.AmbiguousResourceError{PartialResource: partial, MatchingKinds: kinds}
		}
	}
	// The mapper's order of versions counts, if it has one.
	mapping, err := mapper.RESTMappingWithContext(ctx, best.GroupKind())
	if err == nil && slices.Contains(kinds, mapping.GroupVersionKind) {
		return mapping.GroupVersionKind, nil
	}
	return best, nil
}

// byMaturity orders the core group first, then the most mature version, then the group's name.
func byMaturity(a, b schema.GroupVersionKind) int {
	if (a.Group == "") != (b.Group == "") {
		return strings.Compare(a.Group, b.Group)
	}
	if order := version.CompareKubeAwareVersionStrings(b.Version, a.Version); order != 0 {
		return order
	}
	return strings.Compare(a.Group, b.Group)
}
