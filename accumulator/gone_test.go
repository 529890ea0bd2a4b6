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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/accumulator/stream"
)

func TestG8AKindThatIsCertainlyGoneEmptiesItsFieldAndComesBack(t *testing.T) {
	for _, optional := range []bool{false, true} {
		var gone atomic.Bool
		config := stream.Config{Gone: func(context.Context, Resource, string, error) bool { return gone.Load() }}
		bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
			q := simQuery("A", "as")
			q.Optional = optional
			s.create("as", thing("x"))
			a := watching(t, streams, Options{}, q)
			require.True(t, signalled(a))
			var snap one
			update(t, a, &snap)
			own{s, streams}.put("as", thing("own"), 0)
			update(t, a, &snap)
			notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "as"}, "")
			s.failing(func(string, string) error { return notFound })
			s.cut()
			after(10 * time.Second)
			synctest.Wait()
			assert.False(t, update(t, a, &snap).Changed, "one version that is not served is not an empty kind")
			assert.Equal(t, Missing, a.Status()[0].State)
			gone.Store(true)
			after(10 * time.Second)
			assert.True(t, signalled(a))
			assert.Equal(t, []string{"-own", "-x"}, told(update(t, a, &snap)))
			assert.Equal(t, optional, snap.A == nil, "absent is nil, empty is not")
			assert.NoError(t, a.Ready())
			s.remove("as", "x")
			s.failing(nil)
			gone.Store(false)
			after(10 * time.Second)
			require.True(t, signalled(a))
			assert.Equal(t, []string{"+own"}, told(update(t, a, &snap)))
		})
	}
}

func TestG8AnOptionalKindWhoseFirstListFindsItGoneHoldsNothingUp(t *testing.T) {
	config := stream.Config{Gone: func(context.Context, Resource, string, error) bool { return true }}
	bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
		q := simQuery("B", "bs")
		q.Optional = true
		s.create("as", thing("x"))
		s.create("bs", thing("y"))
		s.failing(func(_, resource string) error {
			if resource == "bs" {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "bs"}, "")
			}
			return nil
		})
		a := watching(t, streams, Options{}, simQuery("A", "as"), q)
		require.True(t, signalled(a))
		var snap two
		update(t, a, &snap)
		assert.Nil(t, snap.B)
		s.failing(nil)
		after(10 * time.Second)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"+y"}, told(update(t, a, &snap)))
	})
}

func TestG8ANamespaceThatIsGoneTakesItsObjectsThoughItsListIsForbidden(t *testing.T) {
	config := stream.Config{Gone: func(_ context.Context, _ Resource, ns string, err error) bool {
		return ns == "n1" && apierrors.IsForbidden(err)
	}}
	bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
		q := simQuery("A", "as")
		q.Namespaces = []string{"n1", "n2"}
		s.create("as", in("n1", "x"))
		s.create("as", in("n2", "y"))
		a := watching(t, streams, Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		s.failing(func(string, string) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "as"}, "", errors.New("no role"))
		})
		s.cut()
		after(10 * time.Second)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"-x"}, told(update(t, a, &snap)), "in the other one it is only the right that is gone")
	})
}

func TestG8AVersionThatIsNoLongerServedIsFollowedWithoutAGap(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		var version atomic.Value
		version.Store("v1")
		q := simQuery("A", "as")
		q.Resolve = func(context.Context) (Resource, error) {
			r := simResource("as")
			r.Version = version.Load().(string)
			return r, nil
		}
		s.create("as", thing("x"))
		a := watching(t, streams, Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		s.failing(func(string, string) error { return apierrors.NewNotFound(schema.GroupResource{Resource: "as"}, "") })
		s.cut()
		after(10 * time.Second)
		assert.False(t, update(t, a, &snap).Changed)
		version.Store("v2")
		s.mu.Lock()
		s.listDelay = func(string) time.Duration { return time.Second }
		s.fail = nil
		for i := range s.history { // the same objects, in another version of the API
			s.history[i].new.SetAPIVersion("v2")
		}
		s.mu.Unlock()
		for range 10 {
			after(time.Second)
			synctest.Wait()
			update(t, a, &snap)
			assert.Equal(t, []string{"x"}, names(snap.A))
		}
		assert.Equal(t, "v2", snap.A[0].GetAPIVersion(), "what has not changed is shown as the others are")
		assert.Equal(t, Synced, a.Status()[0].State)
		s.touch("as", "x", 7)
		synctest.Wait()
		assert.Equal(t, []string{"~x"}, told(update(t, a, &snap)))
	})
}

