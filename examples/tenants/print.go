package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/kates-go/kates/kates"
)

// program prints the results of the tenants. Several are computed at a time.
type program struct {
	label string
	start time.Time

	mu    sync.Mutex
	out   io.Writer
	calls int
}

func (p *program) intro(simulated bool) {
	if simulated {
		fmt.Fprintln(p.out, "Some tenants of a pretend cluster. A line is a call for one tenant, with all that belongs to it.")
	} else {
		fmt.Fprintf(p.out, "A line is a call for one tenant, with all that belongs to it by the label %q.\n", p.label)
	}
	fmt.Fprintf(p.out, "\n  TIME  TENANT  NAMESPACES    CPUs   SHARE   %-48s  %s\n", "VERDICT", "CHANGES")
}

func (p *program) line(tenant, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	fmt.Fprintf(p.out, "%5.1fs  %-6s  %s\n", time.Since(p.start).Seconds(), tenant, fmt.Sprintf(format, args...))
}

func (p *program) print(tenant string, r *report, deltas []*kates.Delta) {
	p.line(tenant, "%s  %s", r, causes(deltas))
}

func (p *program) gone(tenant string) { p.line(tenant, "gone: its output can be removed") }

// failed gets each error, which names the tenant as its key.
func (p *program) failed(err error, attempt int) {
	p.line("!", "try %d: %v", attempt, err)
}

// ending says why there was no call, if there was none.
func (p *program) ending(missing error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.calls > 0:
	case missing != nil:
		fmt.Fprintf(p.out, "  There was no complete snapshot: %v\n", missing)
	default:
		fmt.Fprintf(p.out, "  Nothing has the label %q, so there is no tenant. Try: kubectl label namespace NAME %s=red\n", p.label, p.label)
	}
}

// causes summarizes deltas: what was added, updated and deleted.
func causes(deltas []*kates.Delta) string {
	marks := map[kates.DeltaType]string{kates.ObjectAdd: "+", kates.ObjectUpdate: "~", kates.ObjectDelete: "-"}
	count := map[[2]string]int{}
	var order [][2]string
	for _, d := range deltas {
		what := [2]string{marks[d.DeltaType], d.Kind}
		if count[what]++; count[what] == 1 {
			order = append(order, what)
		}
	}
	parts := make([]string, len(order))
	for i, what := range order {
		parts[i] = fmt.Sprintf("%s%d %s", what[0], count[what], what[1])
	}
	return strings.Join(parts, ", ")
}
