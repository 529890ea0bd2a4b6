package coherence

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// contents judges own writes by content, for aggregated API servers that answer without versions:
// each write waits, in order, for an event with its content.
type contents struct {
	same func(a, b Object) bool
	hold time.Duration

	queues map[types.NamespacedName][]expected
	held   int // in all queues
}

type expected struct {
	object   Object // nil: gone
	since    time.Time
	deadline time.Time
}

func (c *contents) record(w Write, now time.Time) {
	if c.queues == nil {
		c.queues = make(map[types.NamespacedName][]expected)
	}
	c.queues[w.Key] = append(c.queues[w.Key], expected{object: w.Object, since: now, deadline: now.Add(c.hold)})
	c.held++
}

func (c *contents) read(key types.NamespacedName) (Object, bool) {
	q := c.queues[key]
	if len(q) == 0 {
		return nil, false
	}
	return q[len(q)-1].object, true
}

func (c *contents) observe(key types.NamespacedName, object Object) (Ended, bool) {
	q := c.queues[key]
	i := slices.IndexFunc(q, func(e expected) bool { return c.equal(e.object, object) })
	if i < 0 {
		return Ended{}, false
	}
	return c.cut(key, i+1)
}

// cut drops the first n expectations of a key. It reports true if none is left.
func (c *contents) cut(key types.NamespacedName, n int) (Ended, bool) {
	q := c.queues[key]
	last := q[len(q)-1].object
	c.held -= n
	if n < len(q) {
		c.queues[key] = slices.Delete(q, 0, n)
		return Ended{}, false
	}
	delete(c.queues, key)
	return Ended{Key: key, Object: last}, true
}

func (c *contents) expire(now time.Time) (ended []Ended) {
	for k, q := range c.queues {
		n := 0
		for n < len(q) && !q[n].deadline.After(now) {
			n++
		}
		if n == 0 {
			continue
		}
		if e, ok := c.cut(k, n); ok {
			ended = append(ended, e)
		}
	}
	return ended
}

func (c *contents) deadline() (at time.Time, ok bool) {
	for _, q := range c.queues {
		if !ok || q[0].deadline.Before(at) {
			at, ok = q[0].deadline, true
		}
	}
	return at, ok
}

func (c *contents) reset() { c.queues, c.held = nil, 0 }

func (c *contents) equal(a, b Object) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return c.same(a, b)
}
