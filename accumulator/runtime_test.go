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

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
)

func in(namespace, name string, kv ...string) *unstructured.Unstructured {
	u := thing(name, kv...)
	u.SetNamespace(namespace)
	return u
}

// relabelled returns an object of "as" with other labels. relabel is a foreign write of it.
func (s *sim) relabelled(name string, kv ...string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.now["as"][Key{Namespace: "ns", Name: name}].DeepCopy()
	u.SetLabels(thing(name, kv...).GetLabels())
	return u
}

func (s *sim) relabel(name string, kv ...string) { s.create("as", s.relabelled(name, kv...)) }

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
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("a"))
				s.create("bs", thing("b1"))
				s.create("bs", thing("b2"))
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				require.True(t, signalled(a))
				var snap two
				update(t, a, &snap)
				s.mu.Lock()
				s.listDelay = func(string) time.Duration { return 20 * time.Second }
				s.listAnswer = s.listDelay
				s.mu.Unlock()
				require.NoError(t, a.Add(t.Context(), simQuery("B", "bs")))
				s.create("as", thing("a2"))
				assert.True(t, signalled(a), "the others go on")
				r := update(t, a, &snap)
				assert.Equal(t, []string{"+a2"}, told(r))
				assert.Nil(t, snap.B, "not before it is whole")
				assert.NoError(t, a.Ready())
				after(time.Minute)
				assert.True(t, signalled(a))
				r = update(t, a, &snap)
				assert.True(t, r.Changed)
				assert.Equal(t, []string{"+b1", "+b2"}, told(r))
				assert.Equal(t, []string{"b1", "b2"}, names(snap.B))
				assert.Equal(t, []string{"a", "a2"}, names(snap.A))
			})
		})
	}
}

func TestG7AQueryThatIsRemovedLeavesWithItsDeletions(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("a"))
		s.create("bs", thing("b1"))
		s.create("bs", thing("b2"))
		a := watching(t, streams, Options{}, simQuery("A", "as"), simQuery("B", "bs"))
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
		s.mu.Lock()
		assert.Len(t, s.cuts, 1, "its watch has ended")
		s.mu.Unlock()

		require.NoError(t, a.Add(t.Context(), simQuery("B", "bs")), "and it may come back")
		require.True(t, signalled(a))
		r = update(t, a, &snap)
		assert.Equal(t, []string{"+b1", "+b2"}, told(r))
		assert.ErrorIs(t, a.Remove(t.Context(), "A", "C"), ErrUnknownQuery)
		assert.Len(t, a.Status(), 2, "none is removed then")
		assert.ErrorContains(t, a.Add(t.Context(), simQuery("A", "as")), "already")
	})
}

func TestG11AddingToAnAccumulatorThatHasEndedLeavesNothingBehind(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		a.Close()
		assert.ErrorIs(t, a.Add(t.Context(), simQuery("B", "bs")), ErrClosed)
		assert.ErrorIs(t, a.Remove(t.Context(), "A"), ErrClosed)
		assert.ErrorIs(t, a.Replace(t.Context(), simQuery("A", "bs")), ErrClosed)
		b := watching(t, streams, Options{}, simQuery("A", "as"))
		unknown := simQuery("C", "cs")
		unknown.Resolve = func(context.Context) (Resource, error) { return Resource{}, errors.New("no such kind") }
		assert.ErrorContains(t, b.Add(t.Context(), simQuery("B", "bs"), unknown), `query "C": no such kind`)
		assert.Equal(t, 1, streams.Len())
	})
}

func TestG1AQueryOverNamespacesIsOneWholeAndFollowsTheSet(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				for _, ns := range []string{"n1", "n2", "n3"} {
					s.create("as", in(ns, "in-"+ns))
				}
				q := simQuery("A", "as")
				q.Namespaces = []string{"n1", "n2"}
				refused := true
				s.failing(func(verb, resource string) error {
					s.mu.Lock()
					defer s.mu.Unlock()
					if refused && s.watches["as"]+s.lists["as"] > 1 {
						return errors.New("not yet")
					}
					return nil
				})
				a := watching(t, streams, Options{}, q)
				assert.False(t, signalled(a), "one namespace is missing")
				assert.ErrorContains(t, a.Ready(), "not yet")
				s.failing(nil)
				after(time.Minute)
				require.True(t, signalled(a))
				var snap one
				r := update(t, a, &snap)
				assert.Equal(t, []string{"+in-n1", "+in-n2"}, told(r))

				o := own{s, streams}
				o.put("as", in("n2", "own"), 0)
				o.put("as", in("n3", "elsewhere"), 0)
				update(t, a, &snap)
				assert.Equal(t, []string{"in-n1", "in-n2", "own"}, names(snap.A))

				s.mu.Lock()
				s.listDelay = func(string) time.Duration { return second }
				s.listAnswer = s.listDelay
				s.mu.Unlock()
				q.Namespaces = []string{"n2", "n3"}
				require.NoError(t, a.Replace(t.Context(), q))
				r = update(t, a, &snap)
				assert.Equal(t, []string{"-in-n1"}, told(r), "it leaves at once")
				after(2 * second)
				require.True(t, signalled(a))
				r = update(t, a, &snap)
				assert.Equal(t, []string{"+elsewhere", "+in-n3"}, told(r))
				assert.Equal(t, []string{"in-n2", "own", "elsewhere", "in-n3"}, names(snap.A))

				q.Namespaces = []string{}
				require.NoError(t, a.Replace(t.Context(), q))
				update(t, a, &snap)
				assert.Empty(t, snap.A)
				assert.NotNil(t, snap.A)
				assert.Equal(t, Synced, a.Status()[0].State)
				synctest.Wait()
				s.mu.Lock()
				defer s.mu.Unlock()
				assert.Empty(t, s.cuts)
			})
		})
	}
}

