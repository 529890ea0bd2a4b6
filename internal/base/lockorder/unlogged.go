//go:build !lockorder

package lockorder

import "github.com/go-logr/logr"

// Logged returns a logger that no lock may be held across: a log is a user's, and may ask for a
// status. With the build tag lockorder it ends the process if the goroutine holds a lock.
func Logged(l logr.Logger) logr.Logger { return l }
