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

// replaced opens a query of the namespace ns, and then one to take its place, of the namespace
// other, whose list takes a second. The reader has had a batch of the first one.
func replaced(t *testing.T, s *sim.Server, h query.Host) (now, next query.Running) {
	s.Create("as", sim.In("ns", "x"))
	s.Create("as", sim.In("other", "y"))
	open := func(namespace string, former query.Running) query.Running {
		q := sim.Query("A", "as")
		q.Namespace = namespace
		found, err := query.FindKind(context.Background(), q)
		require.NoError(t, err)
		r := query.New(h, found, h.Wake, former != nil)
		require.NoError(t, r.Connect())
		return r
	}
	now = open("ns", nil)
	synctest.Wait()
	now.Take(false)
	s.Mu.Lock()
	s.ListAnswer = func(string) time.Duration { return time.Second }
	s.Mu.Unlock()
	next = open("other", now)
	sim.After(time.Second / 2)
	return now, next
}

// TestG5AQueryThatReplacesAnotherOneIsAsNewAsABatchThatChangedNothing: what has come and gone
// before the reader saw it says, too, how new what the reader has is. While it is late, each of its
// events may let it take over.
func TestG5AQueryThatReplacesAnotherOneIsAsNewAsABatchThatChangedNothing(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		var attended atomic.Int64
		r, next := replaced(t, s, query.Host{Streams: streams, Ready: func() bool { return true }, Past: &query.Past{},
			Wake: func() {}, Attend: func() { attended.Add(1) }, Follow: func() {}})
		defer r.Close()
		defer next.Close()
		s.Create("as", sim.In("ns", "z"))
		s.Remove("as", "z")
		synctest.Wait()
		require.Empty(t, r.Take(true).Changes)
		sim.After(time.Second)
		require.False(t, query.CanFollow(next, r), "its list is from before")
		require.NotEmpty(t, next.Attend())
		attended.Store(0)
		s.Create("as", sim.In("other", "z"))
		synctest.Wait()
		require.NotZero(t, attended.Load())
		require.True(t, query.CanFollow(next, r))
	})
}
