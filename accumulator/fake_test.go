package accumulator

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kates-go/kates/accumulator/collect"
	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/coherence"
	"github.com/kates-go/kates/internal/suite/sim"
)

// fakeWrite is an own write on a fake: the answer has no version.
func fakeWrite(streams *stream.Set, u *unstructured.Unstructured, send func(), event time.Duration) {
	key := stream.Key{Namespace: u.GetNamespace(), Name: u.GetName()}
	w := streams.Begin(sim.Resource("as"), key)
	send()
	sim.After(event) // the event may overtake the answer
	_ = w.Commit(context.Background(), stream.Outcome{Write: coherence.Write{Key: key, Object: u}})
}

// onFake runs a test on the simulated server, with answers like a fake's: contents decide.
func onFake(t *testing.T, f func(t *testing.T, s *sim.Server, streams *stream.Set, a *Accumulator, snap *one)) {
	t.Helper()
	sim.Bubble(t, stream.Config{ByContent: true, Hold: 10 * second}, func(t *testing.T, s *sim.Server, streams *stream.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		f(t, s, streams, a, &snap)
	})
}

func TestG4OnAFakeAnOwnWriteHoldsUntilItsEventEvenIfThatCameFirst(t *testing.T) {
	for _, overtaken := range []time.Duration{0, second} {
		onFake(t, func(t *testing.T, s *sim.Server, streams *stream.Set, a *Accumulator, snap *one) {
			var stored *unstructured.Unstructured
			key := stream.Key{Namespace: "ns", Name: "x"}
			s.Mu.Lock()
			next := s.Rev + 1
			s.Mu.Unlock()
			u := sim.Thing("x")
			u.SetUID("uid-1")
			u.SetResourceVersion(strconv.Itoa(next))
			fakeWrite(streams, u, func() { stored = s.Put("as", key, u) }, overtaken)
			require.Equal(t, stored.Object, u.Object)
			r := update(t, a, snap)
			assert.Len(t, snap.A, 1)
			assert.True(t, r.Changed)
			synctest.Wait()
			assert.False(t, update(t, a, snap).Changed, "the echo is nothing new")
			assert.Zero(t, a.Status()[0].Pending)
		})
	}
}

func TestG6OnAFakeAWriteWhoseEventNeverComesEndsByANewList(t *testing.T) {
	onFake(t, func(t *testing.T, s *sim.Server, streams *stream.Set, a *Accumulator, snap *one) {
		s.Create("as", sim.Thing("x"))
		synctest.Wait()
		update(t, a, snap)
		require.Len(t, snap.A, 1)
		// The fake loses the event of a delete between a list and a watch.
		s.Mu.Lock()
		delete(s.Now["as"], stream.Key{Namespace: "ns", Name: "x"})
		s.History = nil
		s.Mu.Unlock()
		key := stream.Key{Namespace: "ns", Name: "x"}
		w := streams.Begin(sim.Resource("as"), key)
		require.NoError(t, w.Commit(t.Context(), stream.Outcome{Write: coherence.Write{Key: key}}))
		update(t, a, snap)
		assert.Empty(t, snap.A)
		for range 60 {
			sim.After(second)
			synctest.Wait()
			update(t, a, snap)
			require.Empty(t, snap.A, "it does not come back")
		}
		assert.Zero(t, a.Status()[0].Pending)
	})
}

func TestSelectsJudgesFieldsByTheirPath(t *testing.T) {
	u := sim.Thing("x", "a", "b")
	_ = unstructured.SetNestedField(u.Object, "n1", "spec", "nodeName")
	for text, want := range map[string]bool{
		"spec.nodeName=n1": true, "spec.nodeName!=n1": false, "metadata.name=x": true,
		"metadata.namespace=other": false, "spec.missing=": true, "spec.missing=x": false,
	} {
		f, err := fields.ParseSelector(text)
		require.NoError(t, err)
		assert.Equal(t, want, stream.Selects(stream.Resource{}, stream.Spec{Selection: stream.Selection{Fields: f}}, u), text)
	}
}

// The answer is about a scale, say. The object that it has changed is still there.
func TestG4OnAFakeAWriteOfUnknownOutcomeIsAskedFor(t *testing.T) {
	onFake(t, func(t *testing.T, s *sim.Server, streams *stream.Set, a *Accumulator, snap *one) {
		s.Create("as", sim.Thing("x", "in", "yes"))
		synctest.Wait()
		update(t, a, snap)
		s.Late(time.Hour)
		key := stream.Key{Namespace: "ns", Name: "x"}
		w := streams.Begin(sim.Resource("as"), key)
		_, ok := s.Do("as", key, "move", 0)
		require.True(t, ok)
		require.NoError(t, w.Commit(t.Context(), stream.Outcome{Write: coherence.Write{Key: key}, Unknown: true}))
		update(t, a, snap)
		require.Len(t, snap.A, 1)
		assert.Equal(t, "no", snap.A[0].GetLabels()["in"])
	})
}
