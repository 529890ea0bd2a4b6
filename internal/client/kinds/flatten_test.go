package kinds

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFlattenOrdersResourcesAndFillsInTheirGroupAndVersion(t *testing.T) {
	lists := []*metav1.APIResourceList{
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			{Name: "deployments/scale", Group: "autoscaling", Version: "v2", Kind: "Scale"},
			{Name: "deployments", Kind: "Deployment", Verbs: []string{"list"}},
		}},
		nil,
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Kind: "Pod"},
			{Name: "pods/eviction", Group: "policy", Version: "v1", Kind: "Eviction"},
			{Name: "pods/log", Group: "", Version: "v1", Kind: "Pod"},
		}},
	}
	all, err := Flatten(lists, nil)
	require.NoError(t, err)
	var got []string
	for _, r := range all {
		got = append(got, r.Group+"/"+r.Version+" "+r.Name)
	}
	assert.Equal(t, []string{
		"/v1 pods", "/v1 pods/log", "apps/v1 deployments", "autoscaling/v2 deployments/scale", "policy/v1 pods/eviction",
	}, got)

	all[2].Verbs[0] = "changed"
	assert.Equal(t, "list", lists[0].APIResources[1].Verbs[0], "the result must not share memory with discovery's cache")
	assert.Empty(t, lists[0].APIResources[1].Group)
}

func TestFlattenRejectsAMalformedGroupVersion(t *testing.T) {
	_, err := Flatten([]*metav1.APIResourceList{{GroupVersion: "a/b/c"}}, nil)
	assert.ErrorContains(t, err, "a/b/c")
}
