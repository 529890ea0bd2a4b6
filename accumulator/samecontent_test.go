package accumulator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/lister"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// relisted lets all streams list, and waits for them.
func relisted(s *sim.Server) {
	s.Relist()
	sim.After(time.Minute)
	synctest.Wait()
}

// secondPage waits until the first page of a list is there, and the second is not.
func secondPage(s *sim.Server) {
	pages := func() int {
		s.Mu.Lock()
		defer s.Mu.Unlock()
		return s.Pages
	}
	for before := pages(); pages() == before; {
		sim.After(second)
	}
	synctest.Wait()
}

func TestG6ARelistTakesOverThatAVersionLooksOtherwiseNow(t *testing.T) {
	for way, config := range sim.Ways {
		t.Run(way, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				for _, name := range []string{"a", "b", "c", "d"} { // more than a page
					s.Create("as", sim.Thing(name))
				}
				acc := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				require.True(t, signalled(acc))
				var before, now, again one
				update(t, acc, &before)

				s.Reschema()
				sim.After(time.Minute)
				require.False(t, signalled(acc), "without a list nobody knows")
				relisted(s)
				assert.True(t, signalled(acc))
				r := update(t, acc, &now)
				assert.True(t, r.Changed)
				assert.Equal(t, []string{"~a", "~b", "~c", "~d"}, told(r))
				for i, o := range now.A {
					assert.Equal(t, before.A[i].GetResourceVersion(), o.GetResourceVersion())
					assert.NotSame(t, before.A[i], o)
					assert.Zero(t, sim.SchemaOf(before.A[i]), "what was delivered is not written to (G10)")
					assert.Equal(t, 1, sim.SchemaOf(o))
					assert.Same(t, before.A[i], r.Differences[i].Old)
					assert.Same(t, o, r.Differences[i].New)
				}

				restarts, held := acc.Status()[0].Restarts, listener(acc, 0).Get(object.Key{Namespace: "ns", Name: "a"})
				relisted(s)
				require.Greater(t, acc.Status()[0].Restarts, restarts)
				assert.False(t, update(t, acc, &again).Changed, "the same version with the same content is an echo")
				assert.Same(t, &now.A[0], &again.A[0])
				assert.Same(t, held, listener(acc, 0).Get(object.Key{Namespace: "ns", Name: "a"}), "it is not held twice")
			})
		})
	}
}

// An event is not compared with what is shown: that would cost something for each event.
func TestG6TheEventOfAnOwnWriteIsAnEchoWhateverItsContent(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		acc := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(acc))
		s.Late(10 * second)
		sim.NewClient(s, streams).Put("as", sim.Thing("a"), 0)
		s.Reschema()
		var snap one
		update(t, acc, &snap)
		wrote := snap.A[0]
		sim.After(time.Minute)
		require.Zero(t, acc.Status()[0].Pending)
		assert.False(t, update(t, acc, &snap).Changed)
		assert.Same(t, wrote, snap.A[0])
		relisted(s)
		assert.Equal(t, []string{"~a"}, told(update(t, acc, &snap)))
	})
}

func TestG4G6AListShowsThePendingOwnWriteAsTheServerShowsItNow(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		acc := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(acc))
		s.Late(time.Hour)
		sim.NewClient(s, streams).Put("as", sim.Thing("a"), 0)
		var wrote, now one
		update(t, acc, &wrote)
		require.Equal(t, 1, acc.Status()[0].Pending)
		relisted(s)
		assert.False(t, update(t, acc, &now).Changed, "a list of what was answered is an echo")
		require.Same(t, wrote.A[0], now.A[0])

		sim.NewClient(s, streams).Put("as", sim.Thing("a"), 0)
		update(t, acc, &wrote)
		s.Reschema()
		relisted(s)
		r := update(t, acc, &now)
		assert.Equal(t, []string{"~a"}, told(r))
		assert.Same(t, wrote.A[0], r.Differences[0].Old)
		assert.Equal(t, wrote.A[0].GetResourceVersion(), now.A[0].GetResourceVersion())
		assert.Equal(t, 1, sim.SchemaOf(now.A[0]))
		assert.Zero(t, acc.Status()[0].Pending)
	})
}

