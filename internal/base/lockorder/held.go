//go:build lockorder

package lockorder

import "sync"

// The ranks that each goroutine holds. All of this is hidden from the race detector (see hide):
// else its locks would order what goroutines do that have nothing to do with each other, and hide
// the races between them. Therefore it uses neither maps nor append, which report what they touch.

// stack is the ranks that one goroutine holds, in the order of their acquisition.
type stack struct {
	goroutine uint64
	held      [most]int
	n         int
	next      *stack // of the same bucket
}

// most is more locks than a goroutine ever holds.
const most = 64

type bucket struct {
	mu    sync.Mutex
	first *stack
	free  *stack // to be used again
}

var buckets [256]bucket

// push notes that a goroutine acquires a rank. If it is checked, and what is held does not stand
// above, nothing is noted, and the offending rank is returned.
//
//go:norace
func push(goroutine uint64, rank int, checked bool) (held int, ok bool) {
	hide()
	defer show()
	b := &buckets[goroutine/512%uint64(len(buckets))]
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.first
	for s != nil && s.goroutine != goroutine {
		s = s.next
	}
	if s == nil {
		if s = b.free; s == nil {
			s = new(stack)
		} else {
			b.free = s.next
		}
		s.goroutine, s.next = goroutine, b.first
		b.first = s
	}
	for i := 0; checked && i < s.n; i++ {
		if s.held[i] >= rank {
			return s.held[i], false
		}
	}
	s.held[s.n] = rank
	s.n++
	return 0, true
}

// pop notes that a lock is released.
//
//go:norace
func pop(goroutine uint64, rank int) {
	hide()
	defer show()
	b := &buckets[goroutine/512%uint64(len(buckets))]
	b.mu.Lock()
	defer b.mu.Unlock()
	at := &b.first
	for *at != nil && (*at).goroutine != goroutine {
		at = &(*at).next
	}
	s := *at
	if s == nil {
		return // unlocked without having been locked: sync.Mutex says so
	}
	for i := s.n - 1; i >= 0; i-- {
		if s.held[i] != rank {
			continue
		}
		for ; i < s.n-1; i++ {
			s.held[i] = s.held[i+1]
		}
		s.n--
		break
	}
	if s.n == 0 {
		*at = s.next
		s.next, b.free = b.free, s
	}
}

// highest is the lock that a goroutine has acquired last, of those that it holds.
//
//go:norace
func highest(goroutine uint64) (rank int, ok bool) {
	hide()
	defer show()
	b := &buckets[goroutine/512%uint64(len(buckets))]
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := b.first; s != nil; s = s.next {
		if s.goroutine == goroutine {
			return s.held[s.n-1], true
		}
	}
	return 0, false
}
