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

	"github.com/kates-go/kates/accumulator/stream"
)

// stuckReaders opens readers that share a stream and get stuck.
func stuckReaders(t *testing.T, streams *stream.Set) (release chan struct{}) {
	release = make(chan struct{})
	stuck := func(at *int) {
		if *at++; *at > 1 { // past the first snapshot
			<-release
		}
	}
	calls := make([]int, 3)
	never := watching(t, streams, Options{}, simQuery("A", "as"))
	require.True(t, signalled(never))
	shown := watching(t, streams, Options{Shown: func(string, Object, any) { stuck(&calls[0]) }}, simQuery("A", "as"))
	invalid := watching(t, streams, Options{Invalid: func(Invalid) { stuck(&calls[1]) }}, simQuery("A", "as"))
	judging := watching(t, streams, Options{}, simQuery("A", "as"))
	for _, r := range []struct {
		a *Accumulator
		j *Judgement
	}{
		{shown, nil},
		{invalid, &Judgement{func(*unstructured.Unstructured) bool { panic("it is invalid") }}},
		{judging, &Judgement{func(*unstructured.Unstructured) bool { stuck(&calls[2]); return true }}},
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
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.create("as", thing("x"))
		release := stuckReaders(t, streams)
		fast := watching(t, streams, Options{}, simQuery("A", "as"))
		require.True(t, signalled(fast))
		var snap one
		update(t, fast, &snap)
		s.touch("as", "x", 0)
		synctest.Wait() // all others are stuck now
		<-fast.Changed()
		o := own{s, streams}
		for i := range 1000 {
			began := time.Now()
			s.touch("as", "x", i+1)
			<-fast.Changed()
			update(t, fast, &snap)
			n, _, _ := unstructured.NestedInt64(snap.A[len(snap.A)-1].Object, "spec", "n")
			assert.EqualValues(t, i+1, n)
			o.put("as", thing("own"), 0)
			update(t, fast, &snap)
			require.Equal(t, []string{"own", "x"}, names(snap.A))
			require.True(t, o.delete("as", "own", 0, true))
			update(t, fast, &snap)
			for range 2 { // signals of the own writes
				synctest.Wait()
				select {
				case <-fast.Changed():
				default:
				}
			}
			require.Zero(t, time.Since(began))
			after(time.Millisecond)
		}
		close(release)
		synctest.Wait()
	})
}

func TestG3TheHeapStaysAsItIsWhile100000EventsPassWhoNeverReads(t *testing.T) {
	const many, slack = 100_000, 2 << 20
	bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
		unread := watching(t, streams, Options{}, simQuery("A", "as"))
		read := watching(t, streams, Options{}, simQuery("A", "as"))
		require.True(t, signalled(read))
		var snap one
		update(t, read, &snap)
		update(t, unread, &snap)
		st := read.fields[0].parts[0].sub.Stage()
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
