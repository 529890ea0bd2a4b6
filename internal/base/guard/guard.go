// Package guard turns a panic of a user's function into an error. It has the only call of recover
// in this module, so that every such function is treated alike.
//
// [Call] is for code of ours that runs methods of the user's types. [Named] is for a function that
// the user gave: its error says which one it was, and where. [Handle] is for an error type of the
// caller's own. A function that ends its goroutine (runtime.Goexit) is not a panic: nothing
// returns.
//
// No lock is held during these calls, which the build tag lockorder checks. [Library] is for code
// that is not the user's.
package guard

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/kates-go/kates/internal/base/lockorder"
)

// Panic is a panic as an error.
type Panic struct {
	// What panicked, for example "the transform panicked". Empty: the message says "panic".
	What  string
	Value any    // of the panic
	Stack []byte // of the goroutine, as [debug.Stack] gives it
}

// Error says what panicked, and with which value. It is one line of a log: [Attribute] has the
// stack.
func (p *Panic) Error() string { return fmt.Sprintf("%s: %v", cmp.Or(p.What, "panic"), p.Value) }

// Attribute returns the stack of a panic as an attribute of a log entry; nil for other errors.
func Attribute(err error) []any {
	if p := (*Panic)(nil); errors.As(err, &p) {
		return []any{"stack", string(p.Stack)}
	}
	return nil
}

// Call calls f. A panic becomes a [*Panic] without a name.
func Call(f func() error) error { return Named("", f) }

// Named calls f. A panic becomes a [*Panic] with this name.
func Named(what string, f func() error) error {
	lockorder.CallOut("a user's function")
	return caught(what, f)
}

// Library calls a function of a library that panics at odd input. It is no user's function, so
// locks may be held.
func Library(f func() error) error { return caught("", f) }

func caught(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Panic{What: what, Value: p, Stack: debug.Stack()}
		}
	}()
	return f()
}

// Handle calls f. A panic becomes the error that panicked returns, nil included. An error of f
// stays as it is, even if it is a [*Panic].
func Handle(f func() error, panicked func(*Panic) error) error {
	var result error
	thrown := Call(func() error {
		result = f()
		return nil
	})
	if p, ok := thrown.(*Panic); ok {
		return panicked(p)
	}
	return result
}
