package ordered

import (
	"container/list"
	"runtime"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/lockorder"
)

// Pool has the goroutines that help lines. They begin when there is work, and end when there is
// none. The zero value is ready for use. A nil Pool helps nobody. It is safe for concurrent use.
type Pool struct {
	// Helpers is the most goroutines that run functions beside those of the lines. 0 is one less
	// than GOMAXPROCS, and below 0 there are none.
	Helpers int
	// Bytes bounds what the functions of all lines hold that were given and not yet handed out.
	// 0 is [DefaultBytes].
	Bytes int64

	mu      lockorder.Mutex[lockorder.Lines]
	waiting list.List // of *task: those that nobody has begun, the oldest first
	helping int       // goroutines
	held    int64     // bytes
}

// DefaultBytes is [Pool.Bytes] where nothing is said.
const DefaultBytes = 4 << 20

// overhead is what a function counts beside its bytes: without it any number of small ones would
// be held.
const overhead = 256

// Helps reports whether functions can run beside the caller. If not, a caller need not make them
// independent of its buffers: Add runs each one before it returns.
func (p *Pool) Helps() bool { return p.most() > 0 }

func (p *Pool) most() int {
	switch {
	case p == nil || p.Helpers < 0:
		return 0
	case p.Helpers > 0:
		return p.Helpers
	}
	return runtime.GOMAXPROCS(0) - 1
}

func (p *Pool) bytes() int64 {
	if p.Bytes > 0 {
		return p.Bytes
	}
	return DefaultBytes
}

// task is a function that somebody is to run.
type task struct {
	run   func()
	bytes int64
	place *list.Element // among those that wait; nil: somebody has begun it, or nobody will
	done  chan struct{} // closed when it has run
	ended bool          // it has returned, or panicked
	err   error         // its panic
}

// do runs a task. A panic is kept for who takes the result.
func (t *task) do() {
	defer close(t.done)
	t.err = guard.Library(func() error {
		t.run()
		return nil
	})
	t.run = nil // it may hold much memory
	t.ended = true
}

// add lets a task wait for whoever runs it first. It reports whether there was room. A task that
// must be let in is, room or not.
func (p *Pool) add(t *task, must bool) bool {
	most := p.most()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !must && p.held+t.bytes > p.bytes() {
		return false
	}
	p.held += t.bytes
	t.place = p.waiting.PushBack(t)
	if p.helping < most {
		p.helping++
		go p.help() // ends when nothing waits
	}
	return true
}

// help runs what waits.
func (p *Pool) help() {
	over := false
	defer func() {
		if !over { // a function has ended the goroutine
			go p.help()
		}
	}()
	for t := p.next(); t != nil; t = p.next() {
		t.do()
	}
	over = true
}

// next takes the oldest task that waits. If there is none, a helper less is there.
func (p *Pool) next() *task {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.waiting.Front()
	if first == nil {
		p.helping--
		return nil
	}
	t := first.Value.(*task)
	p.take(t)
	return t
}

// claim reports whether nobody has begun a task, and nobody but the caller will.
func (p *Pool) claim(t *task) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.place == nil {
		return false
	}
	p.take(t)
	return true
}

// take takes a task from those that wait. p.mu is held.
func (p *Pool) take(t *task) {
	p.waiting.Remove(t.place)
	t.place = nil
}

// free gives back the room of a task.
func (p *Pool) free(t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held -= t.bytes
}
