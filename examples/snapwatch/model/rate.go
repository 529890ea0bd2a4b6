package model

import "time"

// rate counts in seconds, for the last [Window] of them.
type rate struct {
	counts [int(Window / time.Second)]uint64
	last   int64 // the second of the last count
	first  int64 // the second of the first count
}

// add counts n at a time.
func (r *rate) add(at time.Time, n uint64) {
	second := at.Unix()
	if r.first == 0 {
		r.first, r.last = second, second
	}
	r.forget(second)
	r.counts[second%int64(len(r.counts))] += n
}

// per returns how many there are per second. A second that is not over yet counts whole.
func (r *rate) per(at time.Time) float64 {
	if r.first == 0 {
		return 0
	}
	r.forget(at.Unix())
	var sum uint64
	for _, n := range r.counts {
		sum += n
	}
	// Shortly after the start the window is shorter.
	seconds := min(int64(len(r.counts)), max(1, at.Unix()-r.first+1))
	return float64(sum) / float64(seconds)
}

// forget drops what is older than the window. Time that goes back is no time.
func (r *rate) forget(second int64) {
	for s := r.last + 1; s <= second && s <= r.last+int64(len(r.counts)); s++ {
		r.counts[s%int64(len(r.counts))] = 0
	}
	r.last = max(r.last, second)
}
