package kates

import "fmt"

// KeyError is an error of one key of a [RunEach] or a controller, as [OnError] is told of it.
type KeyError struct {
	Key string
	Err error
}

// Error names the key.
func (e *KeyError) Error() string { return fmt.Sprintf("key %q: %s", e.Key, e.Err.Error()) }

// Unwrap returns the error.
func (e *KeyError) Unwrap() error { return e.Err }
