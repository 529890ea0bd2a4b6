package ordered

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kates-go/kates/internal/base/guard"
)

// Line hands out results in the order in which their functions were given. It is for one
// goroutine, which calls Close at the end.
type Line[T any] struct {
	pool *Pool
	out  func(T) error
	jobs []*job[T] // the next result is that of jobs[at]; those before are nil
	at   int
	err  error // that ended the line
}

// job is a function, and its result once it has run.
type job[T any] struct {
	task
	result T
}

// NewLine returns a line with the help of a pool. It hands results to out, in the calls of its own
// methods. An error of out ends the line: no result is handed out any more.
func NewLine[T any](p *Pool, out func(T) error) *Line[T] {
	return &Line[T]{pool: p, out: out}
}

// errClosed is a call after Close.
var errClosed = errors.New("the line of functions is closed")

// Len is how many functions were given whose results were not handed out.
func (l *Line[T]) Len() int { return len(l.jobs) - l.at }

// Add gives a function, which holds so many bytes until its result is handed out. It runs once: at
// once or later, in this goroutine or in another one. Add hands out the results that are there.
// Where there is no room it waits for some, and runs functions of the line meanwhile. The error is
// that of out.
//
// A function that panics makes the call panic that would hand out its result.
func (l *Line[T]) Add(bytes int64, f func() T) error {
	if !l.pool.Helps() {
		if err := l.Flush(); err != nil {
			return err
		}
		return l.hand(f())
	}
	j := &job[T]{task: task{bytes: max(bytes, 0) + overhead, done: make(chan struct{})}}
	j.run = func() { j.result = f() }
	for l.err == nil && (l.ready() || !l.pool.add(&j.task, l.Len() == 0)) {
		if err := l.first(); err != nil {
			return err
		}
	}
	if l.err != nil {
		return l.err
	}
	l.push(j)
	return nil
}

// Flush hands out all results. It waits for them, and runs functions of the line meanwhile.
func (l *Line[T]) Flush() error {
	for l.err == nil && l.Len() > 0 {
		if err := l.first(); err != nil {
			return err
		}
	}
	return l.err
}

// Close ends the line. Results that were not handed out are dropped, and functions that nobody has
// begun do not run. No function of the line runs after it has returned. It may be called twice.
func (l *Line[T]) Close() {
	l.end(errClosed)
}

// push appends a job. The space of those before the next one is used again.
func (l *Line[T]) push(j *job[T]) {
	if l.at > 0 && l.at >= len(l.jobs)/2 {
		n := copy(l.jobs, l.jobs[l.at:])
		clear(l.jobs[n:])
		l.jobs, l.at = l.jobs[:n], 0
	}
	l.jobs = append(l.jobs, j)
}

// ready reports whether the next result is there.
func (l *Line[T]) ready() bool {
	if l.Len() == 0 {
		return false
	}
	select {
	case <-l.jobs[l.at].done:
		return true
	default:
		return false
	}
}

// first hands out the next result. Until it is there, it runs what nobody has begun, the oldest
// first.
func (l *Line[T]) first() error {
	j := l.jobs[l.at]
	for i := l.at; i < len(l.jobs) && !l.ready(); i++ {
		if t := &l.jobs[i].task; l.pool.claim(t) {
			t.do()
		}
	}
	<-j.done
	l.jobs[l.at] = nil
	l.at++
	l.pool.free(&j.task)
	var p *guard.Panic
	switch {
	case errors.As(j.err, &p):
		panic(fmt.Sprintf("%v, in a function that ran side by side with others:\n%s", p.Value, p.Stack))
	case !j.ended:
		panic("a function that ran side by side with others has ended its goroutine")
	}
	return l.hand(j.result)
}

// hand hands out a result.
func (l *Line[T]) hand(result T) error {
	if l.err != nil {
		return l.err
	}
	if err := l.out(result); err != nil {
		l.end(err)
	}
	return l.err
}

// end ends the line with an error, if it has not ended.
func (l *Line[T]) end(err error) {
	if l.err == nil {
		l.err = err
	}
	rest := l.jobs[l.at:]
	run := slices.DeleteFunc(rest, func(j *job[T]) bool {
		never := l.pool.claim(&j.task)
		if never {
			l.pool.free(&j.task)
		}
		return never
	})
	for _, j := range run { // all others are claimed: no helper takes one meanwhile
		<-j.done
		l.pool.free(&j.task)
	}
	l.jobs, l.at = nil, 0
}
