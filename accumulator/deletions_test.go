package accumulator

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

func TestG4EveryKindOfDeletionIsShownAtOnceAndNeverTakenBack(t *testing.T) {
	selective := sim.Query("A", "as")
	selective.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
	opaque := sim.Query("A", "as")
	opaque.Fields = fields.OneTermEqualSelector("spec.node", "n1")
	for name, q := range map[string]query.Query{"all": sim.Query("A", "as"), "labels": selective, "fields": opaque} {
		for way := range sim.Deletions {
			t.Run(fmt.Sprint(name, " answered in way ", way), func(t *testing.T) {
				sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
					o := sim.NewClient(s, streams)
					s.Put("as", object.Key{Namespace: "ns", Name: "x"}, sim.Fresh(object.Key{Namespace: "ns", Name: "x"}, 4))
					a := watching(t, streams, collect.Options{}, q)
					var snap one
					synctest.Wait()
					update(t, a, &snap)
					require.Len(t, snap.A, 1)
					s.Late(10 * second)
					o.Send(t, "as", "x", "update", 0)
					o.Send(t, "as", "x", "delete", way)
					for range 60 {
						r := update(t, a, &snap)
						require.Empty(t, snap.A)
						require.LessOrEqual(t, len(r.Differences), 1)
						sim.After(second)
						synctest.Wait()
					}
					assert.Zero(t, a.Status()[0].Pending, "G6")
				})
			})
		}
	}
}

// The DELETED event of a whole stream says when the object was deleted. That of a selective
// stream may be a move.
func TestG4ADeletionWhoseEventOvertakesItsAnswerIsNotAskedAbout(t *testing.T) {
	all, namespace, selective := sim.Query("A", "as"), sim.Query("A", "as"), sim.Query("A", "as")
	namespace.Namespace = "ns"
	selective.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
	named := sim.Query("A", "as")
	named.Fields = fields.OneTermEqualSelector("metadata.name", "x")
	for name, test := range map[string]struct {
		query query.Query
		lists int
	}{"all": {all, 0}, "a namespace": {namespace, 0}, "labels": {selective, 1}, "a name": {named, 1}} {
		for verb, way := range map[string]int{"delete": sim.ByStatus, "delete ": sim.ByOldObject, "release": 0} {
			t.Run(fmt.Sprint(name, " ", verb), func(t *testing.T) {
				sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
					key := object.Key{Namespace: "ns", Name: "x"}
					s.Put("as", key, sim.Fresh(key, 4))
					if verb == "release" { // the last finalizer of a deleted object
						s.Do("as", key, "finalize", 0)
						s.Do("as", key, "delete", sim.ByStatus)
					}
					a := watching(t, streams, collect.Options{}, test.query)
					var snap one
					synctest.Wait()
					update(t, a, &snap)
					require.Len(t, snap.A, 1)
					before := s.Requested("as")
					w := streams.Begin(sim.Resource("as"), key)
					answer, ok := s.Do("as", key, strings.TrimSpace(verb), way)
					require.True(t, ok)
					synctest.Wait() // for the event
					if name == "all" {
						s.Create("as", sim.Thing("x"))
						synctest.Wait()
					}
					require.NoError(t, w.Commit(t.Context(), intake.Outcome{Write: answer.Write(key)}))
					update(t, a, &snap)
					assert.Len(t, snap.A, map[string]int{"all": 1}[name], "who has the name by now is there")
					assert.Equal(t, before+test.lists, s.Requested("as"))
					assert.Zero(t, a.Status()[0].Pending)
				})
			})
		}
	}
}

