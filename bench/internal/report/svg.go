package report

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// A Plot is a set of lines over an axis.
type Plot struct {
	File, Title, XLabel, YLabel string
	// LogX and LogY ask for logarithmic axes. These leave out values that are not above zero. A
	// linear axis starts at zero.
	LogX, LogY bool
	Series     []Series
}

// A Series is one line. Its points are in order of X.
type Series struct {
	Name   string
	Points []Point
}

// A Point is a point of a line.
type Point struct{ X, Y float64 }

const (
	plotWidth, plotHeight         = 860, 420
	left, right, top, bottom      = 80, 270, 40, 60
	innerWidth                    = plotWidth - left - right
	innerHeight                   = plotHeight - top - bottom
	labelStyle, titleStyle        = `font-size="12"`, `font-size="15" font-weight="bold"`
	gridColour, frameColour, text = "#dddddd", "#888888", "#222222"
)

// colours differ for colour-blind people, too (Okabe and Ito).
var colours = []string{"#d55e00", "#cc79a7", "#0072b2", "#56b4e9", "#009e73", "#e69f00", "#666666", "#000000"}

// SVG draws the plot. The same plot gives the same text.
func (p Plot) SVG() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" fill="%s">`+"\n", plotWidth, plotHeight, text)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", plotWidth, plotHeight)
	label(&b, left, top-16, "start", titleStyle, p.Title)
	label(&b, left+innerWidth/2, plotHeight-14, "middle", labelStyle, p.XLabel)
	fmt.Fprintf(&b, `<g transform="translate(18 %d) rotate(-90)">`, top+innerHeight/2)
	label(&b, 0, 0, "middle", labelStyle, p.YLabel)
	b.WriteString("</g>\n")

	x, y := p.axes()
	for _, v := range x.ticks() {
		at := left + innerWidth*x.place(v)
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="%s"/>`+"\n", at, top, top+innerHeight, gridColour)
		label(&b, at, top+innerHeight+18, "middle", labelStyle, tickText(v))
	}
	for _, v := range y.ticks() {
		at := top + innerHeight*(1-y.place(v))
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="%s"/>`+"\n", left, at, left+innerWidth, gridColour)
		label(&b, left-8, at+4, "end", labelStyle, tickText(v))
	}
	fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="%s"/>`+"\n", left, top, innerWidth, innerHeight, frameColour)
	for i, s := range p.Series {
		drawSeries(&b, s, i, x, y)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func drawSeries(b *strings.Builder, s Series, i int, x, y axis) {
	colour := colours[i%len(colours)]
	var path, dots strings.Builder
	command := "M"
	for _, q := range s.Points {
		if !x.has(q.X) || !y.has(q.Y) {
			continue
		}
		px, py := left+innerWidth*x.place(q.X), top+innerHeight*(1-y.place(q.Y))
		fmt.Fprintf(&path, "%s%.1f %.1f", command, px, py)
		fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`, px, py, colour)
		command = "L"
	}
	if path.Len() > 0 {
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>%s`+"\n", path.String(), colour, dots.String())
	}
	row := top + 14 + 20*i
	fmt.Fprintf(b, `<path d="M%d %dh18" stroke="%s" stroke-width="3"/>`, left+innerWidth+14, row-4, colour)
	label(b, left+innerWidth+40, float64(row), "start", labelStyle, s.Name)
}

func label(b *strings.Builder, x, y float64, anchor, style, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" %s>%s</text>`+"\n", x, y, anchor, style, html.EscapeString(s))
}

// axis maps values to 0…1.
type axis struct {
	least, most float64
	log         bool
}

// axes returns axes that contain all points.
func (p Plot) axes() (x, y axis) {
	x, y = axis{math.Inf(1), math.Inf(-1), p.LogX}, axis{math.Inf(1), math.Inf(-1), p.LogY}
	for _, s := range p.Series {
		for _, q := range s.Points {
			x.include(q.X)
			y.include(q.Y)
		}
	}
	return x.rounded(), y.rounded()
}

func (a axis) has(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.log || v > 0)
}

func (a *axis) include(v float64) {
	if a.has(v) {
		a.least, a.most = min(a.least, v), max(a.most, v)
	}
}

// rounded extends the axis to powers of ten, or to zero and a tick.
func (a axis) rounded() axis {
	if a.least > a.most { // no points
		a.least, a.most = 1, 10
	}
	if a.log {
		a.least = math.Pow(10, math.Floor(math.Log10(a.least)+1e-9))
		a.most = math.Pow(10, math.Ceil(math.Log10(a.most)-1e-9))
		if a.most <= a.least {
			a.most = a.least * 10
		}
		return a
	}
	a.least = min(a.least, 0)
	if a.most <= a.least {
		a.most = a.least + 1
	}
	step := a.step()
	a.most = math.Ceil(a.most/step-1e-9) * step
	a.least = math.Floor(a.least/step+1e-9) * step
	return a
}

func (a axis) place(v float64) float64 {
	if a.log {
		return math.Log10(v/a.least) / math.Log10(a.most/a.least)
	}
	return (v - a.least) / (a.most - a.least)
}

// step returns the distance of four to ten ticks: 1, 2 or 5 times a power of ten.
func (a axis) step() float64 {
	raw := (a.most - a.least) / 5
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if raw <= m*power*1.0001 {
			return m * power
		}
	}
	return 10 * power
}

func (a axis) ticks() (all []float64) {
	if a.log {
		for v := a.least; v <= a.most*1.0001; v *= 10 {
			all = append(all, v)
		}
		return all
	}
	step := a.step()
	for i := 0; a.least+float64(i)*step <= a.most+step/1000; i++ {
		all = append(all, a.least+float64(i)*step)
	}
	return all
}

func tickText(v float64) string {
	// Nine digits, because steps add up to 0.30000000000000004.
	return grouped(strconv.FormatFloat(math.Round(v*1e9)/1e9, 'f', -1, 64))
}

// grouped puts commas between the thousands of a decimal number.
func grouped(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	whole, fraction, found := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if found {
		whole += "." + fraction
	}
	return sign + whole
}
