package accumulator

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/lister"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// unserved is the source of a version that may be served no longer.
type unserved struct {
	cache.ListerWatcherWithContext
	not *atomic.Bool
}

var errUnserved = apierrors.NewNotFound(schema.GroupResource{Resource: "as"}, "")

func (u unserved) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if u.not.Load() {
		return nil, errUnserved
	}
	return u.ListerWatcherWithContext.ListWithContext(ctx, o)
}

func (u unserved) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if u.not.Load() {
		return nil, errUnserved
	}
	return u.ListerWatcherWithContext.WatchWithContext(ctx, o)
}

func TestG5AReaderDoesNotShowWhatWasDeletedSinceItsKindMovedToAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim.New()
		var off atomic.Bool
		var version atomic.Value
		version.Store("v1")
		config := stream.Config{Source: sim.Plain(func(r object.Resource, ns string, f object.Form) cache.ListerWatcherWithContext {
			lw := s.Source(r, ns, f)
			if r.Version == "v1" {
				return unserved{lw, &off}
			}
			return lw
		})}
		streams := streamset.New(config)
		defer streams.Close()
		q := sim.Query("A", "as")
		q.Resolve = func(context.Context) (object.Resource, error) {
			r := sim.Resource("as")
			r.Version = version.Load().(string)
			return r, nil
		}
		s.Create("as", sim.Thing("x"))
		r, err := lister.Open(t.Context(), streams, q, collect.Options{})
		require.NoError(t, err)
		require.NoError(t, r.Wait(t.Context()))
		off.Store(true)
		s.Cut()
		sim.After(5 * time.Minute)
		version.Store("v2")
		s.Mu.Lock()
		s.ListDelay = func(string) time.Duration { return time.Second }
		s.Mu.Unlock()
		for s.Watching() == 0 { // v2
			sim.After(100 * time.Millisecond)
		}
		s.Remove("as", "x")
		synctest.Wait()
		assert.Nil(t, r.Get(object.Key{Namespace: "ns", Name: "x"}))
		assert.Empty(t, r.List("", nil))
	})
}

func TestG1TheFirstSnapshotHasAnOptionalQueryThatIsReplacedByAForbiddenOne(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		s.Failing(func(_, resource string) error {
			if resource == "secrets" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no role"))
			}
			return nil
		})
		q := sim.Query("A", "as")
		q.Optional = true
		var unserved, namespaced atomic.Bool
		other := sim.Scoped(sim.Query("B", "bs"), &unserved, &namespaced)
		other.Optional = true // the manager looks for its kind from time to time
		a := watching(t, streams, collect.Options{}, q, other)
		require.True(t, signalled(a))
		q2 := sim.Query("A", "secrets")
		q2.Optional = true
		require.NoError(t, a.Replace(t.Context(), q2))
		for !refused(a) {
			sim.After(50 * time.Millisecond)
			synctest.Wait()
		}
		var snap two
		assert.True(t, update(t, a, &snap).Complete)
	})
}

func refused(a *Accumulator) bool {
	return slices.ContainsFunc(a.collector.Running(), func(q query.Running) bool {
		return slices.ContainsFunc(q.Listeners(), func(l *stream.Listener) bool { return l.State().First >= stream.Refused })
	})
}

// denied is the source of a namespace that may not be listed.
type denied struct {
	cache.ListerWatcherWithContext
	now *atomic.Bool
}

func (d denied) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if d.now.Load() {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "as"}, "", errors.New("no role yet"))
	}
	return d.ListerWatcherWithContext.ListWithContext(ctx, o)
}

// TestG8AKindThatMovesKeepsItsObjectsWhereItsNewVersionIsRefusedForAWhile: the right comes a little
// later than the version.
func TestG8AKindThatMovesKeepsItsObjectsWhereItsNewVersionIsRefusedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim.New()
		var off, refusing atomic.Bool
		refusing.Store(true)
		var version atomic.Value
		version.Store("v1")
		streams := streamset.New(stream.Config{Source: sim.Plain(func(r object.Resource, ns string, f object.Form) cache.ListerWatcherWithContext {
			lw := s.Source(r, ns, f)
			switch {
			case r.Version == "v1":
				return unserved{lw, &off}
			case ns == "other":
				return denied{lw, &refusing}
			}
			return lw
		})})
		defer streams.Close()
		q := sim.Query("A", "as")
		q.Optional, q.Namespaces = true, []string{"ns", "other"}
		q.Resolve = func(context.Context) (object.Resource, error) {
			r := sim.Resource("as")
			r.Version = version.Load().(string)
			return r, nil
		}
		s.Create("as", sim.In("ns", "x"))
		s.Create("as", sim.In("other", "y"))
		a := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(a))
		var snap one
		update(t, a, &snap)
		require.Equal(t, []string{"x", "y"}, sim.Names(snap.A))
		version.Store("v2")
		off.Store(true)
		s.Cut()
		for !refused(a) {
			sim.After(50 * time.Millisecond)
			synctest.Wait()
		}
		update(t, a, &snap)
		assert.Equal(t, []string{"x", "y"}, sim.Names(snap.A), "while the right is awaited")
		refusing.Store(false)
		sim.After(time.Minute)
		s.Create("as", sim.In("other", "z"))
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"x", "y", "z"}, sim.Names(snap.A))
	})
}
