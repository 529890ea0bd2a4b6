package steady

import (
	"bufio"
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/bench/internal/replay"
)

// serve runs a server for the time of a test.
func serve(t *testing.T, plan replay.Schedule) (address string) {
	t.Helper()
	stdin, end := io.Pipe()
	out, stdout := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- replay.ServeSteady(plan, stdin, stdout) }()
	t.Cleanup(func() {
		require.NoError(t, end.Close())
		require.NoError(t, <-served)
	})
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	return lines.Text()
}

func TestASmallLoadIsMeasured(t *testing.T) {
	load := Load{
		Schedule:  replay.Schedule{Objects: 20, Rate: 900, Lasts: time.Second},
		Reconcile: 20 * time.Millisecond, Interval: time.Millisecond, Stale: time.Second,
	}
	r, err := Measure(t.Context(), serve(t, load.Schedule), load)
	require.NoError(t, err)
	assert.Equal(t, 900, r.Events)
	assert.Positive(t, r.Snapshots)
	assert.GreaterOrEqual(t, r.Deltas, 60, "each object has changed")
	assert.Positive(t, r.Sent.Events)
	assert.GreaterOrEqual(t, r.Sent.Watches, 3)
	for _, samples := range [][]float64{r.Age, r.Wait, r.Shown} {
		assert.Len(t, samples, r.Snapshots)
	}
	assert.Contains(t, r.String(), "| events sent per second |")
	assert.Contains(t, r.String(), ", 900 |")
}

func TestWhatWasMeasuredIsToldAlsoOfALoadThatDoesNotEnd(t *testing.T) {
	load := Load{Schedule: replay.Schedule{Objects: 5, Rate: 900, Lasts: 300 * time.Millisecond}, Interval: time.Millisecond}
	address := serve(t, load.Schedule)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer cancel()
		for sent := (replay.Sent{}); sent.Events < 270 && ask(t.Context(), address+replay.SentPath, &sent) == nil; {
			time.Sleep(time.Millisecond) // between two questions
		}
	}()
	load.Lasts = time.Hour // of events that the server does not send
	r, err := Measure(ctx, address, load)
	require.ErrorIs(t, err, context.Canceled)
	assert.GreaterOrEqual(t, r.Sent.Events, 270)
}

func TestTheAgeOfASnapshotIsByWhatTheServerHasWritten(t *testing.T) {
	load := Load{Schedule: replay.Schedule{Objects: 4, Rate: 9, Lasts: time.Second}, Stale: time.Second, Interval: time.Second}
	second := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	r := Result{Sent: replay.Sent{Batches: []replay.Batch{
		{First: 0, Events: 3, Began: second(1)}, // 0, 3, 6
		{First: 1, Events: 2, Began: second(2)}, // 1, 4, and not 7
		{First: 2, Events: 3, Began: second(3)}, // 2, 5, 8
	}}}
	r.judge(load, []look{
		{idle: second(0.5), at: second(0.9), before: [3]int{0, 1, 2}, after: [3]int{0, 1, 2}},
		{idle: second(0.9), at: second(1.5), before: [3]int{0, 1, 2}, after: [3]int{9, 1, 2}},
		{idle: second(4), at: second(4), before: [3]int{9, 1, 2}, after: [3]int{9, 7, 5}},
		{idle: second(4), at: second(4.5), before: [3]int{9, 7, 5}, after: [3]int{9, 7, 8}},
		{idle: second(4.5), at: second(6.6), before: [3]int{9, 7, 8}, after: [3]int{9, 7, 11}},
		{idle: second(6.6), at: second(9), before: [3]int{9, 7, 11}, after: [3]int{9, 10, 11}},
	})
	assert.Equal(t, 6, r.Snapshots)
	assert.Equal(t, []float64{0, 0, 1000, 1500, 0, 0}, r.Age)
	assert.Equal(t, []float64{0, 500, 0, 500, 2100, 0}, r.Wait)
	assert.Equal(t, []float64{0, 500, 2000, 1500, 3600, 0}, r.Shown)
	assert.Equal(t, 2, r.Stale, "the fourth lacks an event for 1.5 s, the fifth has its signal after 2.1 s")
}

func TestAResultSaysWhatDoesNotHold(t *testing.T) {
	load := Load{Schedule: replay.Schedule{Rate: 5000}, Stale: time.Second}
	level, rising := []float64{9, 10, 11, 10, 9, 10, 11, 10}, []float64{9, 10, 11, 12, 13, 14, 15, 16}
	good := Result{Snapshots: 8, Heap: level, RSS: level, Sent: replay.Sent{Late: 900}}
	require.NoError(t, good.Err(load))

	bad := good
	bad.Sent.Late = 1100
	require.ErrorContains(t, bad.Err(load), "the server has not held 5000 events per second: it was 1.1s behind")
	bad = good
	bad.Stale = 3
	require.ErrorContains(t, bad.Err(load), "3 of 8 snapshots are stale")
	bad = good
	bad.Heap = rising
	require.ErrorContains(t, bad.Err(load), "the live heap has grown: 9 MB at least in the first quarter, 15 in the last")
	bad = good
	bad.Heap = []float64{9, 30, 11, 10, 9, 10, 30, 9}
	require.NoError(t, bad.Err(load), "what is alive at a moment")
	bad.RSS = rising
	require.ErrorContains(t, bad.Err(load), "the RSS has grown")
	assert.Empty(t, Result{}.String())
}
