package replay

import (
	"slices"
	"sync"
	"time"

	"github.com/kates-go/kates/bench/internal/stats"
)

// Sent is what a [Steady] has sent: whether it has held the rate, and whether its client read.
type Sent struct {
	Events  int     // those that are sent twice count twice
	Watches int     // that were opened
	Rate    float64 // events per second, from the start to the last event
	Seconds []int   // events in each whole second of the schedule
	LateP99 float64 // ms from when an event is due to when it is written
	Late    float64 // the same, at most
	Blocked float64 // ms that a write took, at most: the client did not read meanwhile
	Waited  float64 // seconds in which a thread of the server's process had no CPU
	Batches []Batch
}

// Batch is what a watch sends at once: some events of a kind, each [Kinds] after the last. Began
// and Ended are the times of the write, from the start.
type Batch struct {
	First, Events int
	Began, Ended  time.Duration
}

// Written returns when each event was written first, from the start, or -1 for never.
func (s Sent) Written(total int) []time.Duration {
	all := slices.Repeat([]time.Duration{-1}, total)
	for _, b := range s.Batches {
		for n := range b.Events {
			if at := &all[b.First+n*Kinds]; *at < 0 || b.Began < *at {
				*at = b.Began
			}
		}
	}
	return all
}

// tally keeps batches. Its methods may be called from several goroutines.
type tally struct {
	mu      sync.Mutex
	watches int
	batches []Batch
}

func (t *tally) opened() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watches++
}

func (t *tally) add(b Batch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.batches = append(t.batches, b)
}

// sent returns what there is so far. Seconds without an event count as well.
func (t *tally) sent(plan Schedule) Sent {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Sent{Watches: t.watches, Seconds: make([]int, int(plan.Lasts/time.Second)), Batches: slices.Clone(t.batches)}
	if len(s.Batches) == 0 {
		return s
	}
	var last, blocked time.Duration
	var late []float64 // of the first event of each batch
	for _, b := range s.Batches {
		s.Events += b.Events
		if at := int(b.Ended / time.Second); at < len(s.Seconds) {
			s.Seconds[at] += b.Events
		}
		last, blocked = max(last, b.Ended), max(blocked, b.Ended-b.Began)
		late = append(late, ms(b.Began-plan.At(b.First)))
	}
	s.Rate, s.Blocked = float64(s.Events)/last.Seconds(), ms(blocked)
	s.LateP99, s.Late = stats.Percentile(late, 99), slices.Max(late)
	return s
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
