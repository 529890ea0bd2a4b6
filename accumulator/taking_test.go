package accumulator

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/test/suite/sim"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
)

// unseen is a step that one goroutine waits for and another takes. The race detector does not see
// it, so it does not order the two goroutines.
type unseen struct{ taken bool }

//go:norace
func (u *unseen) take() { u.taken = true }

//go:norace
func (u *unseen) wait() {
	for !u.taken {
		runtime.Gosched()
	}
}

// The race detector fails this test if an Update reads a query that Replace writes without their
// lock. Everything has been taken, and the next lock of the Update comes after Replace has
// written.
func TestAQueryIsReplacedWhileAnUpdateReadsWhetherItIsOptional(t *testing.T) {
	var taken, replaced unseen
	watched := false
	config := stream.Config{Points: func(m stream.Moment) {
		if watched && m.Point == stream.AtTaken {
			taken.take()
			replaced.wait()
		}
	}}
	sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Failing(func(_, resource string) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no role"))
		})
		q := spaceQuery("A", "as", "team=a")
		q.Optional = true
		a := watching(t, streams, collect.Options{}, q)
		sim.After(time.Minute)
		synctest.Wait()
		require.NoError(t, a.Ready(), "an optional query whose namespaces nobody may list")
		next := spaceQuery("A", "as", "team=b") // of a stream whose lock Update does not take
		next.Optional = true
		watched = true
		done := make(chan error)
		go func() {
			taken.wait()
			err := a.Replace(t.Context(), next)
			replaced.take()
			done <- err
		}()
		var snap one
		r := update(t, a, &snap)
		assert.True(t, r.Complete)
		assert.Empty(t, snap.A)
		require.NoError(t, <-done)
	})
}
