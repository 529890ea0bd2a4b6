package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kates-go/kates/examples/snapwatch/output"
	"github.com/kates-go/kates/examples/snapwatch/until"
	"github.com/kates-go/kates/internal/base/plain"
)

// mostUnmet is how many objects a time-out names.
const mostUnmet = 20

// first is how long the first snapshot may take with a time-out of 0, which is to look once.
const first = 30 * time.Second

// week is what kubectl makes of a time-out below 0.
const week = 7 * 24 * time.Hour

// waiter waits for a snapshot in which all objects of all kinds satisfy a condition at once.
type waiter struct {
	condition *until.Condition
	printer   output.Printer // nil: a line for each object
	out       io.Writer
	deadline  time.Time
	// once: the first snapshot decides.
	once bool
	// unmet are those of the last snapshot.
	unmet []until.Unmet
	shown bool
}

// see looks at a frame.
func (w *waiter) see(watch *watch, f frame) (done bool, err error) {
	if f.snapshot != nil {
		w.shown = true
		w.unmet = w.condition.Unmet(judged(watch.kinds, f))
		if len(w.unmet) == 0 {
			return true, w.met(*f.snapshot)
		}
	}
	if f.over || w.once && w.shown || !f.at.Before(w.deadline) {
		return false, w.timedOut(watch, f)
	}
	return false, nil
}

// judged is a snapshot as conditions see it.
func judged(kinds []*kind, f frame) []until.Kind {
	all := make([]until.Kind, len(kinds))
	for i, k := range kinds {
		now := f.picture.Kinds[i]
		all[i] = until.Kind{Name: k.resource.String(), Wanted: k.names, Objects: f.snapshot.Kinds[i].Objects}
		if f.absent[i] || !now.Known {
			all[i].Unknown = now.State + because(now.Error)
			all[i].Missing = now.State == "missing"
		}
	}
	return all
}

func (w *waiter) met(s output.Snapshot) error {
	if w.printer != nil {
		return w.printer.Print(w.out, s)
	}
	var b strings.Builder
	for _, k := range s.Kinds {
		for _, o := range k.Objects {
			fmt.Fprintf(&b, "%s %s\n", output.Name(k.Kind, o.GetName()), w.condition.Met())
		}
	}
	_, err := io.WriteString(w.out, b.String())
	return err
}

// timedOut says which objects do not satisfy the condition, and why.
func (w *waiter) timedOut(watch *watch, f frame) error {
	why := "timed out waiting for " + w.condition.String()
	if f.over {
		why = "the replay ends without " + w.condition.String()
	}
	if !w.shown {
		if err := watch.incomplete(); err != nil {
			return fmt.Errorf("%s: %w", why, err)
		}
	}
	lines := []string{fmt.Sprintf("%s: in the last snapshot these do not satisfy it:", why)}
	for i, u := range w.unmet {
		if i == mostUnmet {
			lines = append(lines, fmt.Sprintf("  and %d more", len(w.unmet)-i))
			break
		}
		lines = append(lines, "  "+plain.Line(u.What+": "+u.Why))
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}
