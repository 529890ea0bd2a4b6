package accumulator

import "sync"

// calls counts requests under way. A Reflector makes some of its own goroutines, and
// does not wait for them when its context ends; the feed does.
type calls struct {
	mu    sync.Mutex
	count int
	ended bool
	idle  chan struct{} // closed when ended and none is under way
}

// begin reports whether a request may be made.
func (c *calls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.count++
	return true
}

func (c *calls) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count--; c.count == 0 && c.idle != nil {
		close(c.idle)
	}
}

// end waits until no request is under way, and allows no other. It is called once.
func (c *calls) end() {
	c.mu.Lock()
	c.ended = true
	if c.count == 0 {
		c.mu.Unlock()
		return
	}
	c.idle = make(chan struct{})
	c.mu.Unlock()
	<-c.idle
}
