package query_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/accumulator/query"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/suite/sim"
)

// none is what a reader of nothing has.
type none struct{}

func (none) Get(stream.Key) (stream.Object, bool) { return nil, false }
func (none) Keys(func(stream.Key) bool)           {}
func (none) Present() bool                        { return false }

// TestG2ASuccessorThatIsLateIsShownWithASignalAsSoonAsItIsNot: a bookmark brings it up to date,
// which wakes nobody, and then the upkeep finds nothing to do.
func TestG2ASuccessorThatIsLateIsShownWithASignalAsSoonAsItIsNot(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		s.Create("as", sim.In("ns", "x"))
		s.Create("as", sim.In("other", "y"))
		var woken, attended atomic.Int64
		ready := &atomic.Bool{}
		ready.Store(true)
		h := query.Host{Streams: streams, Ready: ready, Past: &query.Past{},
			Wake: func() { woken.Add(1) }, Attend: func() { attended.Add(1) }, Follow: func() {}}
		q := sim.Query("A", "as")
		q.Namespace = "ns"
		found, err := query.Find(context.Background(), q)
		require.NoError(t, err)
		r, err := query.Open(context.Background(), h, found)
		require.NoError(t, err)
		defer r.Close()
		synctest.Wait()
		r.Take(none{})
		s.Mu.Lock()
		s.ListAnswer = func(string) time.Duration { return time.Second }
		s.Mu.Unlock()
		next := sim.Query("A", "as")
		next.Namespace = "other"
		found, err = query.Find(context.Background(), next)
		require.NoError(t, err)
		succ, err := r.Succeed(context.Background(), found)
		require.NoError(t, err)
		r.Await(succ)()
		sim.After(time.Second / 2)
		s.Create("as", sim.In("ns", "z")) // shown by the old one
		synctest.Wait()
		r.Take(none{})
		sim.After(time.Second)
		require.False(t, r.Settled())
		require.NotEmpty(t, r.Late())
		woken.Store(0)
		s.Bookmarks()
		synctest.Wait()
		r.Tend()
		require.True(t, r.Settled())
		require.NotZero(t, woken.Load(), "nobody is told")
	})
}
