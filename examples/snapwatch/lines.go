package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kates-go/kates/examples/snapwatch/model"
	"github.com/kates-go/kates/internal/base/plain"
)

// line is a snapshot in one line:
//
//	15:04:05 #3 services 12 (+1), deployments 4, pods 31 (+3 ~1 -2); 9 events coalesced away
func line(p model.Picture) string {
	var kinds []string
	var skipped uint64
	for _, k := range p.Kinds {
		kinds = append(kinds, k.Name+" "+count(k))
		skipped += k.Skipped
	}
	text := fmt.Sprintf("%s #%d %s", p.Shown.Format(time.TimeOnly), p.Number, strings.Join(kinds, ", "))
	if skipped > 0 {
		text += fmt.Sprintf("; %d %s coalesced away", skipped, plural(skipped, "event"))
	}
	return text
}

// count is how many objects there are, and what has changed, or why that is not known.
func count(k model.Kind) string {
	if !k.Known {
		return k.State
	}
	text := fmt.Sprint(k.Count)
	if d := diff(k); d != "" {
		text += " (" + d + ")"
	}
	return text
}

// diff is what the last snapshot has changed: +3 ~1 -2; empty for nothing.
func diff(k model.Kind) string {
	var parts []string
	for _, c := range []struct {
		sign model.Type
		n    int
	}{{model.Added, k.Added}, {model.Updated, k.Updated}, {model.Deleted, k.Deleted}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%s%d", c.sign, c.n))
		}
	}
	return strings.Join(parts, " ")
}

func plural[N int | uint64](n N, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// progress tells on the standard error how the first lists go on, and what goes wrong. What was
// told is not told again.
type progress struct {
	out   io.Writer
	begun time.Time
	told  map[string]string // by kind
}

func newProgress(out io.Writer, now time.Time) *progress {
	return &progress{out: out, begun: now, told: map[string]string{}}
}

func (p *progress) note(picture model.Picture) {
	short := picture.At.Sub(p.begun) < tick // a list that does not take long needs no word
	for _, k := range picture.Kinds {
		told := p.told[k.Name]
		switch now := k.State; {
		case !k.Fine():
			if p.told[k.Name] = now; now != told {
				p.tell("%s: %s%s", k.Name, now, because(k.Error))
			}
		case told == "" || told[0] == ' ':
			if picture.Number > 0 || k.Listed == 0 || short {
				continue
			}
			// The blank says that nothing was wrong.
			if now = fmt.Sprint(" ", k.Listed); now != told {
				p.told[k.Name] = now
				p.tell("%s: listing, %d %s so far", k.Name, k.Listed, plural(k.Listed, "object"))
			}
		default:
			delete(p.told, k.Name)
			p.tell("%s: %s again", k.Name, now)
		}
	}
}

func (p *progress) tell(format string, args ...any) {
	fmt.Fprintln(p.out, plain.Line(fmt.Sprintf(format, args...)))
}

func because(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
