package accumulator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/lister"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func listed(objects []object.Object) (all []string) {
	for _, o := range objects {
		all = append(all, o.GetNamespace()+"/"+o.GetName())
	}
	return all
}

func TestG4AReaderOfARunningStreamAsksNobodyAndShowsOwnWrites(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.In("n2", "x", "app", "a"))
				s.Create("as", sim.In("n1", "y", "app", "b"))
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				require.True(t, signalled(a))
				opened := s.Opened("as")
				r, err := lister.Open(t.Context(), streams, sim.Query("R", "as"), collect.Options{})
				require.NoError(t, err)
				require.NoError(t, r.Wait(t.Context()))
				assert.Equal(t, opened, s.Opened("as"), "the store is the bootstrap")
				assert.Equal(t, "x", r.Get(object.Key{Namespace: "n2", Name: "x"}).GetName())
				assert.Nil(t, r.Get(object.Key{Namespace: "n1", Name: "x"}))
				assert.Equal(t, []string{"n1/y", "n2/x"}, listed(r.List("", nil)))
				assert.Equal(t, []string{"n2/x"}, listed(r.List("n2", nil)))
				assert.Equal(t, []string{"n1/y"}, listed(r.List("", labels.SelectorFromSet(labels.Set{"app": "b"}))))

				s.Late(time.Hour)
				o := sim.NewClient(s, streams)
				o.Put("as", sim.In("n1", "own", "app", "b"), 0)
				assert.Equal(t, "own", r.Get(object.Key{Namespace: "n1", Name: "own"}).GetName())
				assert.Equal(t, []string{"n1/own", "n1/y"}, listed(r.List("n1", nil)))
				r.Close()
				assert.ErrorIs(t, r.Err(), stream.ErrClosed)
				assert.Equal(t, 1, streams.Len())
			})
		})
	}
}

func TestG4AReaderOfAlternativesInSelectedNamespacesGoesByTheNewest(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("namespaces", sim.In("", "ns", "team", "a"))
		s.Create("namespaces", sim.In("", "other", "team", "b"))
		q := spaceQuery("R", "as", "team=a")
		q.AnyOf = []object.Selection{
			{Labels: labels.SelectorFromSet(labels.Set{"l": "yes"})}, {Labels: labels.SelectorFromSet(labels.Set{"r": "yes"})},
		}
		s.Create("as", sim.Thing("x", "l", "yes"))
		s.Create("as", sim.In("other", "y", "l", "yes"))
		r, err := lister.Open(t.Context(), streams, q, collect.Options{})
		require.NoError(t, err)
		require.NoError(t, r.Wait(t.Context()))
		assert.Equal(t, []string{"ns/x"}, listed(r.List("", nil)))
		assert.Nil(t, r.Get(object.Key{Namespace: "other", Name: "y"}))
		s.Late(time.Hour)
		sim.NewClient(s, streams).Put("as", s.Relabelled("x", "r", "yes"), 0)
		assert.Equal(t, "yes", r.Get(object.Key{Namespace: "ns", Name: "x"}).GetLabels()["r"])
		assert.Equal(t, []string{"ns/x"}, listed(r.List("ns", nil)))
	})
}

func TestG11AReaderThatWaitsEndsWithItsContextAndSaysWhatIsMissing(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Failing(func(string, string) error { return errors.New("out of order") })
		r, err := lister.Open(t.Context(), streams, sim.Query("R", "as"), collect.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = r.Wait(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "out of order")
		r.Close()
		assert.ErrorIs(t, r.Wait(t.Context()), stream.ErrClosed)
		assert.Zero(t, streams.Len())
	})
}
