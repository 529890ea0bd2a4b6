package testserver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// discover answers requests that are about the API and not about objects.
func (s *Server) discover(w http.ResponseWriter, r *http.Request) {
	aggregated := strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList") && strings.Contains(r.Header.Get("Accept"), "v=v2")
	switch p := strings.Trim(r.URL.Path, "/"); {
	case p == "version":
		plain(w, apiversion.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2", Platform: "linux/amd64"})
	case p == "healthz", p == "livez", p == "readyz":
		_, _ = w.Write([]byte("ok"))
	case p == "openapi/v3":
		s.serving.Load().documents.HandleDiscovery(w, r)
	case strings.HasPrefix(r.URL.Path, "/openapi/v3/"):
		s.describe(w, r, strings.TrimPrefix(r.URL.Path, "/openapi/v3/"))
	case p == "api" && aggregated:
		s.aggregate(w, true)
	case p == "apis" && aggregated:
		s.aggregate(w, false)
	case p == "api":
		plain(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case p == "apis":
		plain(w, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: s.groups()})
	case strings.HasPrefix(p, "apis/") && strings.Count(p, "/") == 1:
		s.group(w, strings.TrimPrefix(p, "apis/"))
	default:
		at, ok := parse(r.URL.Path)
		if list := s.resources(at.group, at.version); ok && list.APIResources != nil {
			plain(w, list)
			return
		}
		if strings.HasPrefix(p, "api/") {
			s.fail(w, nil, s.unserved(""))
			return
		}
		s.fail(w, nil, errNoPath)
	}
}

func plain(w http.ResponseWriter, o any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o) // the client may have gone
}

// groups are the groups of the API but the legacy one, each with its versions.
func (s *Server) groups() (all []metav1.APIGroup) {
	for _, k := range s.kinds().All() {
		if k.Group == "" {
			continue
		}
		if len(all) == 0 || all[len(all)-1].Name != k.Group {
			all = append(all, metav1.APIGroup{Name: k.Group})
		}
		g := &all[len(all)-1]
		v := metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion().String(), Version: k.Version}
		if !slices.Contains(g.Versions, v) {
			g.Versions = append(g.Versions, v)
		}
		g.PreferredVersion = g.Versions[0]
	}
	return all
}

func (s *Server) group(w http.ResponseWriter, name string) {
	for _, g := range s.groups() {
		if g.Name == name {
			g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			plain(w, g)
			return
		}
	}
	s.fail(w, nil, errNoPath)
}

// verbsOfObjects are what can be done with objects, in the order in which a server names them.
func verbsOfObjects(k *kinds.Kind) metav1.Verbs {
	switch {
	case k.Storage == namespacesStored:
		return metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	case k.Custom != nil && k.Storage != definitionsStored:
		return metav1.Verbs{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	}
	return metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

// partKinds are the kinds of subresources that are not the object itself.
var partKinds = map[string]schema.GroupVersionKind{
	"binding":  {Kind: "Binding"},
	"eviction": {Group: "policy", Version: "v1", Kind: "Eviction"},
	"scale":    {Group: "autoscaling", Version: "v1", Kind: "Scale"},
	"token":    {Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"},
}

// verbsOf are what can be done with a subresource.
func verbsOf(part string) metav1.Verbs {
	switch part {
	case "binding", "eviction", "token":
		return metav1.Verbs{"create"}
	case "finalize":
		return metav1.Verbs{"update"}
	}
	return metav1.Verbs{"get", "patch", "update"}
}

func (s *Server) resources(group, version string) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, k := range s.kinds().All() {
		if k.Group != group || k.Version != version {
			continue
		}
		list.GroupVersion = k.GroupVersion().String()
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.Resource, SingularName: k.Singular, Namespaced: k.Namespaced, Kind: k.Kind, Verbs: verbsOfObjects(k),
			ShortNames: k.ShortNames, Categories: k.Categories, StorageVersionHash: hash(k),
		})
		for _, part := range k.Subresources {
			one := metav1.APIResource{Name: k.Resource + "/" + part, Namespaced: k.Namespaced, Kind: k.Kind, Verbs: verbsOf(part)}
			if other, is := partKinds[part]; is {
				one.Group, one.Version, one.Kind = other.Group, other.Version, other.Kind
			}
			list.APIResources = append(list.APIResources, one)
		}
	}
	return list
}

// hash tells apart in which version of which kind objects are stored: all versions of one kind
// have the same.
func hash(k *kinds.Kind) string {
	as := k.StoredAs()
	sum := sha256.Sum256([]byte(as.Group + "/" + as.Version + "/" + as.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

// aggregate answers discovery in one document. See
// https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery
func (s *Server) aggregate(w http.ResponseWriter, legacy bool) {
	list := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	for _, k := range s.kinds().All() {
		if (k.Group == "") != legacy {
			continue
		}
		n := len(list.Items)
		if n == 0 || list.Items[n-1].Name != k.Group {
			list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{})
			n++
			list.Items[n-1].Name = k.Group
		}
		g := &list.Items[n-1]
		if v := len(g.Versions); v == 0 || g.Versions[v-1].Version != k.Version {
			g.Versions = append(g.Versions, apidiscovery.APIVersionDiscovery{Version: k.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
		}
		v := &g.Versions[len(g.Versions)-1]
		v.Resources = append(v.Resources, aggregated(k))
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_ = json.NewEncoder(w).Encode(list) // the client may have gone
}

func aggregated(k *kinds.Kind) apidiscovery.APIResourceDiscovery {
	kind := func(group, version, name string) *metav1.GroupVersionKind {
		return &metav1.GroupVersionKind{Group: group, Version: version, Kind: name}
	}
	scope := apidiscovery.ScopeCluster
	if k.Namespaced {
		scope = apidiscovery.ScopeNamespace
	}
	r := apidiscovery.APIResourceDiscovery{
		Resource: k.Resource, ResponseKind: kind(k.Group, k.Version, k.Kind), Scope: scope, SingularResource: k.Singular,
		Verbs: verbsOfObjects(k), ShortNames: k.ShortNames, Categories: k.Categories,
	}
	for _, part := range k.Subresources {
		of := kind(k.Group, k.Version, k.Kind)
		if other, is := partKinds[part]; is {
			of = kind(other.Group, other.Version, other.Kind)
		}
		r.Subresources = append(r.Subresources, apidiscovery.APISubresourceDiscovery{Subresource: part, ResponseKind: of, Verbs: verbsOf(part)})
	}
	return r
}
