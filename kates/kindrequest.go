package kates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// kindRequest is one way to read what a user wrote for a kind. Everything but
// literal is in lower case, as resources, groups and versions are.
type kindRequest struct {
	name      string // plural, singular, short name or kind
	literal   string // name as it was written
	group     string
	version   string // "": the preferred one
	anyGroup  bool
	prefix    bool // the group may be given by its beginning: storageclass.storage
	kindFirst bool // it was written as an object's kind, rather than as a resource
}

// parseKind gives the readings of a kind argument, likeliest first.
func parseKind(arg string) ([]kindRequest, error) {
	if arg == "" {
		return nil, errors.New("look up a kind: it is empty")
	}
	if slash := strings.LastIndexByte(arg, '/'); slash >= 0 {
		gv, err := schema.ParseGroupVersion(strings.ToLower(arg[:slash]))
		literal := arg[slash+1:]
		if err != nil || gv.Version == "" || literal == "" {
			return nil, fmt.Errorf("look up kind %q: it is neither a kind nor apiVersion/kind", arg)
		}
		return []kindRequest{{name: strings.ToLower(literal), literal: literal, group: gv.Group, version: gv.Version, kindFirst: true}}, nil
	}
	literal, rest, qualified := strings.Cut(arg, ".")
	base := kindRequest{name: strings.ToLower(literal), literal: literal}
	rest = strings.ToLower(rest)
	switch {
	case base.name == "":
		return nil, fmt.Errorf("look up kind %q: it has no name", arg)
	case !qualified || rest == "":
		base.anyGroup = true
		return []kindRequest{base}, nil
	}
	var requests []kindRequest
	if v, group, ok := strings.Cut(rest, "."); ok {
		versioned := base
		// "pods.v1." is the core group in kubectl's notation, which it takes
		// for any group that has such a version.
		versioned.version, versioned.group, versioned.anyGroup = v, group, group == ""
		requests = append(requests, versioned)
	}
	if !strings.HasSuffix(rest, ".") {
		base.group, base.prefix = rest, true
		requests = append(requests, base)
	}
	return requests, nil
}

// groupMatches are the ways a group may match, best first.
func (k kindRequest) groupMatches() []func(group string) bool {
	if k.anyGroup {
		return []func(string) bool{func(string) bool { return true }}
	}
	matches := []func(string) bool{func(group string) bool { return group == k.group }}
	if k.prefix {
		matches = append(matches, func(group string) bool { return strings.HasPrefix(group, k.group) })
	}
	return matches
}

// nameMatches are the ways a resource may match by name, best first.
func (k kindRequest) nameMatches() []func(*servedResource) bool {
	resource := func(r *servedResource) bool {
		return r.gvr.Resource == k.name || (r.singular != "" && r.singular == k.name)
	}
	short := func(r *servedResource) bool { return slices.Contains(r.shortNames, k.name) }
	kind := func(r *servedResource) bool { return strings.EqualFold(r.kind, k.literal) }
	exact := func(r *servedResource) bool { return r.kind == k.literal }
	if k.kindFirst {
		return []func(*servedResource) bool{exact, kind, resource, short}
	}
	return []func(*servedResource) bool{resource, short, kind}
}

// findInMapper is (nil, nil) where there is no match.
func findInMapper(ctx context.Context, mapper meta.RESTMapperWithContext, request kindRequest) (*meta.RESTMapping, error) {
	ways := []func(context.Context, meta.RESTMapperWithContext, kindRequest) (*meta.RESTMapping, error){findResource, findKind}
	if request.kindFirst {
		slices.Reverse(ways)
	}
	for _, way := range ways {
		mapping, err := way(ctx, mapper, request)
		if mapping != nil {
			return mapping, nil
		}
		if err != nil && !meta.IsNoMatchError(err) {
			return nil, err
		}
	}
	return nil, nil
}

// findKind looks up the kind as it was written; mappers index kinds by letter.
func findKind(ctx context.Context, mapper meta.RESTMapperWithContext, request kindRequest) (*meta.RESTMapping, error) {
	var versions []string
	if request.version != "" {
		versions = []string{request.version}
	}
	mapping, err := mapper.RESTMappingWithContext(ctx, schema.GroupKind{Group: request.group, Kind: request.literal}, versions...)
	if err != nil {
		return nil, err
	}
	if request.version != "" && mapping.GroupVersionKind.Version != request.version {
		return nil, nil // never another version than the one asked for
	}
	// A discovery mapper answers to "deployment" with a kind of that spelling.
	if gvk, err := mapper.KindForWithContext(ctx, mapping.Resource); err == nil && strings.EqualFold(gvk.Kind, mapping.GroupVersionKind.Kind) {
		proper := *mapping
		proper.GroupVersionKind.Kind = gvk.Kind
		return &proper, nil
	}
	return mapping, nil
}

