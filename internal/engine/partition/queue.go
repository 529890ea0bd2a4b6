package partition

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

func (q *queue) push(e *entry) { q.of(e).push(e) }

func (q *queue) remove(e *entry) { q.of(e).remove(e) }

func (q *queue) of(e *entry) *keyList {
	if e.own {
		return &q.own
	}
	return &q.common
}

func (q *queue) length() int { return q.own.length + q.common.length }

// next returns the key that is next, nil if there is none.
func (q *queue) next() *entry {
	if q.own.first == nil || q.common.first != nil && q.row >= inARow {
		return q.common.first
	}
	return q.own.first
}

// take removes the next key.
func (q *queue) take() *entry {
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
