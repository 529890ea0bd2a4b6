package kinds

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kates-go/kates/internal/test/suite/kindstest"
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

// TestARefusalOfDiscoverySaysMoreThanUnknown: client-go leaves that word of it.
func TestARefusalOfDiscoverySaysMoreThanUnknown(t *testing.T) {
	unknown := apierrors.NewGenericServerResponse(http.StatusForbidden, "get", schema.GroupResource{}, "", "unknown", 0, true)
	const refused = "reading it is forbidden, which everybody may by the cluster role system:discovery"
	require.EqualError(t, unknown, "unknown", "that is what client-go says")
	gv := schema.GroupVersion{Group: "apps", Version: "v1"}
	other := errors.New("other")
	for text, err := range map[string]error{
		refused: unknown,
		refused + `: forbidden: User "a" cannot get path "/apis"`:                  apierrors.NewGenericServerResponse(http.StatusForbidden, "get", schema.GroupResource{}, "", `forbidden: User "a" cannot get path "/apis"`, 0, true),
		"unable to retrieve the complete list of server APIs: apps/v1: " + refused: &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{gv: unknown}},
		"unable to retrieve the complete list of server APIs: apps/v1: other":      &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{gv: other}},
		"other": other,
	} {
		said := Said(err)
		assert.EqualError(t, said, text)
		failed, partial := discovery.GroupDiscoveryFailedErrorGroups(said)
		assert.Equal(t, apierrors.IsForbidden(err), apierrors.IsForbidden(said))
		if partial {
			err, said = err.(*discovery.ErrGroupDiscoveryFailed).Groups[gv], failed[gv]
			assert.Equal(t, apierrors.IsForbidden(err), apierrors.IsForbidden(said))
		}
	}
	assert.NoError(t, Said(nil))
	all := newServed(nil, nil, unknown)
	assert.EqualError(t, all.doubt(nil), refused)
}
