package stream

import (
	"fmt"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/object"
)

// theSignal is what a stream's step runs meanwhile.
var theSignal = "the function that judges what is worth a signal"

// waking returns what is to be run, without locks, for a change that may be worth a signal. Called
// with the stream's lock held.
func (l *Listener) waking(key object.Key, before, after object.Object) func() {
	if l.Signal == nil {
		l.untaken.Signal(key)
		return l.Wake
	}
	return func() {
		if !l.worth(before, after) {
			return
		}
		l.stream.mu.Lock()
		l.untaken.Signal(key)
		l.stream.mu.Unlock()
		l.Wake()
	}
}

// worth asks the user's function whether a change is worth a signal.
func (l *Listener) worth(before, after object.Object) (yes bool) {
	before, after = object.Bare(before), object.Bare(after)
	if object.Fault(before) != nil || object.Fault(after) != nil {
		return true
	}
	ask := func() error {
		if before != nil && after != nil && before.GetUID() != after.GetUID() {
			yes = l.Signal(before, nil) || l.Signal(nil, after)
		} else {
			yes = l.Signal(before, after)
		}
		return nil
	}
	l.stream.Step.Do(&theSignal)
	defer l.stream.Step.Do(nil)
	_ = guard.Handle(ask, func(p *guard.Panic) error {
		yes = true
		l.stream.config.Logger.Error(fmt.Errorf("%v", p.Value), "the function that judges what is worth a signal panicked",
			"resource", l.stream.Key.Resource, "stack", string(p.Stack))
		return nil
	})
	return yes
}
