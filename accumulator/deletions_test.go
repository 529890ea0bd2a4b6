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

	"github.com/kates-go/kates/accumulator/stream"
)

// send makes the server perform a verb, and reports the answer to the streams at once.
func (o own) send(t *testing.T, resource, name, verb string, param int) {
	t.Helper()
	key := Key{Namespace: "ns", Name: name}
	w := o.streams.Begin(simResource(resource), key)
	a, ok := o.do(resource, key, verb, param)
	require.True(t, ok)
	require.NoError(t, w.Commit(t.Context(), stream.Outcome{Write: a.write(key)}))
}

// late delays every event and bookmark from now on.
func (s *sim) late(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = func(string) time.Duration { return d }
}

func TestG4EveryKindOfDeletionIsShownAtOnceAndNeverTakenBack(t *testing.T) {
	selective := simQuery("A", "as")
	selective.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
	opaque := simQuery("A", "as")
	opaque.Fields = fields.OneTermEqualSelector("spec.node", "n1")
	for name, q := range map[string]Query{"all": simQuery("A", "as"), "labels": selective, "fields": opaque} {
		for way := range deletions {
			t.Run(fmt.Sprint(name, " answered in way ", way), func(t *testing.T) {
				bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
					o := own{s, streams}
					s.put("as", Key{Namespace: "ns", Name: "x"}, fresh(Key{Namespace: "ns", Name: "x"}, 4))
					a := watching(t, streams, Options{}, q)
					var snap one
					synctest.Wait()
					update(t, a, &snap)
					require.Len(t, snap.A, 1)
					s.late(10 * second)
					o.send(t, "as", "x", "update", 0)
					o.send(t, "as", "x", "delete", way)
					for range 60 {
						r := update(t, a, &snap)
						require.Empty(t, snap.A)
						require.LessOrEqual(t, len(r.Differences), 1)
						after(second)
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
	all, namespace, selective := simQuery("A", "as"), simQuery("A", "as"), simQuery("A", "as")
	namespace.Namespace = "ns"
	selective.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
	named := simQuery("A", "as")
	named.Fields = fields.OneTermEqualSelector("metadata.name", "x")
	for name, test := range map[string]struct {
		query Query
		lists int
	}{"all": {all, 0}, "a namespace": {namespace, 0}, "labels": {selective, 1}, "a name": {named, 1}} {
		for verb, way := range map[string]int{"delete": byStatus, "delete ": byOldObject, "release": 0} {
			t.Run(fmt.Sprint(name, " ", verb), func(t *testing.T) {
				bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
					key := Key{Namespace: "ns", Name: "x"}
					s.put("as", key, fresh(key, 4))
					if verb == "release" { // the last finalizer of a deleted object
						s.do("as", key, "finalize", 0)
						s.do("as", key, "delete", byStatus)
					}
					a := watching(t, streams, Options{}, test.query)
					var snap one
					synctest.Wait()
					update(t, a, &snap)
					require.Len(t, snap.A, 1)
					before := s.requested("as")
					w := streams.Begin(simResource("as"), key)
					answer, ok := s.do("as", key, strings.TrimSpace(verb), way)
					require.True(t, ok)
					synctest.Wait() // for the event
					if name == "all" {
						s.create("as", thing("x"))
						synctest.Wait()
					}
					require.NoError(t, w.Commit(t.Context(), stream.Outcome{Write: answer.write(key)}))
					update(t, a, &snap)
					assert.Len(t, snap.A, map[string]int{"all": 1}[name], "who has the name by now is there")
					assert.Equal(t, before+test.lists, s.requested("as"))
					assert.Zero(t, a.Status()[0].Pending)
				})
			})
		}
	}
}

// requested counts all requests for a resource.
func (s *sim) requested(resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists[resource] + s.probes[resource] + s.watches[resource]
}

func TestG4ADeletedObjectWithFinalizersStaysUntilTheLastIsRemoved(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		o := own{s, streams}
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		s.late(time.Minute)
		o.send(t, "as", "x", "create", 5)
		o.send(t, "as", "x", "delete", byStatus)
		update(t, a, &snap)
		require.Len(t, snap.A, 1)
		assert.NotNil(t, snap.A[0].GetDeletionTimestamp())
		o.send(t, "as", "x", "release", 0)
		update(t, a, &snap)
		assert.Empty(t, snap.A, "answered by the object at its old version: gone")
		o.send(t, "as", "x", "create", 4)
		update(t, a, &snap)
		require.Len(t, snap.A, 1)
		shown := snap.A[0]
		after(time.Hour)
		synctest.Wait()
		assert.False(t, update(t, a, &snap).Changed)
		assert.Same(t, shown, snap.A[0])
		assert.Zero(t, a.Status()[0].Pending)
	})
}

func TestG4AnUnsettledDeletionIsInTheStatus(t *testing.T) {
	q := simQuery("A", "as")
	q.Fields = fields.OneTermEqualSelector("spec.node", "")
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		a := watching(t, streams, Options{}, q)
		synctest.Wait()
		s.late(time.Minute)
		s.failing(func(verb, _ string) error {
			if verb == "list" {
				return apierrors.NewInternalError(errors.New("gone"))
			}
			return nil
		})
		require.True(t, own{s, streams}.delete("as", "x", 0, false))
		assert.Equal(t, 1, a.Status()[0].Unsettled)
		s.failing(nil)
		after(time.Hour)
		synctest.Wait()
		assert.Zero(t, a.Status()[0].Unsettled)
	})
}

func TestG6CreateThenDeleteBeforeTheWatchSawEitherWedgesNothing(t *testing.T) {
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		var stalled atomic.Bool
		stalled.Store(true)
		s.delay = func(string) time.Duration {
			if stalled.Load() {
				return time.Hour
			}
			return 0
		}
		o := own{s, streams}
		for i := range 2000 {
			name := "same"
			if i%2 == 0 {
				name = fmt.Sprint(i)
			}
			o.put("as", thing(name), 0)
			require.True(t, o.delete("as", name, 0, i%3 == 0))
		}
		assert.False(t, update(t, a, &snap).Changed)
		stalled.Store(false)
		after(2 * time.Hour)
		synctest.Wait()
		assert.False(t, update(t, a, &snap).Changed)
		assert.Empty(t, snap.A)
		assert.Zero(t, a.Status()[0].Pending)
	})
}
