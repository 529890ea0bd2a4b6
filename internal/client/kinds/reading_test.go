package kinds

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kates-go/kates/internal/test/suite/kindstest"
)

func TestConcurrentLookUpsShareOneReading(t *testing.T) {
	s, r, _ := backends["aggregated"](t)
	arrived, release := s.Hold()
	const n = 8
	results := make(chan error, n)
	look := func() { _, err := r.Kind(t.Context(), "pods"); results <- err }
	go look()
	<-arrived
	for range n - 1 {
		go look()
	}
	close(release)
	for range n {
		assert.NoError(t, <-results)
	}
	assert.Equal(t, 1, s.Requests()["/apis"])
}

func TestKnownKindsResolveWhileTheServerIsSlow(t *testing.T) {
	s, r, _ := backends["aggregated"](t)
	_, err := r.Kind(t.Context(), "pods")
	require.NoError(t, err)
	arrived, release := s.Hold()
	unknown := make(chan error, 1)
	go func() { _, err := r.Kind(t.Context(), "foo"); unknown <- err }()
	<-arrived
	_, err = r.Kind(t.Context(), "pods")
	assert.NoError(t, err, "no lock is held during the request")
	assert.Equal(t, "pods", r.Storage(t.Context(), podsV1))
	close(release)
	var target *UnknownKindError
	assert.ErrorAs(t, <-unknown, &target)
}

var podsV1 = v1Resource("", "pods")

func TestAWaiterMakesAReadingThatWasCutShortAgain(t *testing.T) {
	s, r, _ := backends["aggregated"](t)
	arrived, release := s.Hold()
	first, cancel := context.WithCancel(t.Context())
	firstResult, secondResult := make(chan error, 1), make(chan error, 1)
	go func() { _, err := r.Kind(first, "pods"); firstResult <- err }()
	<-arrived
	go func() { _, err := r.Kind(t.Context(), "pods"); secondResult <- err }()
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
	s := kindstest.New(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	r := New(nil, ending{uncached{s.Discovery(t)}, cancel}, testclock.NewFakePassiveClock(time.Unix(1000, 0)))
	_, err := r.Kind(ctx, "pods")
	require.NoError(t, err)
	_, err = r.Kind(t.Context(), "svc")
	require.NoError(t, err)
	assert.Equal(t, 1, s.Requests()["/apis"])
}

func TestAWaiterLeavesWithItsOwnContext(t *testing.T) {
	s, r, _ := backends["aggregated"](t)
	arrived, release := s.Hold()
	firstResult := make(chan error, 1)
	go func() { _, err := r.Kind(t.Context(), "pods"); firstResult <- err }()
	<-arrived
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Kind(ended, "pods")
	assert.ErrorIs(t, err, context.Canceled)
	close(release)
	assert.NoError(t, <-firstResult)
}

func TestAReadingOlderThanAnInvalidationIsNotKept(t *testing.T) {
	s := kindstest.New(t, false)
	// No cache of client-go's between: its lock would order the two.
	r := New(nil, uncached{s.Discovery(t)}, testclock.NewFakePassiveClock(time.Unix(1000, 0)))
	arrived, release := s.Hold()
	result := make(chan error, 1)
	go func() { _, err := r.Kind(t.Context(), "pods"); result <- err }()
	<-arrived
	require.NoError(t, r.Invalidate())
	close(release)
	require.NoError(t, <-result)
	before := s.Requests()["/apis"]
	_, err := r.Kind(t.Context(), "pods")
	require.NoError(t, err)
	assert.Equal(t, before+1, s.Requests()["/apis"])
}