func TestG4ADeletedObjectWithFinalizersStaysUntilTheLastIsRemoved(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		o := sim.NewClient(s, streams)
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.Late(time.Minute)
		o.Send(t, "as", "x", "create", 5)
		o.Send(t, "as", "x", "delete", sim.ByStatus)
		update(t, a, &snap)
		require.Len(t, snap.A, 1)
		assert.NotNil(t, snap.A[0].GetDeletionTimestamp())
		o.Send(t, "as", "x", "release", 0)
		update(t, a, &snap)
		assert.Empty(t, snap.A, "answered by the object at its old version: gone")
		o.Send(t, "as", "x", "create", 4)
		update(t, a, &snap)
		require.Len(t, snap.A, 1)
		shown := snap.A[0]
		sim.After(time.Hour)
		synctest.Wait()
		assert.False(t, update(t, a, &snap).Changed)
		assert.Same(t, shown, snap.A[0])
		assert.Zero(t, a.Status()[0].Pending)
	})
}

func TestG4AnUnsettledDeletionIsInTheStatus(t *testing.T) {
	q := sim.Query("A", "as")
	q.Fields = fields.OneTermEqualSelector("spec.node", "")
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{}, q)
		synctest.Wait()
		s.Late(time.Minute)
		s.Failing(func(verb, _ string) error {
			if verb == "list" {
				return apierrors.NewInternalError(errors.New("gone"))
			}
			return nil
		})
		require.True(t, sim.NewClient(s, streams).Delete("as", "x", 0, false))
		assert.Equal(t, 1, a.Status()[0].Unsettled)
		s.Failing(nil)
		sim.After(time.Hour)
		synctest.Wait()
		assert.Zero(t, a.Status()[0].Unsettled)
	})
}

func TestG6CreateThenDeleteBeforeTheWatchSawEitherWedgesNothing(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		var stalled atomic.Bool
		stalled.Store(true)
		s.Delay = func(string) time.Duration {
			if stalled.Load() {
				return time.Hour
			}
			return 0
		}
		o := sim.NewClient(s, streams)
		for i := range 2000 {
			name := "same"
			if i%2 == 0 {
				name = fmt.Sprint(i)
			}
			o.Put("as", sim.Thing(name), 0)
			require.True(t, o.Delete("as", name, 0, i%3 == 0))
		}
		assert.False(t, update(t, a, &snap).Changed)
		stalled.Store(false)
		sim.After(2 * time.Hour)
		synctest.Wait()
		assert.False(t, update(t, a, &snap).Changed)
		assert.Empty(t, snap.A)
		assert.Zero(t, a.Status()[0].Pending)
	})
}

// TestG4AnOwnWriteCountsThoughADeletionBeforeItIsAnsweredLater: x is deleted by this client, made
// anew by another, deleted by that, and made by this client where the union does not select it.
// The deletion's answer has no version and comes last, while the union waits for a late watch. The
// model has found this script.
func TestG4AnOwnWriteCountsThoughADeletionBeforeItIsAnsweredLater(t *testing.T) {
	s := sim.Script{First: []int{0, 42}, Steps: []sim.Step{
		{Op: 0, A: 0, B: 1, C: 0}, {Op: 0, A: 0, B: 0, C: 1}, {Op: 75, A: 1, B: 4, C: 0}, {Op: 15, A: 1, B: 4, C: 1},
		{Op: 0, A: 0, B: 0, C: 2}, {Op: 0, A: 0, B: 0, C: 0}, {Op: 15, A: 2, B: 3, C: 0}, {Op: 0, A: 0, B: 0, C: 0},
		{Op: 0, A: 0, B: 0, C: 15}, {Op: 0, A: 0, B: 1, C: 0}, {Op: 65, A: 1, B: 0, C: 0}, {Op: 36, A: 0, B: 0, C: 47},
		{Op: 15, A: 2, B: 0, C: 0}, {Op: 0, A: 0, B: 0, C: 0},
	}}
	synctest.Test(t, func(t *testing.T) { require.NoError(t, runSaved(s)) })
}

