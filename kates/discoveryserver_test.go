package kates

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

// discoveryServer serves the discovery of an API server, in its aggregated or its
// older form, and fails where a test wants it to.
type discoveryServer struct {
	*httptest.Server

	mu     sync.Mutex
	legacy bool
	groups []string                        // in order of priority
	lists  map[string][]metav1.APIResource // by group version, the preferred one first
	order  map[string][]string             // group: its group versions
	broken map[string]int                  // group version: status code
	down   int                             // status code of everything
	reads  map[string]int                  // path: requests
	hook   func(*http.Request)             // before an answer, without locks
	others map[string]http.HandlerFunc     // by path: what is not discovery
}

func newDiscoveryServer(t *testing.T, legacy bool) *discoveryServer {
	s := &discoveryServer{
		legacy: legacy, lists: map[string][]metav1.APIResource{}, order: map[string][]string{},
		broken: map[string]int{}, reads: map[string]int{}, others: map[string]http.HandlerFunc{},
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	s.serve("v1",
		apiResource("Pod", "pods", "po"), apiResource("Service", "services", "svc"), clusterScoped(apiResource("Namespace", "namespaces", "ns")),
		hashed(apiResource("Event", "events", "ev"), "event-hash"),
		metav1.APIResource{Name: "pods/eviction", Namespaced: true, Group: "policy", Version: "v1", Kind: "Eviction", Verbs: []string{"create"}},
		metav1.APIResource{Name: "bindings", SingularName: "binding", Namespaced: true, Kind: "Binding", Verbs: []string{"create"}},
	)
	s.serve("apps/v1", hashed(apiResource("Deployment", "deployments", "deploy"), "deployment-hash"))
	s.serve("events.k8s.io/v1", hashed(apiResource("Event", "events", "ev"), "event-hash"))
	s.serve("autoscaling/v2", apiResource("HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa"))
	s.serve("autoscaling/v1", apiResource("HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa"), apiResource("Legacy", "legacies"))
	s.serve("networking.k8s.io/v1", apiResource("Ingress", "ingresses", "ing"))
	s.serve("getambassador.io/v3alpha1", metav1.APIResource{
		Name: "hosts", SingularName: "ambhost", Namespaced: true, Kind: "Host", Verbs: everyVerb, ShortNames: []string{"ah"},
	})
	s.serve("serving.knative.dev/v1", hashed(apiResource("Service", "services", "kservice"), "knative-hash"))
	return s
}

var everyVerb = []string{"create", "delete", "get", "list", "patch", "update", "watch"}

func apiResource(kind, plural string, shortNames ...string) metav1.APIResource {
	return metav1.APIResource{
		Name: plural, SingularName: strings.ToLower(kind), Namespaced: true, Kind: kind, Verbs: everyVerb, ShortNames: shortNames,
	}
}

func clusterScoped(r metav1.APIResource) metav1.APIResource {
	r.Namespaced = false
	return r
}

func hashed(r metav1.APIResource, hash string) metav1.APIResource {
	r.StorageVersionHash = hash
	return r
}

func (s *discoveryServer) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// serve adds a group version, after those of its group that are there.
func (s *discoveryServer) serve(groupVersion string, resources ...metav1.APIResource) {
	s.change(func() {
		gv, _ := schema.ParseGroupVersion(groupVersion)
		if !slices.Contains(s.groups, gv.Group) {
			s.groups = append(s.groups, gv.Group)
		}
		if !slices.Contains(s.order[gv.Group], groupVersion) {
			s.order[gv.Group] = append(s.order[gv.Group], groupVersion)
		}
		s.lists[groupVersion] = resources
	})
}

func (s *discoveryServer) requests() (all map[string]int) {
	s.change(func() { all = maps.Clone(s.reads) })
	return all
}

func (s *discoveryServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	hook, other := s.hook, s.others[request.URL.Path]
	s.reads[request.URL.Path]++
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
	if s.down != 0 {
		fail(w, s.down)
		return
	}
	aggregated := !s.legacy && strings.Contains(request.Header.Get("Accept"), "g=apidiscovery.k8s.io;v=v2;")
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
		for _, name := range s.groups {
			group := metav1.APIGroup{Name: name}
			for _, groupVersion := range s.order[name] {
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

func (s *discoveryServer) list(w http.ResponseWriter, groupVersion string) {
	resources, ok := s.lists[groupVersion]
	if status := s.broken[groupVersion]; status != 0 {
		fail(w, status)
		return
	}
	if !ok {
		fail(w, http.StatusNotFound)
		return
	}
	answer(w, &metav1.APIResourceList{
		TypeMeta: TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: groupVersion, APIResources: resources,
	})
}

func (s *discoveryServer) aggregated(core bool) *apidiscoveryv2.APIGroupDiscoveryList {
	list := &apidiscoveryv2.APIGroupDiscoveryList{}
	for _, name := range s.groups {
		if (name == "") != core {
			continue
		}
		group := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: ObjectMeta{Name: name}}
		for _, groupVersion := range s.order[name] {
			gv, _ := schema.ParseGroupVersion(groupVersion)
			version := apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
			if s.broken[groupVersion] != 0 {
				version.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
			}
			for _, r := range s.lists[groupVersion] {
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
		TypeMeta: TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(status), Reason: reason,
	})
}

func (s *discoveryServer) client(t *testing.T) discovery.CachedDiscoveryInterface {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfigAndClient(&rest.Config{Host: s.URL, QPS: -1}, s.Server.Client())
	require.NoError(t, err)
	return memory.NewMemCacheClient(client)
}
