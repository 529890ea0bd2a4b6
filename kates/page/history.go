package page

import (
	"maps"
	"slices"
	"time"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// What a history holds: the last minutes sample by sample, and the last hour in less detail.
const (
	fineSamples, fineSpan     = 300, 5 * time.Minute
	coarseSamples, coarseSpan = 360, time.Hour
	coarseEvery               = 10 * time.Second
	maxSeries                 = 1000 // 5.3 kB each
)

// A history has the timelines of the page: values at the moments when they were sampled. Its size
// has a bound, whatever there is to sample.
type history struct {
	mu     lockorder.Mutex[lockorder.PageHistory]
	fine   ring // the times of samples
	coarse ring
	series map[string]*series
	full   bool // there was more to sample than maxSeries
}

// series is a value over time. Its rings have a value for each of the history's samples since the
// series began.
type series struct{ fine, coarse ring }

// ring holds the last values. Position n is that of the nth value of the history.
type ring struct {
	values []float64
	next   int // position of the next value
}

func newRing(size int) ring { return ring{values: slices.Repeat([]float64{missing}, size)} }

// put sets the value at a position, which is the next one or, for a new series, any.
func (r *ring) put(n int, v float64) {
	r.values[n%len(r.values)] = v
	r.next = n + 1
}

// at returns the value at a position; it is missing if there is none.
func (r *ring) at(n int) float64 {
	if n < 0 || n >= r.next || n < r.next-len(r.values) {
		return missing
	}
	return r.values[n%len(r.values)]
}

// missing stands for no value. Every value is 0 or more.
const missing = -1

// add adds a sample: the values of this moment, by series. A series without a value now is
// forgotten: what it was about has ended.
func (h *history) add(at time.Time, values map[string]float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.series == nil {
		h.series = map[string]*series{}
		h.fine, h.coarse = newRing(fineSamples), newRing(coarseSamples)
	}
	now := seconds(at)
	n, c := h.fine.next, h.coarse.next
	coarse := c == 0 || now-h.coarse.at(c-1) >= coarseEvery.Seconds()
	h.fine.put(n, now)
	if coarse {
		h.coarse.put(c, now)
	}
	maps.DeleteFunc(h.series, func(name string, _ *series) bool {
		_, is := values[name]
		return !is
	})
	h.full = false
	for name, v := range values {
		s := h.series[name]
		if s == nil {
			if len(h.series) >= maxSeries {
				h.full = true
				continue
			}
			s = &series{fine: newRing(fineSamples), coarse: newRing(coarseSamples)}
			h.series[name] = s
		}
		s.fine.put(n, v)
		if coarse {
			s.coarse.put(c, v)
		}
	}
}

// point is a value at a time, in seconds.
type point struct{ at, value float64 }

// line returns the values of a series since a time, the oldest first.
func (h *history) line(name string, span time.Duration, now time.Time) (line []point) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.series[name]
	if s == nil {
		return nil
	}
	times, values := &h.fine, &s.fine
	if span > fineSpan {
		times, values = &h.coarse, &s.coarse
	}
	from := seconds(now) - span.Seconds()
	for n := max(0, times.next-len(times.values)); n < times.next; n++ {
		if at, v := times.at(n), values.at(n); at >= from && v != missing {
			line = append(line, point{at, v})
		}
	}
	return line
}

// rates returns by how much a counter has grown per second, between one sample and the next. One
// that has shrunk has begun anew.
func rates(line []point) (to []point) {
	for i := 1; i < len(line); i++ {
		before, p := line[i-1], line[i]
		if p.at > before.at {
			to = append(to, point{p.at, max(0, p.value-before.value) / (p.at - before.at)})
		}
	}
	return to
}

// rateSpan is the time over which the page tells a rate.
const rateSpan = 10 * time.Second

// rate returns by how much a counter has grown per second in the last ten seconds, or since the
// last sample but one. It reports false if that is not known.
func (h *history) rate(name string, now time.Time) (float64, bool) {
	line := h.line(name, fineSpan, now)
	if len(line) < 2 {
		return 0, false
	}
	last := line[len(line)-1]
	first := line[len(line)-2]
	for i := len(line) - 2; i >= 0 && last.at-line[i].at <= rateSpan.Seconds(); i-- {
		first = line[i]
	}
	if last.at <= first.at {
		return 0, false
	}
	return max(0, last.value-first.value) / (last.at - first.at), true
}

// grown returns by how much a counter has grown in the last minutes.
func (h *history) grown(name string, span time.Duration, now time.Time) float64 {
	line := h.line(name, min(span, fineSpan), now)
	if len(line) < 2 {
		return 0
	}
	return max(0, line[len(line)-1].value-line[0].value)
}

func (h *history) isFull() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.full
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
