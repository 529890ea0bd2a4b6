package accumulator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// told returns the content of a result, as "+name", "~name" and "-name".
func told(r Result) (all []string) {
	for _, d := range r.Differences {
		switch {
		case d.Old == nil:
			all = append(all, "+"+d.New.GetName())
		case d.New == nil:
			all = append(all, "-"+d.Old.GetName())
		default:
			all = append(all, "~"+d.New.GetName())
		}
	}
	return all
}

func TestG1AQueryThatIsAddedAppearsWholeAndHoldsNobodyUp(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("a"))
				s.Create("bs", sim.Thing("b1"))
				s.Create("bs", sim.Thing("b2"))
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				require.True(t, signalled(a))
				var snap two
				update(t, a, &snap)
				s.Mu.Lock()
				s.ListDelay = func(string) time.Duration { return 20 * time.Second }
				s.ListAnswer = s.ListDelay
				s.Mu.Unlock()
				require.NoError(t, a.Add(t.Context(), sim.Query("B", "bs")))
				s.Create("as", sim.Thing("a2"))
				assert.True(t, signalled(a), "the others go on")
				r := update(t, a, &snap)
				assert.Equal(t, []string{"+a2"}, told(r))
				assert.Nil(t, snap.B, "not before it is whole")
				assert.NoError(t, a.Ready())
				sim.After(time.Minute)
				assert.True(t, signalled(a))
				r = update(t, a, &snap)
				assert.True(t, r.Changed)
				assert.Equal(t, []string{"+b1", "+b2"}, told(r))
				assert.Equal(t, []string{"b1", "b2"}, sim.Names(snap.B))
				assert.Equal(t, []string{"a", "a2"}, sim.Names(snap.A))
			})
		})
	}
}

func TestG7AQueryThatIsRemovedLeavesWithItsDeletions(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a"))
		s.Create("bs", sim.Thing("b1"))
		s.Create("bs", sim.Thing("b2"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"), sim.Query("B", "bs"))
		require.True(t, signalled(a))
		var snap two
		update(t, a, &snap)
		shown := snap.A[0]
		require.NoError(t, a.Remove(t.Context(), "B"))
		assert.True(t, signalled(a))
		r := update(t, a, &snap)
		assert.True(t, r.Changed)
		assert.Equal(t, []string{"-b1", "-b2"}, told(r))
		assert.Nil(t, snap.B)
		assert.Same(t, shown, snap.A[0])
		assert.False(t, update(t, a, &snap).Changed)
		s.Mu.Lock()
		assert.Len(t, s.Cuts, 1, "its watch has ended")
		s.Mu.Unlock()

		require.NoError(t, a.Add(t.Context(), sim.Query("B", "bs")), "and it may come back")
		require.True(t, signalled(a))
		r = update(t, a, &snap)
		assert.Equal(t, []string{"+b1", "+b2"}, told(r))
		assert.ErrorIs(t, a.Remove(t.Context(), "A", "C"), query.ErrUnknownQuery)
		assert.Len(t, a.Status(), 2, "none is removed then")
		assert.ErrorContains(t, a.Add(t.Context(), sim.Query("A", "as")), "already")
	})
}

func TestG11AddingToAnAccumulatorThatHasEndedLeavesNothingBehind(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		a.Close()
		assert.ErrorIs(t, a.Add(t.Context(), sim.Query("B", "bs")), stream.ErrClosed)
		assert.ErrorIs(t, a.Remove(t.Context(), "A"), stream.ErrClosed)
		assert.ErrorIs(t, a.Replace(t.Context(), sim.Query("A", "bs")), stream.ErrClosed)
		b := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		unknown := sim.Query("C", "cs")
		unknown.Resolve = func(context.Context) (object.Resource, error) { return object.Resource{}, errors.New("no such kind") }
		assert.ErrorContains(t, b.Add(t.Context(), sim.Query("B", "bs"), unknown), `query "C": no such kind`)
		assert.Equal(t, 1, streams.Len())
	})
}

func TestG1AQueryOverNamespacesIsOneWholeAndFollowsTheSet(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				for _, ns := range []string{"n1", "n2", "n3"} {
					s.Create("as", sim.In(ns, "in-"+ns))
				}
				q := sim.Query("A", "as")
				q.Namespaces = []string{"n1", "n2"}
				refused := true
				s.Failing(func(verb, resource string) error {
					s.Mu.Lock()
					defer s.Mu.Unlock()
					if refused && s.Watches["as"]+s.Lists["as"] > 1 {
						return errors.New("not yet")
					}
					return nil
				})
				a := watching(t, streams, collect.Options{}, q)
				assert.False(t, signalled(a), "one namespace is missing")
				assert.ErrorContains(t, a.Ready(), "not yet")
				s.Failing(nil)
				sim.After(time.Minute)
				require.True(t, signalled(a))
				var snap one
				r := update(t, a, &snap)
				assert.Equal(t, []string{"+in-n1", "+in-n2"}, told(r))

				o := sim.NewClient(s, streams)
				o.Put("as", sim.In("n2", "own"), 0)
				o.Put("as", sim.In("n3", "elsewhere"), 0)
				update(t, a, &snap)
				assert.Equal(t, []string{"in-n1", "in-n2", "own"}, sim.Names(snap.A))

				s.Mu.Lock()
				s.ListDelay = func(string) time.Duration { return second }
				s.ListAnswer = s.ListDelay
				s.Mu.Unlock()
				q.Namespaces = []string{"n2", "n3"}
				require.NoError(t, a.Replace(t.Context(), q))
				r = update(t, a, &snap)
				assert.Empty(t, told(r), "the old ones stay until all of the new ones are there")
				sim.After(5 * second)
				require.True(t, signalled(a))
				r = update(t, a, &snap)
				assert.Equal(t, []string{"-in-n1", "+elsewhere", "+in-n3"}, told(r))
				assert.Equal(t, []string{"in-n2", "own", "elsewhere", "in-n3"}, sim.Names(snap.A))

				q.Namespaces = []string{}
				require.NoError(t, a.Replace(t.Context(), q))
				update(t, a, &snap)
				assert.Empty(t, snap.A)
				assert.NotNil(t, snap.A)
				assert.Equal(t, stream.Synced, a.Status()[0].State)
				synctest.Wait()
				s.Mu.Lock()
				defer s.Mu.Unlock()
				assert.Empty(t, s.Cuts)
			})
		})
	}
}

