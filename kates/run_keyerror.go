package kates

import "fmt"

// KeyError is an error of one key of a [RunEach] or a controller. [OnError] gets it.
type KeyError struct {
	Key string
	Err error
}

// Error names the key.
func (e *KeyError) Error() string { return fmt.Sprintf("key %q: %s", e.Key, e.Err.Error()) }

// Unwrap returns the error.
func (e *KeyError) Unwrap() error { return e.Err }

func newKeyError(key string, err error) error { return &KeyError{Key: key, Err: err} }