func TestG4AnOwnWriteThatIsAnsweredDuringAListKeepsItsPlace(t *testing.T) {
	for _, late := range []bool{false, true} { // the list has the write, or is from before it
		sim.Bubble(t, stream.Config{PageSize: 1}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
			s.Create("as", sim.Thing("a"))
			s.Create("as", sim.Thing("b"))
			acc := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
			require.True(t, signalled(acc))
			var snap one
			update(t, acc, &snap)
			s.Late(time.Hour)
			s.Mu.Lock()
			s.ListAnswer = func(string) time.Duration { return 10 * second }
			s.Mu.Unlock()
			s.Reschema()
			key := object.Key{Namespace: "ns", Name: "a"}
			w := streams.Begin(sim.Resource("as"), key)
			if late {
				s.Relist()
				secondPage(s)
			}
			a, ok := s.Do("as", key, "update", 0)
			require.True(t, ok)
			if !late {
				s.Relist()
				secondPage(s)
			}
			require.NoError(t, w.Commit(t.Context(), intake.Outcome{Write: a.Write(key)}))
			update(t, acc, &snap)
			wrote, other := snap.A[0], snap.A[1]
			require.Equal(t, 1, sim.SchemaOf(wrote))
			require.Zero(t, sim.SchemaOf(other), "the list is not there")
			sim.After(20 * second)
			assert.Equal(t, []string{"~b"}, told(update(t, acc, &snap)))
			assert.Same(t, wrote, snap.A[0])
			assert.Same(t, wrote, listener(acc, 0).Get(key))
			assert.Equal(t, 1, sim.SchemaOf(snap.A[1]))
			sim.After(2 * time.Hour)
			synctest.Wait()
			assert.Empty(t, told(update(t, acc, &snap)))
			assert.Same(t, wrote, snap.A[0], "its event is an echo")
			assert.Zero(t, acc.Status()[0].Pending)
		})
	}
}

func TestG6AnOwnWriteThatIsAnsweredDuringAListIsShownAsTheListHasIt(t *testing.T) {
	sim.Bubble(t, stream.Config{PageSize: 1}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		key := object.Key{Namespace: "ns", Name: "a"}
		s.Create("as", sim.Thing("b"))
		acc := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(acc))
		var snap one
		update(t, acc, &snap)
		s.Late(time.Hour)
		w := streams.Begin(sim.Resource("as"), key)
		a, _ := s.Do("as", key, "create", 0)
		s.Reschema()
		s.Mu.Lock()
		s.ListAnswer = func(string) time.Duration { return 10 * second }
		s.Mu.Unlock()
		s.Relist()
		secondPage(s)
		require.NoError(t, w.Commit(t.Context(), intake.Outcome{Write: a.Write(key)}))
		assert.Equal(t, []string{"+a"}, told(update(t, acc, &snap)))
		require.Zero(t, sim.SchemaOf(snap.A[0]))
		sim.After(20 * second)
		assert.Equal(t, []string{"~a", "~b"}, told(update(t, acc, &snap)))
		assert.Equal(t, 1, sim.SchemaOf(snap.A[0]))
	})
}

func TestG5G6AListInDoubtThatIsOfTheSameHistoryIsComparedAsAnyOther(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a"))
		acc := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(acc))
		var snap one
		update(t, acc, &snap)
		doubt := func() {
			asked, restarts := s.Requests("as"), acc.Status()[0].Restarts
			s.Mu.Lock()
			s.Rev-- // a server that is behind answers the probe
			s.Mu.Unlock()
			s.Cut()
			for s.Requests("as") == asked {
				sim.After(10 * time.Millisecond)
			}
			s.Mu.Lock()
			s.Rev++
			s.Mu.Unlock()
			sim.After(time.Minute)
			require.Greater(t, acc.Status()[0].Restarts, restarts)
		}
		shown := snap.A[0]
		doubt()
		assert.False(t, update(t, acc, &snap).Changed)
		assert.Same(t, shown, snap.A[0])
		assert.Same(t, shown, listener(acc, 0).Get(object.Key{Namespace: "ns", Name: "a"}))
		s.Reschema()
		doubt()
		assert.Equal(t, []string{"~a"}, told(update(t, acc, &snap)))
	})
}

