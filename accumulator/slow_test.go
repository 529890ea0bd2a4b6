package accumulator

import (
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// stuckReaders opens readers that share a stream and get stuck.
func stuckReaders(t *testing.T, streams *streamset.Set) (release chan struct{}) {
	release = make(chan struct{})
	stuck := func(at *int) {
		if *at++; *at > 1 { // past the first snapshot
			<-release
		}
	}
	calls := make([]int, 3)
	never := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
	require.True(t, signalled(never))
	shown := watching(t, streams, collect.Options{Witness: sim.Witness(func() { stuck(&calls[0]) })}, sim.Query("A", "as"))
	invalid := watching(t, streams, collect.Options{Invalid: func(tables.Invalid) { stuck(&calls[1]) }}, sim.Query("A", "as"))
	judging := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
	for _, r := range []struct {
		a *Accumulator
		j *Judgement
	}{
		{shown, nil},
		{invalid, Pass(func(*unstructured.Unstructured) bool { panic("it is invalid") })},
		{judging, Pass(func(*unstructured.Unstructured) bool { stuck(&calls[2]); return true })},
	} {
		go func() { // ends with the accumulator, at the latest with the bubble.
			for range r.a.Changed() {
				var snap one
				_, _ = r.a.Update(t.Context(), &snap, r.j)
			}
		}()
	}
	return release
}

// TestG2AReaderWaitsForNobodyWhoIsStuck: in the bubble's time, a step without a wait takes no
// time.
func TestG2AReaderWaitsForNobodyWhoIsStuck(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("x"))
		release := stuckReaders(t, streams)
		fast := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(fast))
		var snap one
		update(t, fast, &snap)
		s.Touch("as", "x", 0)
		synctest.Wait() // all others are stuck now
		<-fast.Changed()
		o := sim.NewClient(s, streams)
		for i := range 1000 {
			began := time.Now()
			s.Touch("as", "x", i+1)
			<-fast.Changed()
			update(t, fast, &snap)
			n, _, _ := unstructured.NestedInt64(snap.A[len(snap.A)-1].Object, "spec", "n")
			assert.EqualValues(t, i+1, n)
			o.Put("as", sim.Thing("own"), 0)
			update(t, fast, &snap)
			require.Equal(t, []string{"own", "x"}, sim.Names(snap.A))
			require.True(t, o.Delete("as", "own", 0, true))
			update(t, fast, &snap)
			for range 2 { // signals of the own writes
				synctest.Wait()
				select {
				case <-fast.Changed():
				default:
				}
			}
			require.Zero(t, time.Since(began))
			sim.After(time.Millisecond)
		}
		close(release)
		synctest.Wait()
	})
}

func TestG3TheHeapStaysAsItIsWhile100000EventsPassWhoNeverReads(t *testing.T) {
	const many, slack = 100_000, 2 << 20
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		unread := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		read := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(read))
		var snap one
		update(t, read, &snap)
		update(t, unread, &snap)
		st := listener(read, 0).Stage()
		version := 1000
		events := func(n int) {
			for range n {
				version++
				_ = st.Event(&unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"k": strconv.Itoa(version)}, "metadata": map[string]any{
					"namespace": "ns", "name": strconv.Itoa(version / 2 % 100), "uid": "uid-" + strconv.Itoa(version/2), "resourceVersion": strconv.Itoa(version),
				}}}, version%2 == 1)
			}
		}
		heap := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		events(1000)
		before := heap()
		events(many)
		assert.Less(t, heap()-before, int64(slack))
		runtime.KeepAlive(unread)
	})
}
