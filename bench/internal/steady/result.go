package steady

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kates-go/kates/bench/internal/replay"
	"github.com/kates-go/kates/bench/internal/stats"
)

// look is one snapshot of the program. Its times are from the start of the events.
type look struct {
	idle   time.Duration     // when the program began to wait
	at     time.Duration     // when its Update began
	before [replay.Kinds]int // the first event of each kind that was not shown before the Update
	after  [replay.Kinds]int // the same after it
}

// judge says how old each snapshot was, by when the server wrote the events. What the server had
// not written, a snapshot cannot have.
func (r *Result) judge(load Load, looks []look) {
	written := r.Sent.Written(load.Total())
	since := func(at time.Duration, next [replay.Kinds]int) (oldest time.Duration) {
		for _, i := range next {
			if i < len(written) && written[i] >= 0 {
				oldest = max(oldest, at-written[i])
			}
		}
		return oldest
	}
	r.Snapshots = len(looks)
	for _, l := range looks {
		age, before := since(l.at, l.after), since(l.at, l.before)
		wait := min(before, l.at-l.idle)
		if age > load.Stale || wait > load.Stale+load.Interval {
			r.Stale++
		}
		r.Age, r.Wait, r.Shown = append(r.Age, ms(age)), append(r.Wait, ms(wait)), append(r.Shown, ms(before))
	}
}

// Err says which of these does not hold: the server has sent the events at their rate, nothing is
// stale, memory does not grow.
func (r Result) Err(load Load) error {
	var wrong []error
	if late := time.Duration(r.Sent.Late * float64(time.Millisecond)); late > load.Stale {
		wrong = append(wrong, fmt.Errorf("the server has not held %d events per second: it was %v behind",
			load.Rate, late.Round(time.Millisecond)))
	}
	if r.Stale > 0 {
		wrong = append(wrong, fmt.Errorf("%d of %d snapshots are stale: they lack an event that was written %v before, or the signal was as late",
			r.Stale, r.Snapshots, load.Stale))
	}
	grown := func(name string, samples []float64) {
		// What is alive depends on the moment, so that one sample says little. A leak is in all.
		first, last := quarter(samples, 0), quarter(samples, 3)
		if len(samples) >= 8 && slices.Min(last) > 1.25*slices.Min(first) {
			wrong = append(wrong, fmt.Errorf("the %s has grown: %.3g MB at least in the first quarter, %.3g in the last",
				name, slices.Min(first), slices.Min(last)))
		}
	}
	grown("live heap", r.Heap)
	grown("RSS", r.RSS)
	return errors.Join(wrong...)
}

// String is the result as rows of a table.
func (r Result) String() string {
	if r.Snapshots == 0 {
		return ""
	}
	var b strings.Builder
	row := func(name, format string, values ...any) {
		fmt.Fprintf(&b, "| %s | "+format+" |\n", append([]any{name}, values...)...)
	}
	times := func(name string, samples []float64) {
		row(name+", p50, p99 and at most, ms", "%.3g, %.3g, %.3g", stats.Median(samples), stats.Percentile(samples, 99), slices.Max(samples))
	}
	if len(r.Sent.Seconds) > 0 {
		seconds := make([]float64, len(r.Sent.Seconds))
		for i, n := range r.Sent.Seconds {
			seconds[i] = float64(n)
		}
		row("events sent per second", "%.0f", r.Sent.Rate)
		row("in each second, fewest, median and most", "%.0f, %.0f, %.0f", slices.Min(seconds), stats.Median(seconds), slices.Max(seconds))
		row("sent late by the server, p99 and at most, ms", "%.3g, %.3g", r.Sent.LateP99, r.Sent.Late)
		row("a write of the server, at most, ms", "%.3g", r.Sent.Blocked)
		row("watches opened", "%d", r.Sent.Watches)
	}
	row("events sent, and shown in the end", "%d, %d", r.Sent.Events, r.Events)
	row("snapshots, each checked", "%d", r.Snapshots)
	row("deltas, each checked", "%d", r.Deltas)
	row("stale snapshots", "%d", r.Stale)
	row("lists after the first ones", "%d", r.Restarts)
	times("sent, and not in the next snapshot", r.Age)
	times("sent, and no signal", r.Wait)
	times("sent, and not shown before the next Update", r.Shown)
	times("Update", r.Update)
	memory := func(name string, samples []float64) {
		for _, q := range []struct {
			name string
			at   int
		}{{"first", 0}, {"last", 3}} {
			s := quarter(samples, q.at)
			row(name+" in the "+q.name+" quarter, least, median and most, MB", "%.3g, %.3g, %.3g", slices.Min(s), stats.Median(s), slices.Max(s))
		}
	}
	memory("live heap", r.Heap)
	memory("RSS", r.RSS)
	row("peak RSS, MB", "%.3g", r.Peak)
	row("CPU, with the checks, s", "%.3g", r.CPU)
	row("threads that waited for a CPU, and those of the server, s", "%.3g, %.3g", r.Waited, r.Sent.Waited)
	row("load average of the machine, least, median and most", "%.3g, %.3g, %.3g", slices.Min(r.Machine), stats.Median(r.Machine), slices.Max(r.Machine))
	return b.String()
}

// quarter returns one of four quarters of the samples, at least one of them.
func quarter(samples []float64, at int) []float64 {
	n := len(samples)
	return samples[at*n/4 : max(at*n/4+1, (at+1)*n/4)]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
