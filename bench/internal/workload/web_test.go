package workload

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestMarksOfTheWebAreReadFromWhatIsServed(t *testing.T) {
	w, err := NewWeb(&rest.Config{Host: "127.0.0.1"}, 1000, 10)
	require.NoError(t, err)
	for _, mark := range []int{0, 1, 255, 256, 12_000, 1 << 16, 1<<20 + 77} {
		var endpoints []string
		for _, e := range w.slice(1999, mark).Endpoints {
			endpoints = append(endpoints, netip.AddrPortFrom(netip.MustParseAddr(e.Addresses[0]), 8080).String())
		}
		assert.Len(t, endpoints, 10)
		slices.Sort(endpoints)
		assert.Equal(t, mark, EndpointMark(endpoints))
		assert.Equal(t, mark, PathMark(webIngress(3, mark).Spec.Rules[0].HTTP.Paths[1].Path))
	}
	assert.Zero(t, EndpointMark(nil))
	assert.Zero(t, EndpointMark([]string{"[::1]:80"}))
	assert.Zero(t, PathMark("/"))
}

func TestChangesOfTheWebAreOfAllObjectsInTurn(t *testing.T) {
	w, err := NewWeb(&rest.Config{Host: "127.0.0.1"}, 10, 2)
	require.NoError(t, err)
	lanes, ingresses := map[int]int{}, 0
	for mark := 1; mark <= 4000; mark++ {
		object, isIngress := w.changed(mark)
		if isIngress {
			ingresses++
		}
		assert.Less(t, object, w.Services())
		lanes[w.Lane(mark)]++
	}
	assert.Equal(t, 200, ingresses)
	assert.Len(t, lanes, 10+20)
}
