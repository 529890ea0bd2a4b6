package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/kates-go/kates/kates"
)

// intro says what there is, and what to try.
func (d *Demo) intro(g Gateway) {
	out := d.options.Out
	fmt.Fprintln(out, "A shop and a blog in a pretend cluster. Their endpoints are real servers on the loopback interface.")
	if g.Reloads != nil {
		at, http, https := d.options.Address, d.options.Port(80), d.options.Port(443)
		fmt.Fprintf(out, "\n  curl -H 'Host: shop.example.com' http://%s:%d/\n", at, http)
		fmt.Fprintf(out, "  curl -k --resolve shop.example.com:%d:%s https://shop.example.com:%[1]d/\n", https, at)
	}
	if g.Page != "" {
		fmt.Fprintf(out, "\nMetrics: http://%s/metrics  Status: http://%[1]s/debug/kates/\n", g.Page)
	}
	fmt.Fprintln(out)
}

func (d *Demo) line(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.options.Out, "%5.1fs  %s\n", time.Since(d.start).Seconds(), strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// reported is what the gateway tells the owners of objects.
type reported struct {
	Events []*eventsv1.Event `kates:"events.events.k8s.io"`
}

// printEvents prints each event as it comes.
func (d *Demo) printEvents(ctx context.Context) {
	known := map[string]bool{}
	_ = kates.Run(ctx, d.admin, func(_ context.Context, snap *reported) error { // it ends with ctx
		for _, e := range snap.Events {
			if id := string(e.UID); !known[id] {
				known[id] = true
				d.line("        event: %s %s %s/%s: %s: %s", e.Type, e.Regarding.Kind, e.Regarding.Namespace, e.Regarding.Name, e.Reason, e.Note)
			}
		}
		return nil
	}, kates.WithInterval(100*time.Millisecond))
}

// thousands writes a number as 12,345.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
