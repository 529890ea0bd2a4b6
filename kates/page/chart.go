package page

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Chart is a timeline. It is drawn as SVG, and its JSON has the values.
type Chart struct {
	Title string `json:"title"`
	// Text says in words what is to be seen.
	Text   string  `json:"text"`
	Span   float64 `json:"span"` // seconds
	Panels []Panel `json:"panels"`
}

// Panel is a part of a chart with a scale of its own.
type Panel struct {
	Name string  `json:"name"`
	Unit string  `json:"unit"`
	Max  float64 `json:"max"`
	// Peak is the highest value, where it is cut off: it is rare, and far above all others.
	Peak  float64 `json:"peak,omitempty"`
	Lines []Line  `json:"lines"`
}

// Line is a series of values: times in seconds before now, and values.
type Line struct {
	Name   string       `json:"name"`
	Values [][2]float64 `json:"values"`

	Area   bool   `json:"-"`
	Points string `json:"-"`
	Last   string `json:"last"`
}

// The size of a panel, in the units of the SVG.
const (
	chartWidth  = 720.0
	panelHeight = 80.0
)

// spanOf is the time that the timelines of a page show.
func spanOf(ask url.Values) time.Duration {
	if ask.Get("span") == "hour" {
		return coarseSpan
	}
	return fineSpan
}

// panel draws lines.
func panel(name, unit string, now time.Time, span time.Duration, lines ...namedLine) Panel {
	p := Panel{Name: name, Unit: unit}
	p.Max, p.Peak = scaleOf(lines)
	for _, l := range lines {
		to := Line{Name: l.name, Area: l.area, Values: make([][2]float64, 0, len(l.points)), Last: "–"}
		drawn := make([]byte, 0, 12*len(l.points)+24)
		var x float64
		for i, v := range l.points {
			before := seconds(now) - v.at
			x = chartWidth * (1 - before/span.Seconds())
			if i == 0 && l.area {
				drawn = appendPoint(drawn, x, panelHeight)
			}
			drawn = appendPoint(drawn, x, panelHeight-(panelHeight-4)*min(1, v.value/p.Max))
			to.Values = append(to.Values, [2]float64{round(before), round(v.value)})
		}
		if n := len(l.points); n > 0 {
			if l.area {
				drawn = appendPoint(drawn, x, panelHeight)
			}
			to.Last = l.text(l.points[n-1].value)
		}
		to.Points = string(drawn)
		p.Lines = append(p.Lines, to)
	}
	return p
}

// appendPoint appends a point of an SVG line. An open page draws some thousands of them every two
// seconds, which is most of what it costs.
func appendPoint(to []byte, x, y float64) []byte {
	if len(to) > 0 {
		to = append(to, ' ')
	}
	to = strconv.AppendFloat(to, x, 'f', 1, 64)
	to = append(to, ',')
	return strconv.AppendFloat(to, y, 'f', 1, 64)
}

type namedLine struct {
	name   string
	points []point
	area   bool
	text   func(float64) string
}

func round(v float64) float64 { return math.Round(v*100) / 100 }

const (
	// usual is the share of the values that a scale shows in any case.
	usual = 0.95
	// far is how far above the usual a peak has to be to be cut off: the first lists bring more than
	// hours of events do.
	far = 5
)

// scaleOf returns the top of the scale of lines, and their peak if it is above that, else 0.
func scaleOf(lines []namedLine) (top, peak float64) {
	var all []float64
	for _, l := range lines {
		for _, v := range l.points {
			if v.value > 0 {
				all = append(all, v.value)
			}
		}
	}
	if len(all) == 0 {
		return ceiling(0), 0
	}
	slices.Sort(all)
	highest, most := all[len(all)-1], all[int(usual*float64(len(all)-1))]
	if highest > far*most {
		return ceiling(most), highest
	}
	return ceiling(highest), 0
}

// ceiling is the next number that is easy to read.
func ceiling(v float64) float64 {
	if v <= 1 {
		return 1
	}
	scale := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 5, 10} {
		if v <= n*scale {
			return n * scale
		}
	}
	return v
}

// shedding is the timeline of events in against snapshots out.
func shedding(now time.Time, span time.Duration, in, away, out, changed []point) Chart {
	c := Chart{Title: "Events in, snapshots out", Span: span.Seconds()}
	c.Panels = []Panel{
		panel("in", "per second", now, span,
			namedLine{"events in", in, true, rateText}, namedLine{"coalesced away", away, false, rateText},
			namedLine{"objects changed in snapshots", changed, false, rateText}),
		panel("out", "per second", now, span, namedLine{"snapshots out", out, true, rateText}),
	}
	events, snapshots := mean(in), mean(out)
	switch {
	case len(in) == 0:
		c.Text = "There are no samples yet: they come every second while somebody looks."
	case events == 0:
		c.Text = "No events have come."
	case snapshots == 0:
		c.Text = fmt.Sprintf("On average %s events came in per second, and no snapshot went out.", few(events))
	default:
		c.Text = fmt.Sprintf("On average %s events came in per second, and %s snapshots went out: %s events for each. "+
			"What comes between two snapshots is coalesced, and nothing is lost.",
			few(events), few(snapshots), few(events/snapshots))
	}
	return c
}

// few is a number with few digits.
func few(v float64) string { return strings.TrimSuffix(rateText(v), "/s") }

func mean(line []point) (m float64) {
	for _, p := range line {
		m += p.value
	}
	return m / max(1, float64(len(line)))
}

// maxLines is how many streams a chart draws: those that are oldest.
const maxLines = 8

// staleness is the timeline of how long ago each stream has heard of the server.
func (p *Page) staleness(now time.Time, span time.Duration, rows []StreamRow) Chart {
	c := Chart{Title: "Staleness: time since the server last said anything", Span: span.Seconds()}
	var lines []namedLine
	for _, r := range rows {
		if line := p.history.line(streamSeries(r.ID, "stale"), span, now); len(line) > 0 {
			lines = append(lines, namedLine{nameOf(r.Stream), line, false, secondsText})
		}
	}
	slices.SortStableFunc(lines, func(a, b namedLine) int { return cmp.Compare(peak(b.points), peak(a.points)) })
	drawn := lines[:min(len(lines), maxLines)]
	c.Panels = []Panel{panel("age", "seconds", now, span, drawn...)}
	switch {
	case len(lines) == 0:
		c.Text = "There are no samples yet."
	default:
		c.Text = fmt.Sprintf("The oldest is %s, at %s now. A bookmark comes about every minute.",
			lines[0].name, secondsText(lines[0].points[len(lines[0].points)-1].value))
		if n := len(lines) - len(drawn); n > 0 {
			c.Text += fmt.Sprintf(" %s that were never older are not drawn.", count(n, "stream", "streams"))
		}
	}
	return c
}

func secondsText(v float64) string { return duration(time.Duration(v * float64(time.Second))) }

func peak(line []point) (top float64) {
	for _, p := range line {
		top = max(top, p.value)
	}
	return top
}

// summed adds lines whose samples are of the same moments, but for those that begin later.
func summed(lines [][]point) []point {
	at := map[float64]float64{}
	for _, line := range lines {
		for _, p := range line {
			at[p.at] += p.value
		}
	}
	var all []point
	for t, v := range at {
		all = append(all, point{t, v})
	}
	slices.SortFunc(all, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	return all
}
