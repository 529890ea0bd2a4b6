package kinds

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kates-go/kates/internal/base/plain"
)

// served is the result of one reading of discovery: the resources that the server serves, the
// preferred ones first, and the group versions that could not be read. It is immutable.
type served struct {
	resources []servedResource
	failed    map[schema.GroupVersion]error // group versions that could not be read
	err       error                         // nothing could be read
}

type servedResource struct {
	gvr        schema.GroupVersionResource
	kind       string
	singular   string
	shortNames []string
	verbs      []string
	namespaced bool
	hash       string // storageVersionHash, if discovery had it
}

func (r *servedResource) mapping() *meta.RESTMapping {
	scope := meta.RESTScopeRoot
	if r.namespaced {
		scope = meta.RESTScopeNamespace
	}
	gvk := r.gvr.GroupVersion().WithKind(r.kind)
	return &meta.RESTMapping{Resource: r.gvr, GroupVersionKind: gvk, Scope: scope}
}

// newServed indexes the answer of ServerGroupsAndResources. The answer may be partial: then err is
// a *discovery.ErrGroupDiscoveryFailed, and groups may lack the group versions that failed.
func newServed(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, err error) *served {
	all := &served{}
	err = Said(err)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	switch {
	case err != nil && !partial:
		all.err = err
		return all
	case len(groups) == 0:
		// client-go's cache answers this, without an error, for a server that named no groups. No
		// API server is like that for long.
		all.err = errors.New("the server named no API groups")
		return all
	}
	byVersion := make(map[string]*metav1.APIResourceList, len(lists))
	for _, list := range lists {
		byVersion[list.GroupVersion] = list
	}
	for gv, cause := range failed {
		if list := byVersion[gv.String()]; list != nil && len(list.APIResources) == 0 && gv.Group != "" {
			continue // served and empty, like many custom metrics: a failure for client-go's cache
		}
		if all.failed == nil {
			all.failed = map[schema.GroupVersion]error{}
		}
		all.failed[gv] = cause
	}
	core := func(group *metav1.APIGroup) bool { return group.Name == "" }
	if i := slices.IndexFunc(groups, core); i > 0 { // the core group first, like kubectl's mapper
		groups = slices.Insert(slices.Delete(slices.Clone(groups), i, i+1), 0, groups[i])
	}
	for _, group := range groups {
		preferred := group.PreferredVersion.GroupVersion
		all.add(byVersion[preferred])
		for _, version := range group.Versions {
			if version.GroupVersion != preferred {
				all.add(byVersion[version.GroupVersion])
			}
		}
	}
	if len(all.resources) == 0 && len(all.failed) == 0 { // groups without versions, for example
		all.err = errors.New("the server named no resources")
	}
	return all
}

// Said returns an error of discovery with a text that says why. client-go's own is "unknown" if the
// server has refused, because client-go does not read the body of that answer.
func Said(err error) error { return plain.Error(said(err)) }

func said(err error) error {
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	switch {
	case partial:
		groups := make(map[schema.GroupVersion]error, len(failed))
		for gv, cause := range failed {
			groups[gv] = Said(cause)
		}
		return &discovery.ErrGroupDiscoveryFailed{Groups: groups}
	case !apierrors.IsForbidden(err):
		return err
	}
	return &refused{err}
}

// refused is the error of a server that has refused discovery.
type refused struct{ err error }

func (r *refused) Error() string {
	text := "reading it is forbidden, which everybody may by the cluster role system:discovery"
	if said := r.err.Error(); said != "unknown" {
		text += ": " + said
	}
	return text
}

func (r *refused) Unwrap() error { return r.err }

// complete says that a resource that is missing here is not served.
func (s *served) complete() bool { return s.err == nil && len(s.failed) == 0 }

func (s *served) add(list *metav1.APIResourceList) {
	if list == nil {
		return
	}
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return
	}
	for i := range list.APIResources {
		r := &list.APIResources[i]
		if strings.Contains(r.Name, "/") || r.Kind == "" {
			continue // a subresource is not a kind
		}
		s.resources = append(s.resources, servedResource{
			gvr:        gv.WithResource(r.Name),
			kind:       r.Kind,
			singular:   r.SingularName,
			shortNames: r.ShortNames,
			verbs:      r.Verbs,
			namespaced: r.Namespaced,
			hash:       r.StorageVersionHash,
		})
	}
}

func (s *served) resource(gvr schema.GroupVersionResource) *servedResource {
	for i := range s.resources {
		if s.resources[i].gvr == gvr {
			return &s.resources[i]
		}
	}
	return nil
}

// find returns the preferred match: an exact group before a group's prefix, a full name before a
// short one.
func (s *served) find(request request) *servedResource {
	for _, inGroup := range request.groupMatches() {
		for _, named := range request.nameMatches() {
			for i := range s.resources {
				r := &s.resources[i]
				versioned := request.version == "" || r.gvr.Version == request.version
				if versioned && inGroup(r.gvr.Group) && named(r) {
					return r
				}
			}
		}
	}
	return nil
}

// doubt says why a kind that was not found may be served all the same: nothing could be read, or
// not a group version that could have the kind.
func (s *served) doubt(requests []request) error {
	if s.err != nil {
		return s.err
	}
	relevant := map[schema.GroupVersion]error{}
	for gv, cause := range s.failed {
		for _, request := range requests {
			for _, inGroup := range request.groupMatches() {
				if inGroup(gv.Group) {
					relevant[gv] = cause
				}
			}
		}
	}
	if len(relevant) == 0 {
		return nil
	}
	return &discovery.ErrGroupDiscoveryFailed{Groups: relevant}
}
