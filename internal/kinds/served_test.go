package kinds

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/suite/kindstest"
)

func discovered(preferred string, groupVersions ...string) *metav1.APIGroup {
	group := &metav1.APIGroup{PreferredVersion: metav1.GroupVersionForDiscovery{GroupVersion: preferred}}
	for _, groupVersion := range groupVersions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: groupVersion})
	}
	return group
}

func TestServedResourcesAreInTheServersOrderOfPreference(t *testing.T) {
	second := discovered("b.io/v1", "b.io/v2", "b.io/v1")
	second.Name = "b.io"
	third := discovered("", "a.io/v1")
	third.Name = "a.io"
	core := discovered("v1", "v1")
	var lists []*metav1.APIResourceList
	for _, groupVersion := range []string{"a.io/v1", "b.io/v1", "b.io/v2", "v1"} {
		lists = append(lists, &metav1.APIResourceList{GroupVersion: groupVersion, APIResources: []metav1.APIResource{kindstest.Resource("Host", "hosts", "h")}})
	}
	all := newServed([]*metav1.APIGroup{second, third, core}, lists, nil)
	var got []string
	for _, r := range all.resources {
		got = append(got, r.gvr.GroupVersion().String())
	}
	assert.Equal(t, []string{"v1", "b.io/v1", "b.io/v2", "a.io/v1"}, got)
	assert.True(t, all.complete())

	for arg, want := range map[string]string{"hosts": "v1", "h": "v1", "Host.b.io": "b.io/v1", "hosts.v2.b.io": "b.io/v2", "h.a": "a.io/v1"} {
		requests, err := parse(arg)
		assert.NoError(t, err)
		for _, request := range requests {
			if found := all.find(request); found != nil {
				assert.Equal(t, want, found.gvr.GroupVersion().String(), arg)
			}
		}
	}
}

func TestDiscoveryThatIsForbiddenSaysWhichRightIsMissing(t *testing.T) {
	all := newServed(nil, nil, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("unknown")))
	assert.False(t, all.complete())
	assert.ErrorContains(t, all.doubt(nil), "system:discovery")
	assert.True(t, apierrors.IsForbidden(all.doubt(nil)))
}
