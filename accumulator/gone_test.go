package accumulator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func TestG8AKindThatIsCertainlyGoneEmptiesItsFieldAndComesBack(t *testing.T) {
	for _, optional := range []bool{false, true} {
		var gone atomic.Bool
		config := stream.Config{Gone: func(context.Context, object.Resource, string, error) bool { return gone.Load() }}
		sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			q := sim.Query("A", "as")
			q.Optional = optional
			s.Create("as", sim.Thing("x"))
			a := watching(t, streams, collect.Options{}, q)
			require.True(t, signalled(a))
			var snap one
			update(t, a, &snap)
			sim.NewClient(s, streams).Put("as", sim.Thing("own"), 0)
			update(t, a, &snap)
			notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "as"}, "")
			s.Failing(func(string, string) error { return notFound })
			s.Cut()
			sim.After(10 * time.Second)
			synctest.Wait()
			assert.False(t, update(t, a, &snap).Changed, "one version that is not served is not an empty kind")
			assert.Equal(t, stream.Missing, a.Status()[0].State)
			gone.Store(true)
			sim.After(10 * time.Second)
			assert.True(t, signalled(a))
			assert.Equal(t, []string{"-own", "-x"}, told(update(t, a, &snap)))
			assert.Equal(t, optional, snap.A == nil, "absent is nil, empty is not")
			assert.NoError(t, a.Ready())
			s.Remove("as", "x")
			s.Failing(nil)
			gone.Store(false)
			sim.After(10 * time.Second)
			require.True(t, signalled(a))
			assert.Equal(t, []string{"+own"}, told(update(t, a, &snap)))
		})
	}
}

func TestG8AnOptionalKindWhoseFirstListFindsItGoneHoldsNothingUp(t *testing.T) {
	config := stream.Config{Gone: func(context.Context, object.Resource, string, error) bool { return true }}
	sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q := sim.Query("B", "bs")
		q.Optional = true
		s.Create("as", sim.Thing("x"))
		s.Create("bs", sim.Thing("y"))
		s.Failing(func(_, resource string) error {
			if resource == "bs" {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "bs"}, "")
			}
			return nil
		})
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), q)
		require.True(t, signalled(a))
		var snap two
		update(t, a, &snap)
		assert.Nil(t, snap.B)
		s.Failing(nil)
		sim.After(10 * time.Second)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"+y"}, told(update(t, a, &snap)))
	})
}

func TestG8ANamespaceThatIsGoneTakesItsObjectsThoughItsListIsForbidden(t *testing.T) {
	config := stream.Config{Gone: func(_ context.Context, _ object.Resource, ns string, err error) bool {
		return ns == "n1" && apierrors.IsForbidden(err)
	}}
	sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q := sim.Query("A", "as")
		q.Namespaces = []string{"n1", "n2"}
		s.Create("as", sim.In("n1", "x"))
		s.Create("as", sim.In("n2", "y"))
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		s.Failing(func(string, string) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "as"}, "", errors.New("no role"))
		})
		s.Cut()
		sim.After(10 * time.Second)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"-x"}, told(update(t, a, &snap)), "in the other one it is only the right that is gone")
	})
}

// servedAs returns a query of "as", and the API version that the server has for it.
func servedAs(served string) (query.Query, *atomic.Value) {
	var version atomic.Value
	version.Store(served)
	q := sim.Query("A", "as")
	q.Resolve = func(context.Context) (object.Resource, error) {
		r := sim.Resource("as")
		r.Version = version.Load().(string)
		return r, nil
	}
	return q, &version
}

