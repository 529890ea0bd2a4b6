package conformance

import (
	"bufio"
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed testdata
var testdata embed.FS

// Case is a script.
type Case struct {
	Topic, Name string
	// Alone says that the case compacts the storage, so that no other can run.
	Alone bool

	lets  map[string]string
	rules rules
	steps []step
	text  string
	// lenient: a reference to what an answer does not have is no mistake in the script.
	lenient bool
}

// ID is the case's name among all cases.
func (c Case) ID() string { return c.Topic + "/" + c.Name }

// rules say what of an answer is compared.
type rules struct {
	ignore, only []string
	messages     bool
}

// step is a line of a script, with its body.
type step struct {
	line string // as written
	save string // the name of its answer
	verb string
	// target is a path, or the arguments of a verb of watches.
	target    string
	modifiers []string
	body      []string
}

// Cases returns all cases, by topic, in the order in which they were written.
func Cases() ([]Case, error) {
	files, err := testdata.ReadDir("testdata")
	if err != nil {
		return nil, err
	}
	var all []Case
	for _, f := range files {
		topic, is := strings.CutSuffix(f.Name(), ".case")
		if !is {
			continue
		}
		text, err := testdata.ReadFile(path.Join("testdata", f.Name()))
		if err != nil {
			return nil, err
		}
		cases, err := parse(topic, string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		all = append(all, cases...)
	}
	return all, nil
}

// parser reads the cases of a topic.
type parser struct {
	topic string
	lets  map[string]string
	rules rules
	cases []Case
	names map[string]bool
}

func parse(topic, text string) ([]Case, error) {
	p := &parser{topic: topic, lets: map[string]string{}, names: map[string]bool{}}
	lines := bufio.NewScanner(strings.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		if err := p.line(lines.Text()); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return p.cases, lines.Err()
}

func (p *parser) line(line string) error {
	line = strings.TrimRight(line, " ")
	name, begins := strings.CutPrefix(line, "=== ")
	switch {
	case line == "" || strings.HasPrefix(line, "#"):
		return nil
	case begins:
		if p.names[name] {
			return fmt.Errorf("a second case %q", name)
		}
		p.names[name] = true
		r := rules{slices.Clone(p.rules.ignore), slices.Clone(p.rules.only), p.rules.messages}
		p.cases = append(p.cases, Case{Topic: p.topic, Name: name, lets: p.lets, rules: r})
		return nil
	case strings.HasPrefix(line, "let "):
		return p.let(line)
	}
	return p.inCase(line)
}

func (p *parser) let(line string) error {
	name, text, is := strings.Cut(strings.TrimPrefix(line, "let "), " = ")
	if !is || p.lets[name] != "" || len(p.cases) > 0 {
		return fmt.Errorf("not a new name before the first case: %s", line)
	}
	p.lets[name] = text
	return nil
}

// inCase reads a line of a case, or one that says something for all of them.
func (p *parser) inCase(line string) error {
	r := &p.rules
	var c *Case
	if len(p.cases) > 0 {
		c = &p.cases[len(p.cases)-1]
		r = &c.rules
		c.text += line + "\n"
	}
	switch word, rest, _ := strings.Cut(line, " "); {
	case word == "ignore:":
		r.ignore = append(r.ignore, strings.Fields(rest)...)
	case word == "only:":
		r.only = append(r.only, strings.Fields(rest)...)
	case line == "messages":
		r.messages = true
	case c == nil:
		return fmt.Errorf("not in a case: %s", line)
	case line == "alone":
		c.Alone = true
	case strings.HasPrefix(line, "  ") && len(c.steps) > 0:
		last := &c.steps[len(c.steps)-1]
		last.body = append(last.body, line[2:])
	default:
		s, err := parseStep(line)
		c.steps = append(c.steps, s)
		return err
	}
	return nil
}

var (
	saved = regexp.MustCompile(`^([a-z]\w*) = (.*)$`)
	verbs = []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "MERGE", "JSON", "STRATEGIC", "APPLY",
		"WATCH", "NEXT", "UNTIL", "BOOKMARK", "END", "CLOSE", "COMPACT"}
)

func parseStep(line string) (step, error) {
	s := step{line: line}
	if m := saved.FindStringSubmatch(line); m != nil {
		s.save, line = m[1], m[2]
	}
	parts := strings.Split(line, " | ")
	s.verb, s.target, _ = strings.Cut(parts[0], " ")
	s.modifiers = parts[1:]
	if !slices.Contains(verbs, s.verb) {
		return s, fmt.Errorf("unknown verb: %s", line)
	}
	return s, nil
}

// has says whether the step has a modifier of one word.
func (s *step) has(modifier string) bool { return slices.Contains(s.modifiers, modifier) }

// after returns the words of the modifier that begins with a word.
func (s *step) after(word string) []string {
	for _, m := range s.modifiers {
		if rest, is := strings.CutPrefix(m, word+" "); is {
			return strings.Fields(rest)
		}
	}
	return nil
}
