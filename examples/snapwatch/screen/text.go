package screen

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/kates-go/kates/examples/snapwatch/model"
	"github.com/kates-go/kates/internal/base/plain"
)

// The colours, of the eight that each terminal has in its own shades.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (s *Screen) paint(color, text string) string {
	if !s.Color || text == "" || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

const helpText = `Each snapshot has all kinds as of one time.

  q, ctrl-C     quit, with code 0 or 130
  space, p      pause; again: go on
  tab, ← →      one kind: its changes and error
  esc           all kinds again
  ↑ ↓           scroll the changes; also pgup,
                pgdn, home, end

OBJECTS    in the last snapshot, or listed so far
CHANGED    in it: +added ~updated -deleted
COALESCED  events that no snapshot shows
EVENTS/S   and CHANGES/S: of the last 10 s
LAG        how old what is shown may be`

// Text is the screen as a text: at most as many lines as it is high, each at most as wide.
func (s *Screen) Text() string {
	p := s.picture()
	lines := []string{s.header(p), ""}
	if s.Page != "" {
		lines = []string{s.header(p), s.Page, ""}
	}
	if s.help {
		lines = append(lines, strings.Split(helpText, "\n")...)
		return s.fit(lines, s.footer())
	}
	// The list of changes has three lines at least, and a heading, if there is room for anything.
	lines = append(lines, s.kinds(p, max(2, s.height-len(lines)-6))...)
	if room := s.height - len(lines) - 3; room > 0 {
		lines = append(lines, "")
		lines = append(lines, s.list(p, room)...)
	}
	return s.fit(lines, s.footer())
}

// fit cuts the lines to the size of the terminal, and puts the footer at the bottom.
func (s *Screen) fit(lines []string, footer string) string {
	room := max(1, s.height)
	if room > 4 {
		for len(lines) < room-1 {
			lines = append(lines, "")
		}
		lines = append(lines[:room-1], footer)
	}
	lines = lines[:min(len(lines), room)]
	for i, line := range lines {
		lines[i] = strings.TrimRight(ansi.Truncate(line, max(1, s.width), "…"), " ")
	}
	return strings.Join(lines, "\n")
}

// header says what is watched on the left, and which snapshot it is on the right.
func (s *Screen) header(p model.Picture) string {
	right := "waiting for the first snapshot"
	if p.Number > 0 {
		right = fmt.Sprintf("snapshot %d, %s ago", p.Number, short(p.At.Sub(p.Shown)))
	}
	switch {
	case s.paused:
		right += "  PAUSED"
	case s.over:
		right += "  THE REPLAY IS OVER"
	}
	left := "snapwatch  " + plain.Line(s.Where)
	if gap := s.width - ansi.StringWidth(left) - ansi.StringWidth(right); gap >= 2 {
		return s.paint(bold, left) + strings.Repeat(" ", gap) + right
	}
	return s.paint(bold, right) // on a narrow screen the news is what counts
}

func (s *Screen) footer() string {
	return s.paint(dim, "q quit  ? help  space pause  tab kind  ↑↓ scroll")
}

// column is one of the table of kinds.
type column struct {
	title string
	right bool // its numbers are flush right
	// need is the width of the screen from which on it is shown.
	need int
	cell func(model.Kind) string
}

var columns = []column{
	{"KIND", false, 0, func(k model.Kind) string { return plain.Line(k.Name) }},
	{"STATE", false, 0, func(k model.Kind) string { return k.State }},
	{"OBJECTS", true, 0, objects},
	{"CHANGED", false, 44, changed},
	{"COALESCED", true, 68, func(k model.Kind) string { return fmt.Sprint(k.Skipped) }},
	{"EVENTS/S", true, 78, func(k model.Kind) string { return fmt.Sprintf("%.1f", k.EventRate) }},
	{"CHANGES/S", true, 90, func(k model.Kind) string { return fmt.Sprintf("%.1f", k.ChangeRate) }},
	{"LAG", true, 54, func(k model.Kind) string { return short(k.Lag) }},
}

func objects(k model.Kind) string {
	switch {
	case k.Known && k.Invalid > 0:
		return fmt.Sprintf("%d, %d invalid", k.Count, k.Invalid)
	case k.Known:
		return fmt.Sprint(k.Count)
	case k.State == "synced": // and others are not
		return fmt.Sprint(k.Held)
	case k.Listed > 0 || k.Held > 0:
		return fmt.Sprintf("%d…", max(k.Listed, k.Held))
	}
	return "-"
}

