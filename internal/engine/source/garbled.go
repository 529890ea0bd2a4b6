package source

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Unreadable is the object of the error event with which a [Source] ends a watch that it cannot
// read. Unlike a Status, it keeps the cause.
type Unreadable struct{ Err error }

// GetObjectKind is none.
func (*Unreadable) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the same: it does not change.
func (u *Unreadable) DeepCopyObject() runtime.Object { return u }

// Garbled is the error of an answer with something that no server should send. Nobody knows
// what the answer was about, so nothing that comes after it is taken in. The watch is opened again
// where it was. If that does not help, a list shows what the watch does not.
type Garbled struct{ Cause error }

func (u Garbled) Error() string { return u.Cause.Error() }
func (u Garbled) Unwrap() error { return u.Cause }

// IsGarbled reports whether an answer could not be read.
func IsGarbled(err error) bool {
	var u Garbled
	return errors.As(err, &u)
}
