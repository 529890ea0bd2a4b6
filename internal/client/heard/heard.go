// Package heard lets tests read the errors that the library tells its callers. Nothing else may
// depend on it.
package heard

import "sync/atomic"

var listener atomic.Pointer[func(error)]

// Listen sets the function that is called with each error of a request, a watch, or a run. It is
// called where the error is made, by any goroutine. Nil ends that.
func Listen(f func(error)) {
	if f == nil {
		listener.Store(nil)
		return
	}
	listener.Store(&f)
}

// Error returns the error that a caller is told.
func Error(err error) error {
	if f := listener.Load(); f != nil && err != nil {
		(*f)(err)
	}
	return err
}
