package page

import (
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kates-go/kates/kates/inspect"
)

// link is a relative address of a page, with parameters. Those that are empty are left out.
func link(page string, params ...any) string {
	ask := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		if v := fmt.Sprint(params[i+1]); v != "" && v != "0" {
			ask.Set(fmt.Sprint(params[i]), v)
		}
	}
	to := "./" + page
	if len(ask) > 0 {
		to += "?" + ask.Encode()
	}
	return to
}

// IDs of elements, for links.
func watchID(w *inspect.Watch) string { return fmt.Sprintf("watch-%d", w.ID) }

func queryID(w *inspect.Watch, q *inspect.Query) string {
	return url.PathEscape(fmt.Sprintf("query-%d-%s", w.ID, q.Name))
}

func streamID(s *inspect.Stream) string { return fmt.Sprintf("stream-%d", s.ID) }

func loopID(l *inspect.Loop) string { return url.PathEscape("loop-" + l.Name) }

func quoted(s string) string { return "“" + s + "”" }

// count is a number and a word: "1 key", "2 keys".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number3(float64(n)) + " " + many
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return count(n, "time", "times")
}

func objects(n int) string { return count(n, "object", "objects") }

func objectsHave(n int) string { return count(n, "object has", "objects have") }

// number3 is a number with a space between thousands.
func number3(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// rateText is a number per second.
func rateText(v float64) string {
	switch {
	case v == 0:
		return "0/s"
	case v < 0.095:
		return fmt.Sprintf("%.2f/s", v)
	case v < 9.95:
		return fmt.Sprintf("%.1f/s", v)
	}
	return number3(v) + "/s"
}

// size is a number of bytes.
func size(n int64) string {
	v, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, next
	}
	if v < 10 && unit != "B" {
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

// duration is a time span in two units at most.
func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// past says how long before a moment a time was: "now", "3 min 2 s ago".
func past(at, of time.Time) string {
	if text := ago(at, of); text == moment || text == unknown {
		return text
	}
	return ago(at, of) + " ago"
}

// nameIn is the name of an object, with its namespace.
func nameIn(namespace, name string) string {
	return strings.TrimPrefix(namespace+"/"+name, "/")
}

// breaks has a name break after dots and slashes, where it is too long for its place.
func breaks(name string) template.HTML {
	var to strings.Builder
	for part := range strings.SplitAfterSeq(name, ".") {
		for piece := range strings.SplitAfterSeq(part, "/") {
			to.WriteString(template.HTMLEscapeString(piece))
			if strings.HasSuffix(piece, ".") || strings.HasSuffix(piece, "/") {
				to.WriteString("<wbr>")
			}
		}
	}
	return template.HTML(to.String()) // escaped
}

// reasons are counts by reason, the most frequent first.
func reasons[K ~string](of map[K]uint64) string {
	keys := slices.SortedFunc(maps.Keys(of), func(a, b K) int {
		if of[a] != of[b] {
			return int(int64(of[b]) - int64(of[a]))
		}
		return strings.Compare(string(a), string(b))
	})
	var all []string
	for _, k := range keys {
		all = append(all, fmt.Sprintf("%s %d", k, of[k]))
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

func codeText(code int) string {
	if code == 0 {
		return "no answer"
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

// whyPending says why an own write is still in the journal.
func whyPending(w inspect.OwnWrite, s *inspect.Stream) string {
	at := "an earlier version"
	if s != nil && s.Version != "" {
		at = "version " + s.Version
	}
	switch {
	case w.Unsettled:
		return "The server could not be asked what the write means for this stream. It is shown when the watch brings it."
	case w.Gone:
		return fmt.Sprintf("The object has left, and the watch, which is at %s, has not said so yet.", at)
	case w.Version == "":
		return fmt.Sprintf("The watch is at %s, and has not shown the write yet.", at)
	}
	return fmt.Sprintf("The write made version %s, and the watch is at %s.", w.Version, at)
}