func TestG6APredicateAndASignalJudgeWhatAVersionLooksLikeNow(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a"))
		var seen []int
		q := sim.Query("A", "as")
		q.Signal = func(old, current object.Object) bool {
			if old != nil && current != nil {
				seen = append(seen, sim.SchemaOf(old), sim.SchemaOf(current))
			}
			return sim.SchemaOf(current) != 2
		}
		acc := watching(t, streams, collect.Options{}, q)
		require.True(t, signalled(acc))
		var snap one
		pass := func(u *unstructured.Unstructured) bool { return sim.SchemaOf(u) > 0 }
		r, err := acc.Update(t.Context(), &snap, Pass(pass))
		require.NoError(t, err)
		require.Empty(t, told(r))
		s.Reschema()
		relisted(s)
		require.True(t, signalled(acc))
		assert.Equal(t, []string{"+a"}, told(update(t, acc, &snap)))
		relisted(s)
		s.Reschema()
		relisted(s)
		assert.False(t, signalled(acc), "it is the user's function that decides")
		assert.Equal(t, []string{"~a"}, told(update(t, acc, &snap)))
		assert.Equal(t, []int{0, 1, 1, 2}, seen)
	})
}

func TestG6WhatATransformLeavesIsCompared(t *testing.T) {
	for name, c := range map[string]struct {
		transform func(object.Object) error
		want      []string
		invalid   bool // what is reported has changed
	}{
		"it drops what has changed": {func(o object.Object) error {
			delete(o.(*unstructured.Unstructured).Object, "spec")
			return nil
		}, nil, false},
		"it moves it": {func(o object.Object) error {
			if sim.SchemaOf(o) == 1 {
				o.SetLabels(map[string]string{"schema": "1"})
			}
			delete(o.(*unstructured.Unstructured).Object, "spec")
			return nil
		}, []string{"~a"}, false},
		"it refuses it": {func(o object.Object) error {
			if sim.SchemaOf(o) == 1 {
				return errBad
			}
			return nil
		}, []string{"-a"}, false},
		"it has refused it": {func(o object.Object) error {
			if sim.SchemaOf(o) == 0 {
				return errBad
			}
			return nil
		}, []string{"+a"}, false},
		"it refuses both": {func(object.Object) error { return errBad }, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("a"))
				q := sim.Query("A", "as")
				q.Transform = &object.Transform{Do: c.transform}
				acc := watching(t, streams, collect.Options{}, q)
				require.True(t, signalled(acc))
				var snap one
				update(t, acc, &snap)
				s.Reschema()
				relisted(s)
				r := update(t, acc, &snap)
				assert.Equal(t, c.want, told(r))
				assert.Equal(t, c.want != nil || c.invalid, r.Changed)
				relisted(s)
				assert.False(t, update(t, acc, &snap).Changed)
			})
		})
	}
}

func TestG6TypedObjectsFollowAndTheirMetadataAloneStaysWhereItIsTheSame(t *testing.T) {
	typedOrShared(t, true, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a"))
		s.Create("as", sim.Thing("b", "bad", "yes"))
		acc := watching(t, streams, collect.Options{}, typedQuery())
		require.True(t, signalled(acc))
		m := sim.Query("A", "as")
		m.Form = object.Metadata
		short := watching(t, streams, collect.Options{}, m)
		require.True(t, signalled(short))
		require.Equal(t, 1, streams.Len(), "they share a stream")
		var snap things
		var meta, same struct {
			A []*metav1.PartialObjectMetadata
		}
		update(t, acc, &snap)
		before := snap.A[0]
		update(t, short, &meta)
		require.False(t, signalled(short))
		s.Reschema()
		relisted(s)
		assert.False(t, signalled(short))
		assert.Equal(t, []string{"~a"}, told(update(t, acc, &snap)))
		assert.NotSame(t, before, snap.A[0])
		assert.Equal(t, map[string]any{"schema": int64(1)}, snap.A[0].Spec)
		assert.False(t, update(t, short, &same).Changed)
		assert.Same(t, meta.A[0], same.A[0])
	})
}

func TestG6AReaderOfOneQueryFollowsARelist(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		union := sim.Query("A", "as")
		union.AnyOf = []object.Selection{{}, {Labels: inYes}}
		for _, q := range []query.Query{sim.Query("A", "as"), union} {
			r, err := lister.Open(t.Context(), streams, q, collect.Options{})
			require.NoError(t, err)
			require.NoError(t, r.Wait(context.Background()))
			before := r.Get(xKey)
			s.Reschema()
			relisted(s)
			assert.Equal(t, sim.SchemaOf(before)+1, sim.SchemaOf(r.Get(xKey)))
			assert.Equal(t, sim.SchemaOf(before)+1, sim.SchemaOf(r.List("", nil)[0]))
			r.Close()
		}
	})
}
