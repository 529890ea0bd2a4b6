package query_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// replaced opens a query of the namespace ns, and then a successor for the namespace other, whose
// list takes a second. The reader has had a batch of the first one.
func replaced(t *testing.T, s *sim.Server, h query.Host) query.Running {
	s.Create("as", sim.In("ns", "x"))
	s.Create("as", sim.In("other", "y"))
	q := sim.Query("A", "as")
	q.Namespace = "ns"
	found, err := query.Find(context.Background(), q)
	require.NoError(t, err)
	r, err := query.Open(context.Background(), h, found)
	require.NoError(t, err)
	synctest.Wait()
	r.Take(false)
	s.Mu.Lock()
	s.ListAnswer = func(string) time.Duration { return time.Second }
	s.Mu.Unlock()
	q.Namespace = "other"
	found, err = query.Find(context.Background(), q)
	require.NoError(t, err)
	succ, err := r.Succeed(context.Background(), found)
	require.NoError(t, err)
	r.Await(succ)()
	sim.After(time.Second / 2)
	return r
}

// TestG2ASuccessorThatIsLateIsShownWithASignalAsSoonAsItIsNot: a bookmark brings it up to date,
// which wakes nobody, and then the upkeep finds nothing to do.
func TestG2ASuccessorThatIsLateIsShownWithASignalAsSoonAsItIsNot(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		var woken, attended atomic.Int64
		ready := &atomic.Bool{}
		ready.Store(true)
		r := replaced(t, s, query.Host{Streams: streams, Ready: ready, Past: &query.Past{},
			Wake: func() { woken.Add(1) }, Attend: func() { attended.Add(1) }, Follow: func() {}})
		defer r.Close()
		s.Create("as", sim.In("ns", "z")) // shown by the old one
		synctest.Wait()
		r.Take(false)
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

// TestG5ASuccessorIsAsNewAsABatchThatChangedNothing: what has come and gone before the reader saw
// it says, too, how new what the reader has is.
func TestG5ASuccessorIsAsNewAsABatchThatChangedNothing(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		ready := &atomic.Bool{}
		ready.Store(true)
		r := replaced(t, s, query.Host{Streams: streams, Ready: ready, Past: &query.Past{},
			Wake: func() {}, Attend: func() {}, Follow: func() {}})
		defer r.Close()
		s.Create("as", sim.In("ns", "z"))
		s.Remove("as", "z")
		synctest.Wait()
		require.Empty(t, r.Take(false).Changes)
		sim.After(time.Second)
		require.False(t, r.Settled(), "its list is from before")
		s.Bookmarks()
		synctest.Wait()
		require.True(t, r.Settled())
	})
}
