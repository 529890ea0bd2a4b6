//go:build lockorder

package lockorder_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/lockorder"
)

// violation returns what f panics with, "" if it does not.
func violation(f func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}

func TestLocksAreAcquiredInTheirOrder(t *testing.T) {
	var set lockorder.Mutex[lockorder.StreamSet]
	var stream lockorder.Mutex[lockorder.Stream]
	if v := violation(func() {
		for range 2 {
			set.Lock()
			stream.Lock()
			set.Unlock() // in any order
			stream.Unlock()
		}
	}); v != "" {
		t.Error(v)
	}
	stream.Lock()
	v := violation(set.Lock)
	for _, name := range []string{"internal/engine/streamset.Set.mu", "internal/engine/stream.Stream.mu"} {
		if !strings.Contains(v, name) {
			t.Errorf("%q does not name %s", v, name)
		}
	}
	stream.Unlock()
	//lint:ignore SA2001 the lock is what is tested
	if v := violation(func() { set.Lock(); set.Unlock() }); v != "" {
		t.Errorf("after a violation: %s", v)
	}
}

func TestNoTwoLocksOfOneRankAreHeld(t *testing.T) {
	var a, b lockorder.Mutex[lockorder.Stream]
	a.Lock()
	if violation(b.Lock) == "" {
		t.Error("a second stream's lock was acquired")
	}
	if violation(a.Lock) == "" {
		t.Error("a lock was acquired that the goroutine holds")
	}
	if !b.TryLock() {
		t.Error("a lock that nobody holds was not acquired by TryLock")
	}
	if a.TryLock() {
		t.Error("TryLock acquired a lock that is held")
	}
	b.Unlock()
	a.Unlock()
}

func TestEachGoroutineHoldsItsOwnLocks(t *testing.T) {
	var set lockorder.Mutex[lockorder.StreamSet]
	var stream lockorder.Mutex[lockorder.Stream]
	stream.Lock()
	var others sync.WaitGroup
	for range 100 {
		others.Go(func() {
			//lint:ignore SA2001 the lock is what is tested
			if v := violation(func() { set.Lock(); set.Unlock() }); v != "" {
				t.Error(v)
			}
		})
	}
	others.Wait()
	stream.Unlock()
}

func TestNoLockIsHeldAcrossACallOut(t *testing.T) {
	var stream lockorder.Mutex[lockorder.Stream]
	call := func() { _ = guard.Named("the transform panicked", func() error { return nil }) }
	if v := violation(call); v != "" {
		t.Error(v)
	}
	stream.Lock()
	defer stream.Unlock()
	if v := violation(call); !strings.Contains(v, "internal/engine/stream.Stream.mu") {
		t.Errorf("a user's function was called with a lock held: %q", v)
	}
	if v := violation(func() { lockorder.CallOut("a list") }); !strings.Contains(v, "a list") {
		t.Errorf("a request was sent with a lock held: %q", v)
	}
}

func TestALockWithoutARowIsRefused(t *testing.T) {
	type unlisted struct{}
	var m lockorder.Mutex[unlisted]
	if v := violation(m.Lock); !strings.Contains(v, "no row") {
		t.Errorf("got %q", v)
	}
}