// findResource looks up a plural or singular name.
func findResource(ctx context.Context, mapper meta.RESTMapperWithContext, request kindRequest) (*meta.RESTMapping, error) {
	partial := schema.GroupVersionResource{Group: request.group, Version: request.version, Resource: request.name}
	kinds, err := mapper.KindsForWithContext(ctx, partial)
	if err != nil {
		return nil, err
	}
	for _, inGroup := range request.groupMatches() {
		matching := slices.DeleteFunc(slices.Clone(kinds), func(gvk schema.GroupVersionKind) bool {
			return !inGroup(gvk.Group) || (request.version != "" && gvk.Version != request.version)
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

// preferred chooses among several kinds of one name. The mapper's own choice is
// the best; mappers made from a scheme make none, and for these it is the core
// group, else the most mature version, if one group alone has it.
func preferred(ctx context.Context, mapper meta.RESTMapperWithContext, partial schema.GroupVersionResource, kinds []schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	if gvk, err := mapper.KindForWithContext(ctx, partial); err == nil && slices.Contains(kinds, gvk) {
		return gvk, nil
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int {
		if (a.Group == "") != (b.Group == "") {
			return strings.Compare(a.Group, b.Group)
		}
		if byVersion := version.CompareKubeAwareVersionStrings(b.Version, a.Version); byVersion != 0 {
			return byVersion
		}
		return strings.Compare(a.Group, b.Group)
	})
	best := kinds[0]
	for _, other := range kinds[1:] {
		if best.Group != "" && other.Group != best.Group && other.Version == best.Version {
			return best, &meta.AmbiguousResourceError{PartialResource: partial, MatchingKinds: kinds}
		}
	}
	if mapping, err := mapper.RESTMappingWithContext(ctx, best.GroupKind()); err == nil && slices.Contains(kinds, mapping.GroupVersionKind) {
		return mapping.GroupVersionKind, nil // its order of versions, where it has one
	}
	return best, nil
}

// expandShortName is for clusters without discovery, which are fakes.
func (k kindRequest) expandShortName() (kindRequest, bool) {
	long, ok := builtinShortNames[k.name]
	if !ok || !(k.anyGroup || k.group == long.Group) {
		return k, false
	}
	k.name, k.group, k.anyGroup, k.prefix = long.Resource, long.Group, false, false
	return k, true
}

var builtinShortNames = map[string]schema.GroupResource{
	"cm":     {Resource: "configmaps"},
	"ep":     {Resource: "endpoints"},
	"ev":     {Resource: "events"},
	"limits": {Resource: "limitranges"},
	"no":     {Resource: "nodes"},
	"ns":     {Resource: "namespaces"},
	"po":     {Resource: "pods"},
	"pv":     {Resource: "persistentvolumes"},
	"pvc":    {Resource: "persistentvolumeclaims"},
	"quota":  {Resource: "resourcequotas"},
	"rc":     {Resource: "replicationcontrollers"},
	"sa":     {Resource: "serviceaccounts"},
	"svc":    {Resource: "services"},
	"deploy": {Group: "apps", Resource: "deployments"},
	"ds":     {Group: "apps", Resource: "daemonsets"},
	"rs":     {Group: "apps", Resource: "replicasets"},
	"sts":    {Group: "apps", Resource: "statefulsets"},
	"hpa":    {Group: "autoscaling", Resource: "horizontalpodautoscalers"},
	"cj":     {Group: "batch", Resource: "cronjobs"},
	"ing":    {Group: "networking.k8s.io", Resource: "ingresses"},
	"netpol": {Group: "networking.k8s.io", Resource: "networkpolicies"},
	"pdb":    {Group: "policy", Resource: "poddisruptionbudgets"},
	"pc":     {Group: "scheduling.k8s.io", Resource: "priorityclasses"},
	"sc":     {Group: "storage.k8s.io", Resource: "storageclasses"},
	"crd":    {Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	"crds":   {Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
}