func TestG8AVersionThatIsNoLongerServedIsFollowedWithoutAGap(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q, version := servedAs("v1")
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		s.Failing(func(string, string) error { return apierrors.NewNotFound(schema.GroupResource{Resource: "as"}, "") })
		s.Cut()
		sim.After(10 * time.Second)
		assert.False(t, update(t, a, &snap).Changed)
		version.Store("v2")
		s.Mu.Lock()
		s.ListDelay = func(string) time.Duration { return time.Second }
		s.Fail = nil
		for i := range s.History { // the same objects, in another version of the API
			s.History[i].New.SetAPIVersion("v2")
		}
		s.Mu.Unlock()
		for range 10 {
			sim.After(time.Second)
			synctest.Wait()
			update(t, a, &snap)
			assert.Equal(t, []string{"x"}, sim.Names(snap.A))
		}
		assert.Equal(t, "v2", snap.A[0].GetAPIVersion(), "what has not changed is shown as the others are")
		assert.Len(t, a.collector.Fields()[0].Query.Listeners(), 1)
		assert.Equal(t, 1, streams.Len(), "the watch of the former version has ended")
		assert.Equal(t, stream.Synced, a.Status()[0].State)
		s.Touch("as", "x", 7)
		synctest.Wait()
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
	})
}

// The cluster as it was restored does not serve the version that the query had. The stream of the
// one that is served is new, and has never shown what is lost. The server is asked for that once.
func TestG5ARestoredClusterThatDoesNotServeAVersionYetIsShownInAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTwoVersions()
		streams := streamset.New(stream.Config{Source: sim.Plain(v.source)})
		defer streams.Close()
		v.Create("as", sim.Thing("changed"))
		backup := v.Rev
		v.Touch("as", "changed", 1)
		v.Create("as", sim.Thing("lost"))
		a := watching(t, streams, collect.Options{}, v.of("", sim.Query("A", "as")))
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		require.Equal(t, []string{"changed", "lost"}, sim.Names(snap.A))

		v.Failing(func(string, string) error { return apierrors.NewNotFound(schema.GroupResource{Resource: "as"}, "") })
		v.Restore(backup)
		sim.After(10 * time.Second)
		require.False(t, update(t, a, &snap).Changed)
		v.end()
		v.Failing(nil)
		for range 7 { // the first says what waits
			sim.After(time.Second)
			synctest.Wait()
			update(t, a, &snap)
		}
		assert.Equal(t, []string{"changed"}, sim.Names(snap.A))
		assert.Equal(t, strconv.Itoa(backup), snap.A[0].GetResourceVersion())
		assert.False(t, update(t, a, &snap).Changed)
		v.Create("as", sim.Thing("new"))
		synctest.Wait()
		assert.Equal(t, []string{"+new"}, told(update(t, a, &snap)))
	})
}

// theWatchBrings deletes the objects of as, and then the kind.
func theWatchBrings(s *sim.Server, t *testing.T, a *Accumulator, snap *one) {
	t.Helper()
	s.Remove("as", "x")
	require.True(t, signalled(a))
	require.Equal(t, []string{"-x"}, told(update(t, a, snap)))
	require.NotNil(t, snap.A, "the kind is there yet")
	s.Failing(func(string, string) error { return apierrors.NewNotFound(schema.GroupResource{Resource: "as"}, "") })
	s.Cut()
	sim.After(10 * time.Second)
}

func TestG8AnOptionalKindThatGoesOrComesEmptyIsNews(t *testing.T) {
	var gone atomic.Bool
	config := stream.Config{Gone: func(context.Context, object.Resource, string, error) bool { return gone.Load() }}
	sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q := sim.Query("A", "as")
		q.Optional = true
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		theWatchBrings(s, t, a, &snap)
		require.False(t, signalled(a), "that is not certain")
		assert.False(t, a.Status()[0].Absent)
		gone.Store(true)
		sim.After(10 * time.Second)
		require.True(t, signalled(a), "nil is not empty")
		require.True(t, update(t, a, &snap).Changed)
		assert.Nil(t, snap.A)
		assert.True(t, a.Status()[0].Absent)
		sim.After(10 * time.Second)
		assert.False(t, signalled(a), "it is not news again")
		gone.Store(false)
		s.Failing(nil)
		sim.After(10 * time.Second)
		require.True(t, signalled(a))
		require.True(t, update(t, a, &snap).Changed)
		assert.NotNil(t, snap.A)
		assert.False(t, a.Status()[0].Absent)
	})
}

