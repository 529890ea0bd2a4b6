package accumulator

import (
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// TestG3AHundredThousandUnreadEventsAreOneKeyOrNone plays the watch itself. The simulated server
// of other tests remembers every event; a stream must not.
func TestG3AHundredThousandUnreadEventsAreOneKeyOrNone(t *testing.T) {
	const many = 100_000
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		st := listener(a, 0).Stage()
		version := 1000
		event := func(name string, deleted bool) {
			version++
			o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
				"namespace": "ns", "name": name, "uid": "uid", "resourceVersion": strconv.Itoa(version),
			}}}
			_ = st.Event(o, deleted)
		}
		most := 0
		for i := range many {
			event("passing-"+strconv.Itoa(i), false)
			most = max(most, st.Held().Dirty, st.Held().Objects)
			event("passing-"+strconv.Itoa(i), true)
		}
		assert.Equal(t, 1, most, "of objects that came and went")
		assert.Zero(t, st.Held().Dirty)
		for range many {
			event("x", false)
		}
		assert.Equal(t, 1, st.Held().Dirty)
		assert.Equal(t, 1, st.Held().Objects)
		assert.Len(t, a.Changed(), 1)
		assert.Len(t, update(t, a, &snap).Differences, 1)
		for i := range 1000 { // the reader has seen them: each needs a delete
			event(strconv.Itoa(i%10), i/10%2 == 1)
		}
		assert.LessOrEqual(t, st.Held().Dirty, 10)
	})
}

func TestG3ChangedHoldsOneSignal(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		var snap one
		for i := range 100 {
			s.Touch("as", "x", i)
			synctest.Wait()
		}
		assert.True(t, signalled(a))
		assert.False(t, signalled(a))
		assert.True(t, update(t, a, &snap).Changed)
		assert.False(t, signalled(a))
	})
}
