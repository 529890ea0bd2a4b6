//go:build lockorder

package lockorder

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync"
)

// Mutex is a sync.Mutex that is the lock R of [Order]. Its zero value is unlocked.
type Mutex[R any] struct {
	mu    sync.Mutex
	owner uint64 // the goroutine; guarded by mu
}

// Lock is refused if the goroutine holds a lock that does not stand above R in the order.
func (m *Mutex[R]) Lock() {
	var lock R
	rank, me := rankOf(lock), goroutine()
	if held, ok := push(me, rank, true); !ok {
		violated(fmt.Sprintf("lock order: %s is acquired while %s is held",
			Order[rank].Name, Order[held].Name))
	}
	m.mu.Lock()
	m.owner = me
}

// TryLock is never refused by the order, since it does not wait. It counts as held.
func (m *Mutex[R]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	var lock R
	m.owner = goroutine()
	push(m.owner, rankOf(lock), false)
	return true
}

// Unlock may be called by any goroutine, as that of a sync.Mutex.
func (m *Mutex[R]) Unlock() {
	var lock R
	pop(m.owner, rankOf(lock))
	m.mu.Unlock()
}

// violated ends the process: a panic could be recovered as if a user's function had panicked. The
// tests of this package panic instead.
var violated = func(text string) {
	fmt.Fprintf(os.Stderr, "%s\n\n%s", text, debug.Stack())
	os.Exit(2)
}

// CallOut is refused if the goroutine holds a lock.
func CallOut(what string) {
	if held, ok := highest(goroutine()); ok {
		violated(fmt.Sprintf("lock order: %s is called while %s is held", what, Order[held].Name))
	}
}

var ranks = func() map[any]int {
	all := make(map[any]int, len(Order))
	for rank, lock := range Order {
		all[lock.of] = rank
	}
	return all
}()

func rankOf(lock any) int {
	rank, ok := ranks[lock]
	if !ok {
		violated(fmt.Sprintf("lock order: %T has no row in the table", lock))
	}
	return rank
}
