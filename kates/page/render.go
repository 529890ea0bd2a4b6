package page

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"link": link,
	"ago":  ago,
	"past": past,
	"till": till,
	"wbr":  breaks,
	"iso":  iso,
	"num":  func(v any) string { return number3(asFloat(v)) },
	"size": size,
	"secs": secondsText,
	"per": func(v *float64) string {
		if v == nil {
			return "–"
		}
		return rateText(*v)
	},
	"code":    codeText,
	"codes":   codesText,
	"path":    cutPath,
	"sub":     func(a, b any) float64 { return asFloat(a) - asFloat(b) },
	"state":   stateWords,
	"look":    lookOf,
	"reasons": reasonsOf,
	"name":    nameIn,
	"around":  around,
	"height":  func(c Chart) float64 { return float64(len(c.Panels)) * (panelHeight + panelGap) },
	"offset":  func(i int) float64 { return float64(i)*(panelHeight+panelGap) + panelGap },
	"text": func(v *string) string {
		if v == nil {
			return ""
		}
		return *v
	},
	"effectWord": func(e Effect) string {
		return map[Effect]string{Wrong: "Wrong", Late: "Late", Expensive: "Expensive", Note: "Note"}[e]
	},
}).ParseFS(assets, "assets/*.html"))

const panelGap = 18.0

const (
	unknown = "–"
	moment  = "now"
)

// ago is how long before a moment a time was.
func ago(at, of time.Time) string {
	if of.IsZero() {
		return unknown
	}
	d := at.Sub(of).Truncate(100 * time.Millisecond)
	if d <= 0 {
		return moment
	}
	return duration(d)
}

// around is what is before and after an ID in a text; nothing if it is not in it.
func around(text, id string) []string {
	before, after, is := strings.Cut(text, id)
	if id == "" || !is {
		return nil
	}
	return []string{before, after}
}

// till is how long after a moment a time is.
func till(at, of time.Time) string {
	if of.IsZero() || !of.After(at) {
		return "–"
	}
	return duration(of.Sub(at))
}

func iso(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func asFloat(v any) float64 {
	switch n := v.(type) {
	case int:
		return float64(n)
	case int64:
		return float64(n)
	case uint64:
		return float64(n)
	case float64:
		return n
	}
	return 0
}

func codesText(codes map[int]uint64) string {
	of := map[string]uint64{}
	for code, n := range codes {
		of[codeText(code)] += n
	}
	return reasons(of)
}

// reasonsOf is [reasons] for the maps of a report.
func reasonsOf(of any) string {
	switch m := of.(type) {
	case map[inspect.ListReason]uint64:
		return reasons(m)
	case map[inspect.WatchReason]uint64:
		return reasons(m)
	case map[kates.CallOutcome]uint64:
		return reasons(m)
	}
	return ""
}

// cutPath is a link of this page with a parameter changed.
func cutPath(ask url.Values, name, value string) string {
	to := url.Values{}
	for k, v := range ask {
		to[k] = v
	}
	to.Set(name, value)
	if value == "" {
		to.Del(name)
	}
	return "?" + to.Encode()
}

// lookOf is the class of a state: what is silent is a warning, and what counts as empty is none.
func lookOf(s kates.State, silent, empty bool) string {
	switch {
	case empty:
		return "empty"
	case silent:
		return "quiet"
	}
	return string(s)
}

// stateWords are a state in words that need no glossary.
func stateWords(s kates.State) string {
	words, is := map[kates.State]string{
		kates.StateWaiting: "waiting for the kind", kates.StateListing: "first list is running",
		kates.StateSynced: "watch is open", kates.StateRetrying: "retrying", kates.StateForbidden: "forbidden",
		kates.StateMissing: "kind is missing",
	}[s]
	if !is {
		return string(s)
	}
	return words
}

// sheet is what the templates get.
type sheet struct {
	*answer
	Title string
	Pages []tab
	Said  string // how many problems there are
}

type tab struct {
	Title, Link string
	Current     bool
	Badge       int
}

// Names of the clients.
func (s sheet) Clients() []string { return s.clients }

// Named reports whether clients have names to tell them apart: there are several, or the only one
// has one.
func (s sheet) Named() bool { return len(s.clients) != 1 || s.clients[0] != nameless }

// Ask is what was asked for.
func (s sheet) Ask() url.Values { return s.ask }

// HasForm reports whether the page has a form of its own.
func (s sheet) HasForm() bool { return s.kind.form }

// Full reports whether some timelines are missing.
func (s sheet) Full() bool { return s.full }

// Span is "hour" if that is shown.
func (s sheet) Span() string { return s.ask.Get("span") }

// render writes the page as HTML.
func (a *answer) render(w http.ResponseWriter) {
	to := sheet{answer: a, Title: a.kind.title, Said: "Nothing is wrong."}
	if a.Problems > 0 {
		to.Said = count(a.Problems, "problem", "problems") + "."
	}
	for _, of := range pages {
		if of.hidden {
			continue
		}
		t := tab{Title: of.title, Link: link(of.name, "client", a.Client), Current: of.name == a.kind.name}
		if of.name == "" {
			t.Badge = a.Problems
		}
		to.Pages = append(to.Pages, t)
	}
	var body bytes.Buffer // so that an error leaves no half page
	if err := templates.ExecuteTemplate(&body, a.Page+".html", to); err != nil {
		http.Error(w, fmt.Sprintf("The page cannot be made: %T.", err), http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, plain.Text(body.String())) // the reader has gone
}
