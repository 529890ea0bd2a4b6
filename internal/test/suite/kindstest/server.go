// Package kindstest has a server of discovery and OpenAPI for tests.
package kindstest

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
)

// Server serves the discovery of an API server, in its aggregated or its older form, and fails
// when a test wants it to. Tests change its fields within [Server.Change].
type Server struct {
	*httptest.Server

	mu     sync.Mutex
	Legacy bool
	Groups []string                        // in order of priority
	Lists  map[string][]metav1.APIResource // by group version, the preferred one first
	Order  map[string][]string             // group: its group versions
	Broken map[string]int                  // group version: status code
	Down   int                             // status code of everything
	Reads  map[string]int                  // path: requests
	Hook   func(*http.Request)             // before an answer, without locks
	Others map[string]http.HandlerFunc     // by path: what is not discovery
}

// New starts a server with some resources. It ends with the test. legacy is the older form.
func New(t *testing.T, legacy bool) *Server {
	s := &Server{
		Legacy: legacy, Lists: map[string][]metav1.APIResource{}, Order: map[string][]string{},
		Broken: map[string]int{}, Reads: map[string]int{}, Others: map[string]http.HandlerFunc{},
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	s.Serve("v1",
		Resource("Pod", "pods", "po"), Resource("Service", "services", "svc"), ClusterScoped(Resource("Namespace", "namespaces", "ns")),
		Hashed(Resource("Event", "events", "ev"), "event-hash"),
		metav1.APIResource{Name: "pods/eviction", Namespaced: true, Group: "policy", Version: "v1", Kind: "Eviction", Verbs: []string{"create"}},
		metav1.APIResource{Name: "bindings", SingularName: "binding", Namespaced: true, Kind: "Binding", Verbs: []string{"create"}},
	)
	s.Serve("apps/v1", Hashed(Resource("Deployment", "deployments", "deploy"), "deployment-hash"))
	s.Serve("events.k8s.io/v1", Hashed(Resource("Event", "events", "ev"), "event-hash"))
	s.Serve("autoscaling/v2", Resource("HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa"))
	s.Serve("autoscaling/v1", Resource("HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa"), Resource("Legacy", "legacies"))
	s.Serve("networking.k8s.io/v1", Resource("Ingress", "ingresses", "ing"))
	s.Serve("getambassador.io/v3alpha1", metav1.APIResource{
		Name: "hosts", SingularName: "ambhost", Namespaced: true, Kind: "Host", Verbs: EveryVerb, ShortNames: []string{"ah"},
	})
	s.Serve("serving.knative.dev/v1", Hashed(Resource("Service", "services", "kservice"), "knative-hash"))
	return s
}

// EveryVerb is what most resources take.
var EveryVerb = []string{"create", "delete", "get", "list", "patch", "update", "watch"}

// Resource is a namespaced resource as discovery shows it.
func Resource(kind, plural string, shortNames ...string) metav1.APIResource {
	return metav1.APIResource{
		Name: plural, SingularName: strings.ToLower(kind), Namespaced: true, Kind: kind, Verbs: EveryVerb, ShortNames: shortNames,
	}
}

// ClusterScoped makes a resource one without namespaces.
func ClusterScoped(r metav1.APIResource) metav1.APIResource {
	r.Namespaced = false
	return r
}

// Hashed gives a resource a storageVersionHash.
func Hashed(r metav1.APIResource, hash string) metav1.APIResource {
	r.StorageVersionHash = hash
	return r
}

// Change changes the server while it runs.
func (s *Server) Change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Serve adds a group version, as the last of its group.
func (s *Server) Serve(groupVersion string, resources ...metav1.APIResource) {
	s.Change(func() {
		gv, _ := schema.ParseGroupVersion(groupVersion)
		if !slices.Contains(s.Groups, gv.Group) {
			s.Groups = append(s.Groups, gv.Group)
		}
		if !slices.Contains(s.Order[gv.Group], groupVersion) {
			s.Order[gv.Group] = append(s.Order[gv.Group], groupVersion)
		}
		s.Lists[groupVersion] = resources
	})
}

// Requests is the number of requests so far, by path.
func (s *Server) Requests() (all map[string]int) {
	s.Change(func() { all = maps.Clone(s.Reads) })
	return all
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	hook, other := s.Hook, s.Others[request.URL.Path]
	s.Reads[request.URL.Path]++
	s.mu.Unlock()
	if hook != nil {
		hook(request)
	}
	if other != nil {
		other(w, request)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Down != 0 {
		fail(w, s.Down)
		return
	}
	aggregated := !s.Legacy && strings.Contains(request.Header.Get("Accept"), "g=apidiscovery.k8s.io;v=v2;")
	root := strings.Trim(request.URL.Path, "/")
	switch {
	case root != "api" && root != "apis":
		s.list(w, strings.TrimPrefix(strings.TrimPrefix(root, "apis/"), "api/"))
	case aggregated:
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_ = json.NewEncoder(w).Encode(s.aggregated(root == "api"))
	case root == "api":
		answer(w, &metav1.APIVersions{Versions: []string{"v1"}})
	default:
		groups := &metav1.APIGroupList{}
		for _, name := range s.Groups {
			group := metav1.APIGroup{Name: name}
			for _, groupVersion := range s.Order[name] {
				gv, _ := schema.ParseGroupVersion(groupVersion)
				group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: groupVersion, Version: gv.Version})
			}
			group.PreferredVersion = group.Versions[0]
			if name != "" {
				groups.Groups = append(groups.Groups, group)
			}
		}
		answer(w, groups)
	}
}

func (s *Server) list(w http.ResponseWriter, groupVersion string) {
	resources, ok := s.Lists[groupVersion]
	if status := s.Broken[groupVersion]; status != 0 {
		fail(w, status)
		return
	}
	if !ok {
		fail(w, http.StatusNotFound)
		return
	}
	answer(w, &metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: groupVersion, APIResources: resources,
	})
}

func (s *Server) aggregated(core bool) *apidiscoveryv2.APIGroupDiscoveryList {
	list := &apidiscoveryv2.APIGroupDiscoveryList{}
	for _, name := range s.Groups {
		if (name == "") != core {
			continue
		}
		group := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, groupVersion := range s.Order[name] {
			gv, _ := schema.ParseGroupVersion(groupVersion)
			version := apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
			if s.Broken[groupVersion] != 0 {
				version.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
			}
			for _, r := range s.Lists[groupVersion] {
				if strings.Contains(r.Name, "/") {
					continue
				}
				scope := apidiscoveryv2.ScopeCluster
				if r.Namespaced {
					scope = apidiscoveryv2.ScopeNamespace
				}
				version.Resources = append(version.Resources, apidiscoveryv2.APIResourceDiscovery{
					Resource: r.Name, SingularResource: r.SingularName, Scope: scope, Verbs: r.Verbs, ShortNames: r.ShortNames,
					ResponseKind: &metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: r.Kind},
				})
			}
			group.Versions = append(group.Versions, version)
		}
		list.Items = append(list.Items, group)
	}
	return list
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func fail(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	reason := map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
		http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
	}[status]
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(status), Reason: reason,
	})
}

// Discovery is a client of the server's discovery.
func (s *Server) Discovery(t *testing.T) discovery.CachedDiscoveryInterface {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfigAndClient(&rest.Config{Host: s.URL, QPS: -1}, s.Server.Client())
	require.NoError(t, err)
	return memory.NewMemCacheClient(client)
}