// theWatchBrings deletes the objects of as, and then the kind.
func theWatchBrings(s *sim, t *testing.T, a *Accumulator, snap *one) {
	t.Helper()
	s.remove("as", "x")
	require.True(t, signalled(a))
	require.Equal(t, []string{"-x"}, told(update(t, a, snap)))
	require.NotNil(t, snap.A, "the kind is there yet")
	s.failing(func(string, string) error { return apierrors.NewNotFound(schema.GroupResource{Resource: "as"}, "") })
	s.cut()
	after(10 * time.Second)
}

func TestG8AnOptionalKindThatGoesOrComesEmptyIsNews(t *testing.T) {
	var gone atomic.Bool
	config := stream.Config{Gone: func(context.Context, Resource, string, error) bool { return gone.Load() }}
	bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
		q := simQuery("A", "as")
		q.Optional = true
		s.create("as", thing("x"))
		a := watching(t, streams, Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		theWatchBrings(s, t, a, &snap)
		require.False(t, signalled(a), "that is not certain")
		assert.False(t, a.Status()[0].Absent)
		gone.Store(true)
		after(10 * time.Second)
		require.True(t, signalled(a), "nil is not empty")
		require.True(t, update(t, a, &snap).Changed)
		assert.Nil(t, snap.A)
		assert.True(t, a.Status()[0].Absent)
		after(10 * time.Second)
		assert.False(t, signalled(a), "it is not news again")
		gone.Store(false)
		s.failing(nil)
		after(10 * time.Second)
		require.True(t, signalled(a))
		require.True(t, update(t, a, &snap).Changed)
		assert.NotNil(t, snap.A)
		assert.False(t, a.Status()[0].Absent)
	})
}

func TestG4AnOwnWriteOfAKindThatWasGoneIsShownBeforeItsWatchIsBack(t *testing.T) {
	config := stream.Config{Gone: func(context.Context, Resource, string, error) bool { return true }}
	bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
		q := simQuery("A", "as")
		q.Optional = true
		s.create("as", thing("x"))
		a := watching(t, streams, Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		theWatchBrings(s, t, a, &snap)
		require.True(t, signalled(a))
		update(t, a, &snap)
		require.Nil(t, snap.A)
		own{s, streams}.put("as", thing("own"), 0)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"+own"}, told(update(t, a, &snap)))
		assert.Equal(t, []string{"own"}, names(snap.A))
		s.failing(nil)
		after(10 * time.Second)
		assert.False(t, update(t, a, &snap).Changed)
	})
}

func TestG8AnOptionalQueryThatWasShownAndMayNoLongerBeReadIsNotAbsent(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		forbidden := func(string, string) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "as"}, "", errors.New("no role"))
		}
		q := simQuery("A", "as")
		q.Optional = true
		s.create("as", thing("x"))
		s.failing(forbidden)
		a := watching(t, streams, Options{}, q)
		after(10 * time.Second)
		assert.True(t, a.Status()[0].Absent)
		s.failing(nil)
		after(10 * time.Second)
		assert.False(t, a.Status()[0].Absent)
		s.failing(forbidden)
		s.cut()
		after(10 * time.Second)
		assert.Equal(t, Forbidden, a.Status()[0].State)
		assert.False(t, a.Status()[0].Absent, "what is shown is old")
	})
}

func TestG8AnOptionalQueryByNamespacesThatMayNotBeReadHoldsNothingUp(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		q := simQuery("A", "as")
		q.Optional, q.Spaces = true, &Spaces{Resolve: simQuery("", "spaces").Resolve}
		s.create("as", thing("x"))
		s.failing(func(_, resource string) error {
			if resource == "spaces" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no role"))
			}
			return nil
		})
		a := watching(t, streams, Options{}, q)
		after(10 * time.Second)
		require.True(t, signalled(a))
		var snap one
		require.True(t, update(t, a, &snap).Complete)
		assert.Nil(t, snap.A)
		assert.True(t, a.Status()[0].Absent)
		ns := thing("ns")
		ns.SetNamespace("")
		s.create("spaces", ns)
		s.failing(nil)
		after(10 * time.Second)
		require.True(t, signalled(a))
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		assert.Equal(t, []string{"x"}, names(snap.A))
	})
}