func spaceQuery(name, resource, selector string) query.Query {
	q := sim.Query(name, resource)
	l, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	q.Spaces = &query.Spaces{Labels: l, Resolve: func(context.Context) (object.Resource, error) {
		r := sim.Resource("namespaces")
		r.Namespaced = false
		return r, nil
	}}
	return q
}

func TestG4ANamespaceSelectorFollowsTheLabelsOfNamespacesOwnWritesToo(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("namespaces", sim.In("", "n1", "team", "a"))
				s.Create("namespaces", sim.In("", "n2", "team", "b"))
				s.Create("as", sim.In("n1", "x1"))
				s.Create("as", sim.In("n2", "x2"))
				a := watching(t, streams, collect.Options{}, spaceQuery("A", "as", "team=a"))
				require.True(t, signalled(a))
				var snap one
				assert.Equal(t, []string{"+x1"}, told(update(t, a, &snap)))

				s.Late(time.Hour)
				o := sim.NewClient(s, streams)
				relabel := func(name, team string) {
					w := streams.Begin(clusterWide("namespaces"), object.Key{Name: name})
					got := s.Put("namespaces", object.Key{Name: name}, sim.In("", name, "team", team))
					require.NoError(t, w.Commit(t.Context(), intake.Outcome{Write: writeOf(got)}))
				}
				relabel("n2", "a")
				assert.True(t, signalled(a))
				assert.Equal(t, []string{"+x2"}, told(update(t, a, &snap)), "with all that is in it, at once")
				relabel("n1", "b")
				o.Put("as", sim.In("n1", "unseen"), 0)
				o.Put("as", sim.In("n2", "seen"), 0)
				assert.Equal(t, []string{"-x1", "+seen"}, told(update(t, a, &snap)))
				assert.Equal(t, []string{"seen", "x2"}, sim.Names(snap.A))
			})
		})
	}
}

func clusterWide(resource string) object.Resource {
	r := sim.Resource(resource)
	r.Namespaced = false
	return r
}

func writeOf(u metav1.Object) (w coherence.Write) {
	return coherence.Write{
		Key: object.Key{Namespace: u.GetNamespace(), Name: u.GetName()}, UID: u.GetUID(), Version: u.GetResourceVersion(),
		Object: u.(*unstructured.Unstructured),
	}
}

func TestG1AQueryOverNamespacesThatIsAddedAppearsWithAllOfThem(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("bs", sim.In("n1", "x"))
				s.Create("bs", sim.In("n2", "y"))
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				require.True(t, signalled(a))
				var snap two
				update(t, a, &snap)
				s.Failing(func(_, resource string) error {
					s.Mu.Lock()
					defer s.Mu.Unlock()
					if s.Watches["bs"]+s.Lists["bs"] > 1 {
						return errors.New("not yet")
					}
					return nil
				})
				q := sim.Query("B", "bs")
				q.Namespaces = []string{"n1", "n2"}
				require.NoError(t, a.Add(t.Context(), q))
				synctest.Wait()
				update(t, a, &snap)
				assert.Nil(t, snap.B, "of two namespaces one is missing")
				s.Failing(nil)
				sim.After(time.Minute)
				require.True(t, signalled(a))
				assert.Equal(t, []string{"+x", "+y"}, told(update(t, a, &snap)))
			})
		})
	}
}

func TestG1ASnapshotByNamespacesIsNotCompleteBeforeItIsKnownWhichCount(t *testing.T) {
	for range 50 { // the first list may come while the query is being made
		sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			s.Create("namespaces", sim.In("", "ns", "team", "a"))
			s.Create("as", sim.Thing("x"))
			s.Create("as", sim.In("other", "y"))
			// the stream has the objects
			before := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
			require.True(t, signalled(before))
			a := watching(t, streams, collect.Options{}, spaceQuery("A", "as", "team=a"))
			var snap one
			for !update(t, a, &snap).Complete {
				<-a.Changed()
			}
			require.Equal(t, []string{"x"}, sim.Names(snap.A))
		})
	}
}

func TestAQueryByNamespacesIsReplacedByOneForAllAndBack(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("namespaces", sim.In("", "ns", "team", "a"))
		s.Create("as", sim.Thing("x"))
		s.Create("as", sim.In("other", "y"))
		a := watching(t, streams, collect.Options{}, spaceQuery("A", "as", "team=a"))
		require.True(t, signalled(a))
		var snap one
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		require.NoError(t, a.Replace(t.Context(), sim.Query("A", "as")))
		require.True(t, signalled(a))
		assert.Equal(t, []string{"+y"}, told(update(t, a, &snap)))
		require.NoError(t, a.Replace(t.Context(), spaceQuery("A", "as", "team=a")))
		for len(snap.A) == 2 {
			require.True(t, signalled(a))
			update(t, a, &snap)
		}
		assert.Equal(t, []string{"x"}, sim.Names(snap.A))
		assert.Equal(t, 2, streams.Len())
	})
}