func TestG4AnOwnWriteOfAKindThatWasGoneIsShownBeforeItsWatchIsBack(t *testing.T) {
	config := stream.Config{Gone: func(context.Context, object.Resource, string, error) bool { return true }}
	sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q := sim.Query("A", "as")
		q.Optional = true
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		theWatchBrings(s, t, a, &snap)
		require.True(t, signalled(a))
		update(t, a, &snap)
		require.Nil(t, snap.A)
		sim.NewClient(s, streams).Put("as", sim.Thing("own"), 0)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"+own"}, told(update(t, a, &snap)))
		assert.Equal(t, []string{"own"}, sim.Names(snap.A))
		s.Failing(nil)
		sim.After(10 * time.Second)
		assert.False(t, update(t, a, &snap).Changed)
	})
}

func TestG8AnOptionalQueryThatWasShownAndMayNoLongerBeReadIsNotAbsent(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		forbidden := func(string, string) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "as"}, "", errors.New("no role"))
		}
		q := sim.Query("A", "as")
		q.Optional = true
		s.Create("as", sim.Thing("x"))
		s.Failing(forbidden)
		a := watching(t, streams, collect.Options{}, q)
		sim.After(10 * time.Second)
		assert.True(t, a.Status()[0].Absent)
		s.Failing(nil)
		sim.After(10 * time.Second)
		assert.False(t, a.Status()[0].Absent)
		s.Failing(forbidden)
		s.Cut()
		sim.After(10 * time.Second)
		assert.Equal(t, stream.Forbidden, a.Status()[0].State)
		assert.False(t, a.Status()[0].Absent, "what is shown is old")
	})
}

func TestG8AnOptionalQueryByNamespacesThatMayNotBeReadHoldsNothingUp(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		q := sim.Query("A", "as")
		q.Optional, q.Spaces = true, &query.Spaces{Resolve: func(context.Context) (object.Resource, error) {
			r := sim.Resource("spaces")
			r.Namespaced = false
			return r, nil
		}}
		s.Create("as", sim.Thing("x"))
		s.Failing(func(_, resource string) error {
			if resource == "spaces" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no role"))
			}
			return nil
		})
		a := watching(t, streams, collect.Options{}, q)
		sim.After(10 * time.Second)
		require.True(t, signalled(a))
		var snap one
		require.True(t, update(t, a, &snap).Complete)
		assert.Nil(t, snap.A)
		assert.True(t, a.Status()[0].Absent)
		ns := sim.Thing("ns")
		ns.SetNamespace("")
		s.Create("spaces", ns)
		s.Failing(nil)
		sim.After(10 * time.Second)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		assert.Equal(t, []string{"x"}, sim.Names(snap.A))
	})
}

func TestAnOptionalKindThatComesAndDoesNotFitItsQueryIsAnErrorInTheStatusUntilItDoes(t *testing.T) {
	sim.Bubble(t, stream.Config{KindPoll: time.Second}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		var answer atomic.Pointer[error]
		says := func(err error) { answer.Store(&err) }
		says(query.ErrNotServed)
		q := sim.Query("A", "as")
		q.Optional = true
		q.Resolve = func(context.Context) (object.Resource, error) { return sim.Resource("as"), *answer.Load() }
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		for range 2 {
			require.True(t, a.Status()[0].Absent)
			says(fmt.Errorf("%w: as are in no namespace", query.ErrUnfit))
			sim.After(2 * time.Second)
			st := a.Status()[0]
			assert.False(t, st.Absent)
			assert.Equal(t, stream.Waiting, st.State)
			assert.Contains(t, st.Error, "in no namespace")
			assert.NoError(t, a.Ready())
			assert.False(t, update(t, a, &snap).Changed)
			says(query.ErrNotServed)
			sim.After(2 * time.Second)
		}
		says(nil)
		sim.After(2 * time.Second)
		require.True(t, signalled(a))
		update(t, a, &snap)
		assert.Len(t, snap.A, 1)
		assert.Empty(t, a.Status()[0].Error)
		says(query.ErrUnfit)
		_, err := New(t.Context(), streams, []query.Query{q}, collect.Options{})
		assert.ErrorIs(t, err, query.ErrUnfit, "at the start it is an error")
	})
}
