package nginx

import (
	"fmt"
	"maps"
	"slices"
)

// targets returns where requests for these rules go: a name, or a variable that has it.
func (l *locations) targets(rules []Rule) string {
	var picks []string
	otherwise := "@none"
	for _, rule := range rules {
		target := l.target(rule)
		if len(rule.Conditions) == 0 {
			otherwise = target
			break
		}
		if pick, possible := l.pick(rule, target); possible {
			picks = append(picks, pick)
		}
	}
	l.none = l.none || otherwise == "@none"
	if len(picks) == 0 {
		return otherwise
	}
	return l.first(picks, otherwise)
}

// pick returns a text that first reads: the conditions of a rule, and its target. It reports
// whether they can all hold.
func (l *locations) pick(rule Rule, target string) (string, bool) {
	text := ";"
	for _, c := range rule.Conditions {
		equal, possible := l.condition(rule.Source, c)
		if !possible {
			return "", false
		}
		text += "," + equal
	}
	return text + target, true
}

// mostOfPicks bounds a line of first. nginx takes lines up to 4096 bytes.
const mostOfPicks = 2000

// first returns a variable with the target of the first pick whose conditions all hold. Rules of
// many objects come together here, so no line has text of an object, and none is longer for more
// rules: else one object could make nginx refuse the line of another.
func (l *locations) first(picks []string, otherwise string) string {
	var lines []string
	for _, pick := range picks {
		if n := len(lines); n > 0 && len(lines[n-1])+len(pick) <= mostOfPicks {
			lines[n-1] += pick
		} else {
			lines = append(lines, pick)
		}
	}
	if len(lines) > 1 {
		for i := range lines {
			lines[i] = ";" + l.first(lines[i:i+1], "")
		}
		return l.first(lines, otherwise)
	}
	return "$" + l.variable("rule", Object{}, `map "`+lines[0]+`"`,
		fmt.Sprintf("default %q;", otherwise), `"~;(?:,([0-9]+)=\\1)*(?<first_target>@r[0-9]+)" $first_target;`)
}

// choice is a map that numbers the texts of the exact conditions on one value. Maps are costly, and
// lines are not. A choice is of one server and one namespace: requests for others do not wait for
// its lines.
type choice struct {
	name    string
	numbers map[string]int // by regular expression
	lines   writer         // each of the first object that has the text
}

// number returns the variable of a choice, and the number of a text.
func (l *locations) number(source Object, value, pattern string) (string, int) {
	key := source.Namespace + " " + value
	c := l.choices[key]
	if c == nil {
		c = &choice{name: fmt.Sprintf("choice%d", len(l.names)+1), numbers: map[string]int{}}
		l.names[c.name], l.choices[key] = c.name, c
		c.lines.depth = 1
		c.lines.of(source, func() { c.lines.line("map %s $%s {", value, c.name) })
		c.lines.depth++
		c.lines.line("default 0;")
	}
	n, ok := c.numbers[pattern]
	if !ok {
		n = len(c.numbers) + 1
		c.numbers[pattern] = n
		c.lines.of(source, func() { c.lines.line("%s %d;", fixed("~"+pattern), n) })
	}
	return c.name, n
}

// writeChoices writes the maps of a server.
func (l *locations) writeChoices() {
	for _, key := range slices.Sorted(maps.Keys(l.choices)) {
		c := l.choices[key]
		c.lines.depth = 1
		c.lines.line("}")
		l.maps.append(&c.lines)
	}
}
