package accumulator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/stream"
)

func listed(objects []Object) (all []string) {
	for _, o := range objects {
		all = append(all, o.GetNamespace()+"/"+o.GetName())
	}
	return all
}

func TestG4AReaderOfARunningStreamAsksNobodyAndShowsOwnWrites(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", in("n2", "x", "app", "a"))
				s.create("as", in("n1", "y", "app", "b"))
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				require.True(t, signalled(a))
				opened := s.opened("as")
				r, err := Open(t.Context(), streams, simQuery("R", "as"))
				require.NoError(t, err)
				require.NoError(t, r.Wait(t.Context()))
				assert.Equal(t, opened, s.opened("as"), "the store is the bootstrap")
				assert.Equal(t, "x", r.Get(Key{Namespace: "n2", Name: "x"}).GetName())
				assert.Nil(t, r.Get(Key{Namespace: "n1", Name: "x"}))
				assert.Equal(t, []string{"n1/y", "n2/x"}, listed(r.List("", nil)))
				assert.Equal(t, []string{"n2/x"}, listed(r.List("n2", nil)))
				assert.Equal(t, []string{"n1/y"}, listed(r.List("", labels.SelectorFromSet(labels.Set{"app": "b"}))))

				s.late(time.Hour)
				o := own{s, streams}
				o.put("as", in("n1", "own", "app", "b"), 0)
				assert.Equal(t, "own", r.Get(Key{Namespace: "n1", Name: "own"}).GetName())
				assert.Equal(t, []string{"n1/own", "n1/y"}, listed(r.List("n1", nil)))
				r.Close()
				assert.ErrorIs(t, r.a.Err(), ErrClosed)
				assert.Equal(t, 1, streams.Len())
			})
		})
	}
}

func TestG4AReaderOfAUnionAndOfSelectedNamespacesGoesByTheNewest(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("namespaces", in("", "ns", "team", "a"))
		s.create("namespaces", in("", "other", "team", "b"))
		q := spaceQuery("R", "as", "team=a")
		q.AnyOf = []Selection{
			{Labels: labels.SelectorFromSet(labels.Set{"l": "yes"})}, {Labels: labels.SelectorFromSet(labels.Set{"r": "yes"})},
		}
		s.create("as", thing("x", "l", "yes"))
		s.create("as", in("other", "y", "l", "yes"))
		r, err := Open(t.Context(), streams, q)
		require.NoError(t, err)
		require.NoError(t, r.Wait(t.Context()))
		assert.Equal(t, []string{"ns/x"}, listed(r.List("", nil)))
		assert.Nil(t, r.Get(Key{Namespace: "other", Name: "y"}))
		s.late(time.Hour)
		own{s, streams}.put("as", s.relabelled("x", "r", "yes"), 0)
		assert.Equal(t, "yes", r.Get(Key{Namespace: "ns", Name: "x"}).GetLabels()["r"])
		assert.Equal(t, []string{"ns/x"}, listed(r.List("ns", nil)))
	})
}

func TestG11AReaderThatWaitsEndsWithItsContextAndSaysWhatIsMissing(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.failing(func(string, string) error { return errors.New("out of order") })
		r, err := Open(t.Context(), streams, simQuery("R", "as"))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = r.Wait(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "out of order")
		r.Close()
		assert.ErrorIs(t, r.Wait(t.Context()), ErrClosed)
		assert.Zero(t, streams.Len())
	})
}
