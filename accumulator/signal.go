package accumulator

import (
	"fmt"
	"runtime/debug"
)

// Signal decides whether a change of an object is worth a signal: old is nil for one that is
// new, and current for one that is gone. An object that was replaced by another of its name is
// asked about twice, gone and new. What is not worth a signal is in the next snapshot, and its
// deltas, all the same.
//
// It is called without locks, by the goroutine that lists and watches and by those that write, for
// changes in no particular order, before the change is coalesced with others. It does not write
// to its arguments. One that panics is logged, and counts as true.
type Signal func(old, current Object) bool

// judged is what wakes the accumulator for a change that its query's Signal has to judge
// first. It runs without locks.
func (s *subscription) judged(key Key, before, after Object) func() {
	return func() {
		if !s.worth(before, after) {
			return
		}
		s.stream.mu.Lock()
		s.shout(key)
		s.stream.mu.Unlock()
		s.wake()
	}
}

// worth asks the user's function.
func (s *subscription) worth(before, after Object) (yes bool) {
	if s.signal == nil || rejection(before) != nil || rejection(after) != nil {
		return true
	}
	defer func() {
		if p := recover(); p != nil {
			yes = true
			s.stream.streams.config.Logger.Error(fmt.Errorf("%v", p), "the function that judges what is worth a signal panicked",
				"resource", s.stream.key.resource, "stack", string(debug.Stack()))
		}
	}()
	if before != nil && after != nil && before.GetUID() != after.GetUID() {
		return s.signal(before, nil) || s.signal(nil, after)
	}
	return s.signal(before, after)
}

// waking returns what is to be run, without locks, for a change that wakes the
// accumulator. Called with the stream's lock held.
func (s *subscription) waking(key Key, before, after Object) func() {
	if s.signal != nil {
		return s.judged(key, before, after)
	}
	s.shout(key)
	return s.wake
}
