package accumulator

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// hanging is a query whose kind is looked for until a channel is closed.
func hanging(q query.Query, until <-chan struct{}) query.Query {
	found := q.Resolve
	q.Resolve = func(ctx context.Context) (object.Resource, error) {
		select {
		case <-until:
			return found(ctx)
		case <-ctx.Done():
			return object.Resource{}, ctx.Err()
		}
	}
	return q
}

// soon is a context that ends before anything that hangs.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestG8AChangeWhoseKindIsLookedForInVainDelaysNoOtherChange: discovery does not answer.
func TestG8AChangeWhoseKindIsLookedForInVainDelaysNoOtherChange(t *testing.T) {
	spaces := spaceQuery("C", "cs", "team=a")
	for name, c := range map[string]query.Query{"kind": sim.Query("C", "cs"), "namespaces": spaces} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				a, _ := twoOverOne(t, s, streams)
				snap := &three{}
				answered := make(chan struct{})
				if name == "namespaces" {
					c.Spaces.Resolve = hanging(query.Query{Resolve: spaces.Spaces.Resolve}, answered).Resolve
				} else {
					c = hanging(c, answered)
				}
				added := make(chan error, 1)
				go func() { added <- a.Add(t.Context(), c) }()
				synctest.Wait()
				require.NoError(t, a.Replace(soon(t), over("A", "as", "other")))
				require.NoError(t, a.Remove(soon(t), "B"))
				sim.After(time.Second)
				update(t, a, snap)
				assert.Equal(t, []string{"as2"}, sim.Names(snap.A))
				assert.Nil(t, snap.B)
				close(answered)
				require.NoError(t, <-added)
				require.Len(t, a.Status(), 2)
			})
		})
	}
}

// TestG8AChangeSaysWhatOthersHaveMadeOfItsQueriesMeanwhile: while the kinds of a change are
// looked for, others come first.
func TestG8AChangeSaysWhatOthersHaveMadeOfItsQueriesMeanwhile(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a, _ := twoOverOne(t, s, streams)
		snap := &three{}
		answered := make(chan struct{})
		replaced, added, closed := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() { replaced <- a.Replace(t.Context(), hanging(over("A", "as", "other"), answered)) }()
		go func() { added <- a.Add(t.Context(), hanging(sim.Query("C", "cs"), answered)) }()
		synctest.Wait()
		require.NoError(t, a.Remove(soon(t), "A"))
		require.NoError(t, a.Add(soon(t), sim.Query("C", "ds")))
		close(answered)
		assert.ErrorIs(t, <-replaced, query.ErrUnknownQuery)
		assert.ErrorContains(t, <-added, "already")
		sim.After(time.Second)
		assert.Equal(t, []string{"-as1"}, told(update(t, a, snap)))

		never := make(chan struct{})
		go func() { closed <- a.Replace(t.Context(), hanging(over("B", "bs", "other"), never)) }()
		synctest.Wait()
		a.Close()
		close(never)
		assert.ErrorIs(t, <-closed, stream.ErrClosed)
		sim.After(time.Minute)
		assert.Zero(t, streams.Len(), "G11: nothing was joined")
	})
}

// TestG8AnOptionalKindThatIsLookedForInVainDelaysNeitherChangesNorHelp: it is not served, and
// discovery does not answer when it is looked for again.
func TestG8AnOptionalKindThatIsLookedForInVainDelaysNeitherChangesNorHelp(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a, _ := twoOverOne(t, s, streams)
		snap := &three{}
		never := make(chan struct{})
		var asked atomic.Int64
		defer close(never)
		c := sim.Query("C", "cs")
		again := hanging(c, never).Resolve
		c.Optional = true
		c.Resolve = func(ctx context.Context) (object.Resource, error) {
			if asked.Add(1) == 1 {
				return object.Resource{}, errors.Join(query.ErrNotServed)
			}
			return again(ctx)
		}
		require.NoError(t, a.Add(t.Context(), c))
		sim.After(10 * time.Second)
		require.Greater(t, asked.Load(), int64(1))
		require.NoError(t, a.Remove(soon(t), "B"))
		update(t, a, snap)
		quietSuccessor(t, s, a, snap)
		sim.After(5 * time.Second)
		assert.Equal(t, []string{"-as1", "+as2"}, told(update(t, a, snap)), "its quiet stream was helped")
	})
}