func changed(k model.Kind) string {
	if k.Added+k.Updated+k.Deleted == 0 {
		return ""
	}
	return fmt.Sprintf("+%d ~%d -%d", k.Added, k.Updated, k.Deleted)
}

// kinds is the table of kinds, in so many lines at most. The chosen one is in it.
func (s *Screen) kinds(p model.Picture, most int) []string {
	rows := make([][]string, len(p.Kinds))
	var titles []string
	var shown []column
	for _, c := range columns {
		if s.width >= c.need {
			shown = append(shown, c)
			titles = append(titles, c.title)
		}
	}
	widths := make([]int, len(shown))
	for i, c := range shown {
		widths[i] = len(c.title)
		for j, k := range p.Kinds {
			text := c.cell(k)
			rows[j] = append(rows[j], text)
			widths[i] = max(widths[i], min(30, ansi.StringWidth(text)))
		}
	}
	lines := []string{"  " + s.paint(bold, row(shown, widths, titles, nil))}
	first := 0
	if s.kind > most-3 {
		first = s.kind - (most - 3)
	}
	for i := first; i < len(p.Kinds); i++ {
		k := p.Kinds[i]
		// Another line is for what does not fit.
		if rest := len(p.Kinds) - i; len(lines) >= most-1 && rest > 1 {
			return append(lines, fmt.Sprintf("  … %d more kinds", rest))
		}
		mark := "  "
		if i == s.kind {
			mark = "> "
		}
		lines = append(lines, mark+row(shown, widths, rows[i], func(column int, text string) string {
			if shown[column].title == "STATE" {
				return s.paint(shade(k), text)
			}
			return text
		}))
		if room := most - len(lines) - (len(p.Kinds) - i - 1); k.Error != "" && room > 0 {
			lines = append(lines, s.trouble(k, min(room, s.patience(i)))...)
		}
	}
	return lines
}

// patience is how many lines an error may have: the chosen kind's is shown whole.
func (s *Screen) patience(kind int) int {
	if kind == s.kind {
		return s.height
	}
	return 2
}

// trouble is the error of a kind, in so many lines at most.
func (s *Screen) trouble(k model.Kind, most int) []string {
	lines := strings.Split(ansi.Wrap(plain.Line(k.Error), max(10, s.width-6), " "), "\n")
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] += "…"
	}
	for i := range lines {
		lines[i] = "    " + s.paint(shade(k), lines[i])
	}
	return lines
}

// shade is the colour of a kind's state.
func shade(k model.Kind) string {
	switch {
	case k.State == "synced":
		return green
	case k.State == "forbidden" || k.State == "missing":
		return red
	}
	return yellow
}

// row lays cells out in columns.
func row(columns []column, widths []int, cells []string, paint func(int, string) string) string {
	var parts []string
	for i, c := range columns {
		text := ansi.Truncate(cells[i], widths[i], "…")
		space := strings.Repeat(" ", widths[i]-ansi.StringWidth(text))
		if paint != nil {
			text = paint(i, text)
		}
		if c.right {
			parts = append(parts, space+text)
		} else {
			parts = append(parts, text+space)
		}
	}
	return strings.Join(parts, "  ")
}

// list is the latest changes, in so many lines and a heading.
func (s *Screen) list(p model.Picture, room int) []string {
	title := "CHANGES"
	if s.kind >= 0 && s.kind < len(p.Kinds) {
		title += " of " + plain.Line(p.Kinds[s.kind].Name)
	}
	s.rows = room
	s.bound() // the list may have grown
	all := s.changes()
	if s.scroll > 0 {
		title += fmt.Sprintf(", %d newer above", s.scroll)
	}
	lines := []string{"  " + s.paint(bold, title)}
	for i := s.scroll; i < len(all) && len(lines) <= room; i++ {
		c := all[i]
		name := c.Name
		if c.Namespace != "" {
			name = c.Namespace + "/" + c.Name
		}
		lines = append(lines, fmt.Sprintf("  %s  #%-4d %s  %s  %s", c.At.Format(time.TimeOnly), c.Snapshot,
			s.paint(sign(c.Type), string(c.Type)), plain.Line(p.Kinds[c.Kind].Name), plain.Line(name)))
	}
	if len(all) == 0 {
		lines = append(lines, "  none yet")
	}
	return lines
}

func sign(t model.Type) string {
	return cmp.Or(map[model.Type]string{model.Added: green, model.Deleted: red}[t], yellow)
}

// short is a duration for people.
func short(d time.Duration) string {
	if d < time.Minute {
		return d.Truncate(time.Second).String()
	}
	return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
}
