package main

import (
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kates-go/kates/kates"
)

// printer prints what happens: with a little colour on a terminal, plain in a pipe.
type printer struct {
	w           io.Writer
	bold, dim   string
	reset       string
	start       time.Time
	count       int
	writtenThen int
}

func newPrinter(w io.Writer) *printer {
	p := &printer{w: w, start: time.Now()}
	if f, ok := w.(*os.File); ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.bold, p.dim, p.reset = "\x1b[1m", "\x1b[2m", "\x1b[0m"
		}
	}
	return p
}

func (p *printer) intro(simulated bool, namespace string) {
	if simulated {
		fmt.Fprintln(p.w, "An application rolls out in a pretend cluster. Its watch of ConfigMaps is 400 ms late on purpose.")
	} else {
		fmt.Fprintf(p.w, "Watching namespace %q.\n", namespace)
	}
	fmt.Fprintf(p.w, "Each snapshot is whole and the latest; this program takes %s over each.\n\n", reconcile)
}

// snapshot prints one snapshot: why it came, what it cost, and the result.
func (p *printer) snapshot(s *Snapshot, rows [][]string, took time.Duration, written int) {
	p.count++
	fmt.Fprintf(p.w, "%ssnapshot %d%s at %.1fs: %s\n", p.bold, p.count, p.reset, time.Since(p.start).Seconds(), causes(s.Deltas))
	objects := len(s.Services) + len(s.Slices) + len(s.Deployments) + len(s.Routes) + len(s.Published)
	cost := fmt.Sprintf("cost: %s for %d of %d objects, the others are the same pointers as before",
		took.Round(10*time.Microsecond), len(s.Deltas), objects)
	if written > 0 {
		cost += fmt.Sprintf("; coalesced: %d events into %d changes", written-p.writtenThen, len(s.Deltas))
		p.writtenThen = written
	}
	fmt.Fprintf(p.w, "  %s%s%s\n", p.dim, cost, p.reset)
	for _, i := range s.Invalid {
		fmt.Fprintf(p.w, "  left out: %s %s: %v\n", i.Object.GetKind(), i.Object.GetName(), i.Err)
	}
	t := tabwriter.NewWriter(p.w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(t, "  HOST\tSERVICE\tREADY\tROLLOUT")
	for _, row := range rows {
		fmt.Fprintln(t, "  "+strings.Join(row, "\t"))
	}
	_ = t.Flush() // if stdout fails, the program ends soon
}

func (p *printer) ownWrite(what string, after time.Duration, late bool) {
	why := ""
	if late {
		why = ", long before the watch brings it"
	}
	fmt.Fprintf(p.w, "  %sown write: published %s, in a snapshot %s later%s%s\n\n", p.dim, what, after.Round(10*time.Microsecond), why, p.reset)
}

func (p *printer) outro() {
	fmt.Fprintf(p.w, "%d snapshots in %.1fs.\n", p.count, time.Since(p.start).Seconds())
}

// causes summarizes deltas: 2 EndpointSlices updated, 1 Route added.
func causes(deltas []*kates.Delta) string {
	verbs := map[kates.DeltaType]string{kates.ObjectAdd: "added", kates.ObjectUpdate: "updated", kates.ObjectDelete: "deleted"}
	count := map[string]int{}
	for _, d := range deltas {
		count[d.Kind+" "+verbs[d.DeltaType]]++
	}
	var parts []string
	for what, n := range count {
		if kind, verb, _ := strings.Cut(what, " "); n > 1 {
			what = kind + "s " + verb
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, what))
	}
	sort.Strings(parts)
	if len(parts) == 0 {
		return "nothing there yet"
	}
	return strings.Join(parts, ", ")
}
