// Package attempts says how a user's function is tried again: how long to wait, and which errors
// are final. It is pure logic, shared by all loops that call such functions.
package attempts

import (
	"errors"
	"fmt"
	"time"
)

// Backoff is how long to wait after failures in a row: First after the first one, then twice as
// long each time, up to Most.
type Backoff struct{ First, Most time.Duration }

// Default is the backoff of loops whose options say nothing else.
var Default = Backoff{First: 100 * time.Millisecond, Most: time.Minute}

// Check reports whether the backoff makes sense.
func (b Backoff) Check() error {
	if b.First <= 0 || b.Most < b.First {
		return fmt.Errorf("a backoff from %s to %s: the first must be positive, and the most no less", b.First, b.Most)
	}
	return nil
}

// After returns the wait after so many failures in a row, which is at least one.
func (b Backoff) After(failures int) time.Duration {
	d := b.First
	for range failures - 1 {
		if d > b.Most/2 {
			return b.Most
		}
		d *= 2
	}
	return d
}

// Permanent marks an error that another try does not mend.
type Permanent struct{ Err error }

// Error is the marked error's.
func (p *Permanent) Error() string { return p.Err.Error() }

// Unwrap returns the marked error.
func (p *Permanent) Unwrap() error { return p.Err }

// Later marks an error that sets the time of the next try, in place of a backoff.
type Later struct {
	Err   error
	After time.Duration
}

// Error is the marked error's.
func (l *Later) Error() string { return l.Err.Error() }

// Unwrap returns the marked error.
func (l *Later) Unwrap() error { return l.Err }

// Asked is returned in place of an error by a function that wants to be called again.
type Asked struct {
	// After is when, unless there is a backoff.
	After time.Duration
	// Backoff: as after an error.
	Backoff bool
}

// Error says what was asked for.
func (a *Asked) Error() string {
	if a.Backoff {
		return "it asks to be called again after a backoff"
	}
	return fmt.Sprintf("it asks to be called again in %s", a.After)
}

// Asks returns what a function has asked for, nil if its error is another one, or has others
// joined to it: those count.
func Asks(err error) *Asked {
	for ; err != nil; err = errors.Unwrap(err) { // which does not look into joined errors
		if asked, ok := err.(*Asked); ok {
			return asked
		}
	}
	return nil
}

// Final reports whether an error is marked as permanent, and returns it: without the mark, if that
// is the outermost error.
func Final(err error) (error, bool) {
	var p *Permanent
	if !errors.As(err, &p) {
		return err, false
	}
	if err == error(p) {
		return p.Err, true
	}
	return err, true
}

// ErrGoexit is the error of a function that has ended its goroutine, and with it its caller.
var ErrGoexit = errors.New("the function has ended its goroutine (runtime.Goexit, as FailNow of a test does)")

// Send sends what f returns, or [ErrGoexit] if f does not return. So a receiver that waits for
// workers learns of the end of each.
func Send(ends chan<- error, f func() error) {
	err := ErrGoexit
	defer func() { ends <- err }()
	err = f()
}
