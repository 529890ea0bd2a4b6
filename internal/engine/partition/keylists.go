package partition

// Entries of an agenda know their places, so each of these collections removes one without a
// search.

// keySet is entries in no order.
type keySet []*entry

func (s *keySet) add(e *entry) {
	*s = append(*s, e)
	e.place = len(*s)
}

func (s *keySet) remove(e *entry) {
	all := *s
	last := len(all) - 1
	all[e.place-1] = all[last]
	all[e.place-1].place = e.place
	all[last] = nil
	*s, e.place = all[:last], 0
}

// keyHeap is entries by the time before which they do not run, for container/heap.
type keyHeap []*entry

func (h keyHeap) Len() int           { return len(h) }
func (h keyHeap) Less(i, j int) bool { return h[i].notBefore.Before(h[j].notBefore) }
func (h keyHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].place, h[j].place = i+1, j+1 }

func (h *keyHeap) Push(e any) { (*keySet)(h).add(e.(*entry)) }

func (h *keyHeap) Pop() any {
	e := (*h)[len(*h)-1]
	(*keySet)(h).remove(e)
	return e
}

// keyList is entries in the order in which they were pushed.
type keyList struct {
	first, last *entry
	length      int
}

func (l *keyList) push(e *entry) {
	if e.before = l.last; l.last == nil {
		l.first = e
	} else {
		l.last.after = e
	}
	l.last = e
	l.length++
}

func (l *keyList) remove(e *entry) {
	if e.before == nil {
		l.first = e.after
	} else {
		e.before.after = e.after
	}
	if e.after == nil {
		l.last = e.before
	} else {
		e.after.before = e.before
	}
	e.before, e.after = nil, nil
	l.length--
}

func (l *keyList) all(yield func(*entry) bool) {
	for e := l.first; e != nil; e = e.after {
		if !yield(e) {
			return
		}
	}
}
