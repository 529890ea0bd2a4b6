package accumulator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// TestG4AnOwnDeletionWhoseAnswerNobodyCanReadShowsWithAlternatives: the watch is late, and the
// server's answer is judged here.
func TestG4AnOwnDeletionWhoseAnswerNobodyCanReadShowsWithAlternatives(t *testing.T) {
	for name, c := range map[string]struct {
		kept, moved, made bool // made: others make an object of that name before the server is asked
		want              []string
	}{
		"gone":                          {},
		"kept, and selected":            {kept: true, want: []string{"a"}},
		"kept, and not selected before": {kept: true, moved: true},
		"made again":                    {made: true, want: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				o := sim.Thing("a", "in", "yes")
				if c.kept {
					o.SetFinalizers([]string{"test/kept"})
				}
				s.Create("as", o)
				q := sim.Query("A", "as")
				q.Resolve = readable("as")
				q.AnyOf = []object.Selection{
					{Labels: labels.SelectorFromSet(labels.Set{"in": "yes"})},
					{Fields: fields.OneTermEqualSelector("spec.node", "n1")},
				}
				a := watching(t, streams, collect.Options{}, q)
				synctest.Wait()
				var snap one
				update(t, a, &snap)
				require.Len(t, snap.A, 1)
				was := snap.A[0].GetUID()
				s.Late(time.Hour)
				key := object.Key{Namespace: "ns", Name: "a"}
				if c.moved {
					s.Do("as", key, "move", 0)
				}
				w := streams.Begin(sim.Resource("as"), key)
				_, ok := s.Do("as", key, "delete", sim.ByStatus)
				require.True(t, ok)
				s.Create("others", sim.Thing("x"))
				if c.made {
					s.Create("as", sim.Thing("a", "in", "yes"))
				}
				var asked atomic.Int32                 // once for each moment
				s.Failing(func(string, string) error { // each answer has another version
					s.Create("others", sim.Thing(fmt.Sprint("x", asked.Add(1))))
					return nil
				})
				require.NoError(t, w.Commit(context.Background(), intake.Outcome{Write: coherence.Write{Key: key}, Unknown: true}))
				for range 2 {
					update(t, a, &snap)
					require.Equal(t, c.want, sim.Names(snap.A))
					for _, o := range snap.A {
						assert.Equal(t, c.kept, o.GetDeletionTimestamp() != nil)
						assert.Equal(t, c.made, o.GetUID() != was)
					}
					<-time.After(2 * time.Hour)
					synctest.Wait()
				}
			})
		})
	}
}

// TestG4AWriteOfWhichTheServerCannotBeAskedIsReported: no stream shows it before its watch does.
func TestG4AWriteOfWhichTheServerCannotBeAskedIsReported(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		var snap one
		update(t, a, &snap)
		s.Late(time.Minute)
		key := object.Key{Namespace: "ns", Name: "a"}
		w := streams.Begin(sim.Resource("as"), key)
		_, ok := s.Do("as", key, "delete", sim.ByStatus)
		require.True(t, ok)
		s.Failing(func(string, string) error { return errors.New("refused") })
		err := w.Commit(context.Background(), intake.Outcome{Write: coherence.Write{Key: key}, Unknown: true})
		require.EqualError(t, err, `ask for as "ns/a": refused`)
		update(t, a, &snap)
		assert.Equal(t, 1, a.Status()[0].Unsettled)
		assert.Len(t, snap.A, 1)
		<-time.After(2 * time.Minute)
		synctest.Wait()
		update(t, a, &snap)
		assert.Zero(t, a.Status()[0].Unsettled)
		assert.Empty(t, snap.A)
	})
}

// TestG4WhereAllObjectsMayNotBeListedEachStreamAsksForItself: a client may be allowed no more than
// what its streams list.
func TestG4WhereAllObjectsMayNotBeListedEachStreamAsksForItself(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("a", "in", "yes"))
		q := sim.Query("A", "as")
		q.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
		a := watching(t, streams, collect.Options{}, q)
		synctest.Wait()
		var snap one
		update(t, a, &snap)
		require.Len(t, snap.A, 1)
		s.Late(time.Hour)
		key := object.Key{Namespace: "ns", Name: "a"}
		w := streams.Begin(sim.Resource("as"), key)
		_, ok := s.Do("as", key, "delete", sim.ByStatus)
		require.True(t, ok)
		asked := 0
		s.Failing(func(string, string) error {
			if asked++; asked == 1 {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "as"}, "", errors.New("refused"))
			}
			return nil
		})
		require.NoError(t, w.Commit(context.Background(), intake.Outcome{Write: coherence.Write{Key: key}, Unknown: true}))
		update(t, a, &snap)
		assert.Empty(t, snap.A)
		assert.Equal(t, 2, asked)
	})
}

// TestG2WhatOthersHaveMadeOfAnObjectSignalsThoughAnOwnWriteFindsItFirst: own writes are quiet, and
// this one is asked for. Others have made the object again by then.
func TestG2WhatOthersHaveMadeOfAnObjectSignalsThoughAnOwnWriteFindsItFirst(t *testing.T) {
	for name, overtaken := range map[string]bool{"before its event": false, "after its event": true} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("a"))
				a := watching(t, streams, collect.Options{QuietOwnWrites: true}, sim.Query("A", "as"))
				signals(a, second)
				var snap one
				update(t, a, &snap)
				if !overtaken {
					s.Late(time.Hour)
				}
				key := object.Key{Namespace: "ns", Name: "a"}
				w := streams.Begin(sim.Resource("as"), key)
				_, ok := s.Do("as", key, "delete", sim.ByStatus)
				require.True(t, ok)
				s.Create("as", sim.Thing("a"))
				if overtaken {
					sim.After(second)
				}
				require.NoError(t, w.Commit(context.Background(), intake.Outcome{Write: coherence.Write{Key: key}, Unknown: true}))
				require.True(t, signalled(a))
				update(t, a, &snap)
				assert.Len(t, snap.A, 1)
			})
		})
	}
}
