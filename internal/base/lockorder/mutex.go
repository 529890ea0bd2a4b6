//go:build !lockorder

package lockorder

import "sync"

// Mutex is a sync.Mutex that is the lock R of [Order]. Its zero value is unlocked.
type Mutex[R any] struct{ sync.Mutex }

// CallOut marks a call that no lock may be held across: of a user's function, or a request. With
// the build tag lockorder it ends the process if the goroutine holds a lock.
func CallOut(string) {}
