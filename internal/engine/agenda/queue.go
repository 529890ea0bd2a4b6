package agenda

// inARow is how many keys of the first class get a turn, while others wait, before one of the
// second class does.
const inARow = 4

// queue has the keys that are ready, in two classes. Keys that are due for themselves come first:
// something of theirs has changed, or somebody asks for them. The others are due with all keys: at
// the start, or for a change that concerns every key. There may be many of these, and a change
// would wait for all of them. None starves: one turn of five is theirs.
type queue struct {
	own, common keyList
	row         int // turns of the first class since one of the second
}

func (q *queue) push(e *Entry) { q.of(e).push(e) }

func (q *queue) remove(e *Entry) { q.of(e).remove(e) }

func (q *queue) of(e *Entry) *keyList {
	if e.own {
		return &q.own
	}
	return &q.common
}

func (q *queue) length() int { return q.own.length + q.common.length }

// next returns the key that is next, nil if there is none.
func (q *queue) next() *Entry {
	if q.own.first == nil || q.common.first != nil && q.row >= inARow {
		return q.common.first
	}
	return q.own.first
}

// removeNext removes the next key, and returns it.
func (q *queue) removeNext() *Entry {
	e := q.next()
	if e == nil {
		return nil
	}
	if q.row++; !e.own || q.common.first == nil {
		q.row = 0
	}
	q.remove(e)
	return e
}

// Entries of an agenda know their places, so each of these collections removes one without a
// search.

// keySet is entries in no order.
type keySet []*Entry

func (s *keySet) add(e *Entry) {
	*s = append(*s, e)
	e.place = len(*s)
}

func (s *keySet) remove(e *Entry) {
	all := *s
	last := len(all) - 1
	all[e.place-1] = all[last]
	all[e.place-1].place = e.place
	all[last] = nil
	*s, e.place = all[:last], 0
}

// keyHeap is entries by the time before which they do not run, for container/heap.
type keyHeap []*Entry

func (h keyHeap) Len() int           { return len(h) }
func (h keyHeap) Less(i, j int) bool { return h[i].notBefore.Before(h[j].notBefore) }
func (h keyHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].place, h[j].place = i+1, j+1 }

func (h *keyHeap) Push(e any) { (*keySet)(h).add(e.(*Entry)) }

func (h *keyHeap) Pop() any {
	e := (*h)[len(*h)-1]
	(*keySet)(h).remove(e)
	return e
}

// keyList is entries in the order in which they were pushed.
type keyList struct {
	first, last *Entry
	length      int
}

func (l *keyList) push(e *Entry) {
	if e.before = l.last; l.last == nil {
		l.first = e
	} else {
		l.last.after = e
	}
	l.last = e
	l.length++
}

func (l *keyList) remove(e *Entry) {
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

func (l *keyList) all(yield func(*Entry) bool) {
	for e := l.first; e != nil; e = e.after {
		if !yield(e) {
			return
		}
	}
}
