package fleet

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/kates"
)

// errRefused: the server refuses all that a target could be watched by.
var errRefused = errors.New("the server refuses (403)")

// take takes what the watch has shown since the last time. Readers take for themselves, so that
// they see own writes at once. It does not wait for the network.
func (w *targetWatch) take() {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	w.mu.Lock()
	f := w.following
	var plans int
	var waiting bool
	if f != nil {
		plans, waiting = f.plans, w.schedule.Waiting() && !f.starting
	}
	w.mu.Unlock()
	if f == nil {
		return
	}
	var deltas []*kates.Delta
	before := f.snap.Objects
	// The context is that of nobody: an update does not wait.
	if _, err := f.acc.UpdateWithDeltas(context.Background(), &f.snap, &deltas); err != nil || !f.snap.Objects.Available() {
		return // it has ended, or is not complete yet
	}
	// Only turns put a plan into force, and the newest one was started before this turn. So if none
	// waits now, the objects are those of the newest.
	settled := waiting && !f.state().Changing
	w.targets.activate(w.note(f, before, deltas, settled, plans))
}

// note notes what was taken, and returns the owners whose targets have changed.
func (w *targetWatch) note(f *following, before objects, deltas []*kates.Delta, settled bool, plans int) map[string]struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.following != f {
		return nil
	}
	w.objects = f.snap.Objects
	owners := make(map[string]struct{})
	if settled && f.plans == plans {
		var unknown []*wanted
		for _, is := range w.wanted {
			if !w.schedule.Known(is.target.planned()) {
				unknown = append(unknown, is)
			}
		}
		w.schedule.Shown()
		for _, is := range unknown {
			if w.schedule.Known(is.target.planned()) {
				is.addOwners(owners)
			}
		}
		w.changed()
	}
	for _, d := range deltas {
		key := types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
		w.index.each(key, before, w.objects, func(is *wanted) {
			if w.schedule.Known(is.target.planned()) {
				is.addOwners(owners)
			}
		})
	}
	return owners
}

// activating calls Activate with the owners that are due.
func (t *Targets) activating() {
	for {
		select {
		case <-t.tell:
		case <-t.ctx.Done():
			return
		}
		t.mu.Lock()
		var owners []string
		for owner := range t.active {
			owners = append(owners, owner)
		}
		clear(t.active)
		t.mu.Unlock()
		if len(owners) == 0 {
			continue
		}
		err := guard.Named("Activate", func() error { t.Activate(owners...); return nil })
		if err != nil {
			t.fleet.log.Error(err, "telling owners that their targets have changed", guard.Attribute(err)...)
		}
	}
}
