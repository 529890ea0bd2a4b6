package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"github.com/kates-go/kates/kates/katestest"
)

// The tests compare what unit tests see, and what a client says, with discovery: names, scopes,
// short names and the preferred version of everything that the server serves.
func TestTheFakesMapperAgreesWithTheServers(t *testing.T) {
	fake, err := katestest.NewMapper(
		katestest.Kind{APIVersion: "getambassador.io/v3alpha1", Kind: "Host", ShortNames: []string{"hst"}},
		katestest.Kind{APIVersion: "example.kates.io/v1", Kind: "Tenant", ClusterScoped: true},
		katestest.Kind{APIVersion: "validate.kates.io/v1", Kind: "Widget"},
		katestest.Kind{APIVersion: "configmapgen.kates.io/v1", Kind: "ConfigTemplate", ShortNames: []string{"ctpl"}})
	require.NoError(t, err)
	compareMapper(t, fake)
}

func TestAClientsMapperAgreesWithTheServers(t *testing.T) {
	compareMapper(t, newWire(t).client(t).RESTMapper())
}

func compareMapper(t *testing.T, mapper meta.RESTMapper) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(testCluster.Config)
	require.NoError(t, err)
	cached := memory.NewMemCacheClient(client)
	server := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)

	_, lists, err := cached.ServerGroupsAndResources()
	require.NoError(t, err)
	groups := groupsOfShortNames(lists)
	compared := 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") || resource.Kind == "Binding" {
				continue
			}
			compareResource(t, mapper, gv, resource)
			for _, name := range append([]string{resource.Name, resource.SingularName}, resource.ShortNames...) {
				if len(groups[name]) > 1 {
					// ev: client-go takes the group that comes first in its discovery, whose
					// order is random
					continue
				}
				compareName(t, mapper, server, name)
				compared++
			}
		}
	}
	assert.Greater(t, compared, 100)
}

// groupsOfShortNames finds the groups that use each short name.
func groupsOfShortNames(lists []*metav1.APIResourceList) map[string]map[string]bool {
	groups := map[string]map[string]bool{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			for _, name := range resource.ShortNames {
				if groups[name] == nil {
					groups[name] = map[string]bool{}
				}
				group, _, _ := strings.Cut(list.GroupVersion, "/")
				groups[name][group] = true
			}
		}
	}
	return groups
}

// compareResource compares one resource of one version with discovery.
func compareResource(t *testing.T, fake meta.RESTMapper, gv schema.GroupVersion, resource metav1.APIResource) {
	t.Helper()
	mapping, err := fake.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: resource.Kind}, gv.Version)
	if !assert.NoError(t, err, "%s %s", gv, resource.Kind) {
		return
	}
	assert.Equal(t, gv.WithResource(resource.Name), mapping.Resource)
	assert.Equal(t, resource.Namespaced, mapping.Scope.Name() == meta.RESTScopeNameNamespace, "whether %s is namespaced", mapping.Resource)
}

// compareName compares the resource that a name alone stands for, group and version included.
func compareName(t *testing.T, fake, server meta.RESTMapper, name string) {
	t.Helper()
	want, err := server.KindFor(schema.GroupVersionResource{Resource: name})
	require.NoError(t, err, name)
	got, err := fake.KindFor(schema.GroupVersionResource{Resource: name})
	if assert.NoError(t, err, name) {
		assert.Equal(t, want, got, name)
	}
}
