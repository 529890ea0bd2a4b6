package katestest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// NewMapper returns a RESTMapper for the built-in kinds and the given ones. A given kind wins
// over a built-in one of the same apiVersion and kind. The mapper answers as one made from a
// server's discovery would, without a server. It knows plurals, singulars, short names and
// scopes. Where several groups or versions fit it takes the one that kubectl takes: core first,
// then apps, then the other built-in groups, then the given ones; stable before beta before
// alpha, the highest first.
//
// Names of resources match in any letter case. The mapper never changes, and is safe for
// concurrent use. A kind without apiVersion or kind is an error.
func NewMapper(kinds ...Kind) (meta.RESTMapper, error) {
	all, err := newKindSet(slices.Concat(builtIn(), kinds))
	if err != nil {
		return nil, err
	}
	return all.mapper(), nil
}

// kindSet is the set of kinds that an API serves.
type kindSet map[schema.GroupVersionKind]Kind

// newKindSet makes the set. Of several entries for one kind the last counts.
func newKindSet(kinds []Kind) (kindSet, error) {
	set := kindSet{}
	for _, kind := range kinds {
		gvk, err := kind.gvk()
		if err != nil {
			return nil, err
		}
		set[gvk] = kind
	}
	owner := map[schema.GroupVersionResource]schema.GroupVersionKind{}
	for gvk, kind := range set {
		gvr := kind.gvr(gvk)
		if other, taken := owner[gvr]; taken {
			return nil, fmt.Errorf("kinds %s and %s of %s are both served as %q: set Plural", min(other.Kind, gvk.Kind), max(other.Kind, gvk.Kind), kind.APIVersion, gvr.Resource)
		}
		owner[gvr] = gvk
	}
	return set, nil
}

// mapper adds short names to the mapper that client-go would build from discovery.
type mapper struct {
	meta.RESTMapper
	// short name: the resources, with the preferred group first
	long map[string][]schema.GroupResource
}

func (s kindSet) mapper() *mapper {
	ordered := s.groupVersions()
	names := meta.NewDefaultRESTMapper(ordered)
	long := map[string][]schema.GroupResource{}
	for gvk, kind := range s {
		scope := meta.RESTScopeNamespace
		if kind.ClusterScoped {
			scope = meta.RESTScopeRoot
		}
		plural, singular := kind.gvr(gvk), gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind))
		// Mappers made from discovery also know each kind in lower case.
		names.AddSpecific(gvk.GroupVersion().WithKind(strings.ToLower(gvk.Kind)), plural, singular, scope)
		names.AddSpecific(gvk, plural, singular, scope)
		for _, short := range kind.ShortNames {
			short = strings.ToLower(short)
			if !slices.Contains(long[short], plural.GroupResource()) {
				long[short] = append(long[short], plural.GroupResource())
			}
		}
	}
	for _, resources := range long {
		slices.SortFunc(resources, func(a, b schema.GroupResource) int {
			return cmp.Or(compareGroups(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
		})
	}
	// The union has a side effect that is wanted here: it drops duplicates of names that are both
	// singular and plural, such as endpoints.
	preferred := meta.PriorityRESTMapper{Delegate: meta.MultiRESTMapper{names}}
	for _, gv := range ordered {
		preferred.ResourcePriority = append(preferred.ResourcePriority, gv.WithResource(meta.AnyResource))
		preferred.KindPriority = append(preferred.KindPriority, gv.WithKind(meta.AnyKind))
	}
	return &mapper{RESTMapper: preferred, long: long}
}

// groupVersions returns the groups and versions of the set, with the preferred ones first.
func (s kindSet) groupVersions() []schema.GroupVersion {
	var gvs []schema.GroupVersion
	for gvk := range s {
		if !slices.Contains(gvs, gvk.GroupVersion()) {
			gvs = append(gvs, gvk.GroupVersion())
		}
	}
	slices.SortFunc(gvs, func(a, b schema.GroupVersion) int {
		return cmp.Or(compareGroups(a.Group, b.Group), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
	})
	return gvs
}

// compareGroups orders groups by an aggregating API server's priorities. It covers the groups
// whose resource names also occur in other groups.
func compareGroups(a, b string) int {
	return cmp.Or(cmp.Compare(groupRank(a), groupRank(b)), strings.Compare(a, b))
}

func groupRank(group string) int {
	switch {
	case group == "":
		return 0
	case group == "apps":
		return 1
	case group == "extensions": // moved long ago to apps and networking.k8s.io
		return 4
	case clientgoscheme.Scheme.IsGroupRegistered(group), group == kinds.DefinitionGroup, group == kinds.APIServiceGroup:
		return 2
	}
	return 3
}

// expand replaces a short name by the name of its resource. As in kubectl, a resource of exactly
// that name wins.
func (m *mapper) expand(name schema.GroupVersionResource) schema.GroupVersionResource {
	if _, err := m.RESTMapper.ResourcesFor(name); err == nil {
		return name
	}
	for _, long := range m.long[strings.ToLower(name.Resource)] {
		if strings.HasPrefix(long.Group, name.Group) {
			return long.WithVersion(name.Version)
		}
	}
	return name
}

func (m *mapper) KindFor(name schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.RESTMapper.KindFor(m.expand(name))
}

func (m *mapper) KindsFor(name schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.RESTMapper.KindsFor(m.expand(name))
}

func (m *mapper) ResourceFor(name schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.RESTMapper.ResourceFor(m.expand(name))
}

func (m *mapper) ResourcesFor(name schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.RESTMapper.ResourcesFor(m.expand(name))
}

func (m *mapper) ResourceSingularizer(name string) (string, error) {
	return m.RESTMapper.ResourceSingularizer(m.expand(schema.GroupVersionResource{Resource: name}).Resource)
}