// quietSuccessor replaces A by a query whose stream does not learn of the version that was shown,
// unless the server is asked.
func quietSuccessor(t *testing.T, s *sim.Server, a *Accumulator, snap any) {
	t.Helper()
	s.Mu.Lock()
	before := s.ListAnswer
	s.ListAnswer = func(string) time.Duration { return second } // on its way, others write
	s.Mu.Unlock()
	require.NoError(t, a.Replace(soon(t), over("A", "as", "other")))
	sim.After(second / 2)
	s.Touch("as", "as1", 1)
	synctest.Wait()
	require.Equal(t, []string{"~as1"}, told(update(t, a, snap)))
	sim.After(second)
	s.Mu.Lock()
	s.ListAnswer = before
	s.Mu.Unlock()
}

// TestG8AKindWhoseListsHangDelaysNoHelpForAnother: streams of two kinds are late, and the server
// does not answer for one of them.
func TestG8AKindWhoseListsHangDelaysNoHelpForAnother(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a, snap := twoOverOne(t, s, streams)
		s.Mu.Lock()
		s.ListAnswer = func(string) time.Duration { return second }
		s.Mu.Unlock()
		require.NoError(t, a.Replace(soon(t), over("B", "bs", "other")))
		sim.After(second / 2)
		s.Touch("bs", "bs1", 1)
		synctest.Wait()
		update(t, a, snap)
		s.Mu.Lock()
		s.ListAnswer = func(resource string) time.Duration {
			return map[string]time.Duration{"bs": time.Hour}[resource]
		}
		s.Mu.Unlock()
		sim.After(2 * second) // the server is asked about B, and hangs
		quietSuccessor(t, s, a, snap)
		sim.After(5 * second)
		assert.Equal(t, []string{"-as1", "+as2"}, told(update(t, a, snap)))
		assert.Equal(t, []string{"bs1"}, sim.Names(snap.B), "B still waits")
		s.Mu.Lock()
		s.ListAnswer = nil
		s.Mu.Unlock()
		sim.After(time.Minute)
		assert.Equal(t, []string{"-bs1", "+bs2"}, told(update(t, a, snap)))
	})
}

// TestG11AnAccumulatorIsClosedWhileTheServerIsAskedInVain: its tasks end.
func TestG11AnAccumulatorIsClosedWhileTheServerIsAskedInVain(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a, snap := twoOverOne(t, s, streams)
		quietSuccessor(t, s, a, snap)
		s.Mu.Lock()
		s.ListDelay = func(string) time.Duration { return time.Hour }
		s.Mu.Unlock()
		sim.After(second / 5)
		started := time.Now()
		a.Close()
		assert.Zero(t, time.Since(started))
	})
}

// TestG3ASuccessorThatIsOftenLateAsksTheServerLessAndLess: it selects by labels in the namespace
// that is busy, so each change that is shown might be one of its own.
func TestG3ASuccessorThatIsOftenLateAsksTheServerLessAndLess(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a, snap := twoOverOne(t, s, streams)
		s.Mu.Lock()
		s.ListAnswer = func(string) time.Duration { return second }
		s.Mu.Unlock()
		q := over("A", "as", "ns")
		q.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		require.NoError(t, a.Replace(t.Context(), q))
		s.Mu.Lock()
		before := s.Opened("as")
		s.Mu.Unlock()
		for n := range 20 * 60 { // a minute
			s.Touch("as", "as1", n)
			sim.After(50 * time.Millisecond)
			synctest.Wait()
			update(t, a, snap)
		}
		s.Mu.Lock()
		assert.LessOrEqual(t, s.Opened("as")-before, 10)
		s.Mu.Unlock()
		s.Bookmarks()
		synctest.Wait()
		update(t, a, snap)
		assert.Empty(t, snap.A, "a bookmark helps")
	})
}