func spaceQuery(name, resource, selector string) Query {
	q := simQuery(name, resource)
	l, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	q.Spaces = &Spaces{Labels: l, Resolve: func(context.Context) (Resource, error) {
		r := simResource("namespaces")
		r.Namespaced = false
		return r, nil
	}}
	return q
}

func TestG4ANamespaceSelectorFollowsTheLabelsOfNamespacesOwnWritesToo(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("namespaces", in("", "n1", "team", "a"))
				s.create("namespaces", in("", "n2", "team", "b"))
				s.create("as", in("n1", "x1"))
				s.create("as", in("n2", "x2"))
				a := watching(t, streams, Options{}, spaceQuery("A", "as", "team=a"))
				require.True(t, signalled(a))
				var snap one
				assert.Equal(t, []string{"+x1"}, told(update(t, a, &snap)))

				s.late(time.Hour)
				o := own{s, streams}
				relabel := func(name, team string) {
					w := streams.Begin(clusterWide("namespaces"), Key{Name: name})
					got := s.put("namespaces", Key{Name: name}, in("", name, "team", team))
					require.NoError(t, w.Commit(t.Context(), stream.Outcome{Write: writeOf(got)}))
				}
				relabel("n2", "a")
				assert.True(t, signalled(a))
				assert.Equal(t, []string{"+x2"}, told(update(t, a, &snap)), "with all that is in it, at once")
				relabel("n1", "b")
				o.put("as", in("n1", "unseen"), 0)
				o.put("as", in("n2", "seen"), 0)
				assert.Equal(t, []string{"-x1", "+seen"}, told(update(t, a, &snap)))
				assert.Equal(t, []string{"seen", "x2"}, names(snap.A))
			})
		})
	}
}

func clusterWide(resource string) Resource {
	r := simResource(resource)
	r.Namespaced = false
	return r
}

func writeOf(u metav1.Object) (w coherence.Write) {
	return coherence.Write{
		Key: Key{Namespace: u.GetNamespace(), Name: u.GetName()}, UID: u.GetUID(), Version: u.GetResourceVersion(),
		Object: u.(*unstructured.Unstructured),
	}
}

func TestG1AQueryOverNamespacesThatIsAddedAppearsWithAllOfThem(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("bs", in("n1", "x"))
				s.create("bs", in("n2", "y"))
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				require.True(t, signalled(a))
				var snap two
				update(t, a, &snap)
				s.failing(func(_, resource string) error {
					s.mu.Lock()
					defer s.mu.Unlock()
					if s.watches["bs"]+s.lists["bs"] > 1 {
						return errors.New("not yet")
					}
					return nil
				})
				q := simQuery("B", "bs")
				q.Namespaces = []string{"n1", "n2"}
				require.NoError(t, a.Add(t.Context(), q))
				synctest.Wait()
				update(t, a, &snap)
				assert.Nil(t, snap.B, "of two namespaces one is missing")
				s.failing(nil)
				after(time.Minute)
				require.True(t, signalled(a))
				assert.Equal(t, []string{"+x", "+y"}, told(update(t, a, &snap)))
			})
		})
	}
}

func TestG1ASnapshotByNamespacesIsNotCompleteBeforeItIsKnownWhichCount(t *testing.T) {
	for range 50 { // the first list may come while the query is being made
		bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
			s.create("namespaces", in("", "ns", "team", "a"))
			s.create("as", thing("x"))
			s.create("as", in("other", "y"))
			// the stream has the objects
			before := watching(t, streams, Options{}, simQuery("A", "as"))
			require.True(t, signalled(before))
			a := watching(t, streams, Options{}, spaceQuery("A", "as", "team=a"))
			var snap one
			for !update(t, a, &snap).Complete {
				<-a.Changed()
			}
			require.Equal(t, []string{"x"}, names(snap.A))
		})
	}
}

func TestAQueryByNamespacesIsReplacedByOneForAllAndBack(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("namespaces", in("", "ns", "team", "a"))
		s.create("as", thing("x"))
		s.create("as", in("other", "y"))
		a := watching(t, streams, Options{}, spaceQuery("A", "as", "team=a"))
		require.True(t, signalled(a))
		var snap one
		assert.Equal(t, []string{"+x"}, told(update(t, a, &snap)))
		require.NoError(t, a.Replace(t.Context(), simQuery("A", "as")))
		require.True(t, signalled(a))
		assert.Equal(t, []string{"+y"}, told(update(t, a, &snap)))
		require.NoError(t, a.Replace(t.Context(), spaceQuery("A", "as", "team=a")))
		for len(snap.A) == 2 {
			require.True(t, signalled(a))
			update(t, a, &snap)
		}
		assert.Equal(t, []string{"x"}, names(snap.A))
		assert.Equal(t, 2, streams.Len())
	})
}
