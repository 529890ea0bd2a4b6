package derive

import (
	"errors"
	"fmt"
)

var (
	// ErrNone is the error of a look-up: there is no entry with this key.
	ErrNone = errors.New("no entry with this key")
	// Skip is what a function returns that makes no entry of its input.
	Skip = errors.New("no entry for this input") //lint:ignore ST1012 it is no failure, as io.EOF is none
)

// EntryError is the error of a look-up: the entry is there, and it is invalid. It is invalid
// because its function has returned this error or has panicked, because its input is invalid, or
// because its key is there twice.
type EntryError struct {
	Node string // the name of the collection or value
	Key  string // empty for a value
	Err  error
}

// Error names the entry and says why it is invalid.
func (e *EntryError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s: %v", e.Node, e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Node, e.Key, e.Err)
}

// Unwrap returns the reason.
func (e *EntryError) Unwrap() error { return e.Err }

// fault is the reason why an entry is invalid.
type fault struct{ err error }

// faultOf returns why an entry is invalid; nil if it is valid or not there.
func faultOf[K comparable, V any](x *cell[K, V]) *fault {
	if x == nil {
		return nil
	}
	return x.fault
}

// sameFault tells whether two reasons have the same text.
func sameFault(a, b *fault) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.err.Error() == b.err.Error()
}

// mistake is a panic of a function, or of a program, that uses a Reader or a node in a way that
// cannot be answered.
type mistake string

func (m mistake) Error() string { return "derive: " + string(m) }

func misuse(format string, args ...any) { panic(mistake(fmt.Sprintf(format, args...))) }
