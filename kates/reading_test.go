package kates

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
)

// hold makes the server's next answers to /apis wait until release is closed,
// and sends on arrived for each.
func (s *discoveryServer) hold() (arrived chan struct{}, release chan struct{}) {
	arrived, release = make(chan struct{}, 100), make(chan struct{})
	s.change(func() {
		s.hook = func(request *http.Request) {
			if request.URL.Path == "/apis" {
				arrived <- struct{}{}
				select {
				case <-release:
				case <-request.Context().Done():
				}
			}
		}
	})
	return arrived, release
}

func TestConcurrentLookUpsShareOneReading(t *testing.T) {
	s, r, _ := backends["aggregated"](t)
	arrived, release := s.hold()
	const n = 8
	results := make(chan error, n)
	look := func() { _, err := r.kind("pods"); results <- err }
	go look()
	<-arrived
	for range n - 1 {
		go look()
	}
	close(release)
	for range n {
		assert.NoError(t, <-results)
	}
	assert.Equal(t, 1, s.requests()["/apis"])
}

func TestKnownKindsResolveWhileTheServerIsSlow(t *testing.T) {
	s, r, _ := backends["aggregated"](t)
	_, err := r.kind("pods")
	require.NoError(t, err)
	arrived, release := s.hold()
	unknown := make(chan error, 1)
	go func() { _, err := r.kind("foo"); unknown <- err }()
	<-arrived
	_, err = r.kind("pods")
	assert.NoError(t, err, "no lock is held during the request")
	assert.Equal(t, "pods", r.storage(podsV1))
	close(release)
	var target *UnknownKindError
	assert.ErrorAs(t, <-unknown, &target)
}

var podsV1 = v1Resource("", "pods")

func TestAWaiterMakesAReadingThatWasCutShortAgain(t *testing.T) {
	s, r, _ := backends["aggregated"](t)
	arrived, release := s.hold()
	first, cancel := context.WithCancel(t.Context())
	firstResult, secondResult := make(chan error, 1), make(chan error, 1)
	go func() { _, err := r.kindContext(first, "pods"); firstResult <- err }()
	<-arrived
	go func() { _, err := r.kind("pods"); secondResult <- err }()
	cancel()
	assert.ErrorIs(t, <-firstResult, context.Canceled)
	<-arrived
	close(release)
	assert.NoError(t, <-secondResult)
}

// ending is discovery during which the caller's context ends, though it is read whole.
type ending struct {
	uncached
	end context.CancelFunc
}

func (e ending) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	defer e.end()
	return e.uncached.ServerGroupsAndResources()
}

func TestAWholeReadingIsKeptThoughItsContextEnded(t *testing.T) {
	s := newDiscoveryServer(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	r := newResolver(nil, ending{uncached{s.client(t)}, cancel}, testclock.NewFakePassiveClock(time.Unix(1000, 0)))
	_, err := r.kindContext(ctx, "pods")
	require.NoError(t, err)
	_, err = r.kind("svc")
	require.NoError(t, err)
	assert.Equal(t, 1, s.requests()["/apis"])
}

func TestAWaiterLeavesWithItsOwnContext(t *testing.T) {
	s, r, _ := backends["aggregated"](t)
	arrived, release := s.hold()
	firstResult := make(chan error, 1)
	go func() { _, err := r.kind("pods"); firstResult <- err }()
	<-arrived
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.kindContext(ended, "pods")
	assert.ErrorIs(t, err, context.Canceled)
	close(release)
	assert.NoError(t, <-firstResult)
}

func TestAReadingOlderThanAnInvalidationIsNotKept(t *testing.T) {
	s := newDiscoveryServer(t, false)
	// No cache of client-go's between: its lock would order the two.
	r := newResolver(nil, uncached{s.client(t)}, testclock.NewFakePassiveClock(time.Unix(1000, 0)))
	arrived, release := s.hold()
	result := make(chan error, 1)
	go func() { _, err := r.kind("pods"); result <- err }()
	<-arrived
	require.NoError(t, r.invalidate())
	close(release)
	require.NoError(t, <-result)
	before := s.requests()["/apis"]
	_, err := r.kind("pods")
	require.NoError(t, err)
	assert.Equal(t, before+1, s.requests()["/apis"])
}