// TestG2AnObjectIsNotTakenForOneOfItsNameThatAnOwnWriteHasDeletedBefore: the deletion has no
// version, and while one stream of the union is asked, the other one goes on to the newer object.
// Then that moves between the two. The model has found this script.
func TestG2AnObjectIsNotTakenForOneOfItsNameThatAnOwnWriteHasDeletedBefore(t *testing.T) {
	s := sim.Script{Stream: true, Page: 2, Share: true, First: []int{2, 56}, LastStates: true}
	for _, step := range [][4]int{
		{63, 14, 2, 45}, {75, 50, 29, 1}, {5, 5, 23, 59}, {0, 0, 37, 59}, {15, 20, 2, 0},
		{11, 11, 33, 11}, {14, 0, 1, 4}, {75, 51, 49, 0}, {38, 2, 31, 20}, {67, 2, 33, 43},
		{3, 58, 0, 15}, {4, 13, 56, 2}, {7, 3, 16, 0}, {2, 5, 14, 9}, {94, 31, 52, 7},
		{0, 4, 11, 26}, {43, 16, 0, 59},
	} {
		s.Steps = append(s.Steps, sim.Step{Op: step[0], A: step[1], B: step[2], C: step[3]})
	}
	for range 40 { // one stream or the other is asked first
		synctest.Test(t, func(t *testing.T) { require.NoError(t, runSaved(s)) })
	}
}

// TestG2AnObjectThatWasMadeAfterAnOwnDeletionIsNotTakenForTheDeletedOne: no watch has shown that
// one, and an answer has the version at which another stream has the new one. The model has found
// this script.
func TestG2AnObjectThatWasMadeAfterAnOwnDeletionIsNotTakenForTheDeletedOne(t *testing.T) {
	s := sim.Script{Stream: true, Page: 1, Grace: time.Minute, First: []int{32, 57}, LastStates: true}
	for _, step := range [][4]int{
		{2, 5, 0, 1}, {2, 0, 27, 48}, {76, 1, 11, 5}, {1, 2, 7, 14}, {32, 30, 56, 37}, {33, 2, 47, 46},
		{89, 0, 29, 59}, {43, 0, 12, 1}, {66, 7, 0, 45}, {20, 2, 44, 0}, {56, 37, 36, 49}, {73, 43, 20, 14},
	} {
		s.Steps = append(s.Steps, sim.Step{Op: step[0], A: step[1], B: step[2], C: step[3]})
	}
	synctest.Test(t, func(t *testing.T) { require.NoError(t, runSaved(s)) })
}

// The whole stream of a union hides an object for an own deletion without a version, and is late.
// The other one has shown the object that has the name since, which now leaves it. The model has
// found this script.
func TestG5WhoHasTheNameOfADeletedObjectStaysInAUnionThoughOneWatchIsLate(t *testing.T) {
	s := sim.Script{First: []int{5, 0}, Steps: []sim.Step{
		{A: 1, C: 1}, {}, {B: 3}, {Op: 102, A: 48, C: 1}, {Op: 80}, {Op: 15, A: 1}, {}, {Op: 36}, {C: 9}, {Op: 36, B: 2, C: 3},
	}}
	synctest.Test(t, func(t *testing.T) { require.NoError(t, runSaved(s)) })
}

// An object is made anew and deleted again, both by own writes that no watch has shown. The state
// before, which was shown, is older than that. The model has found this script.
func TestG4AnOwnDeletionOfWhatNoWatchHasShownHidesWhoHadTheNameBefore(t *testing.T) {
	s := sim.Script{First: []int{0, 1}, Steps: []sim.Step{
		{}, {}, {Op: 75, B: 1}, {Op: 15, A: 1, B: 1}, {B: 1}, {Op: 15, A: 1, B: 3}, {Op: 15, A: 1, B: 3},
		{}, {}, {}, {}, {}, {Op: 36}, {}, {}, {}, {}, {}, {}, {Op: 36},
	}}
	synctest.Test(t, func(t *testing.T) { require.NoError(t, runSaved(s)) })
}
