package nginx

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Refusal says that nginx refuses a configuration because of an object.
type Refusal struct {
	Object  Object
	Message string // of nginx
}

// Hold says that nginx refuses more objects of a namespace than one Apply looks for.
type Hold struct {
	Namespace string
	Message   string // of nginx, about one of them
}

// verdict is what nginx has against a configuration.
type verdict struct {
	refused []Refusal
	held    []Hold
	rest    string // what it has against the configuration without these; empty if nothing
}

const (
	// most is how many objects one Apply finds at fault. If there are more, the next one finds them.
	most = 20
	// few is how many runs of nginx one Apply spends to find those of one namespace.
	few = 3
)

// blame finds the objects at fault, and why nginx refuses each: first the one that its message
// leads to, then, without that one, the next, until nginx takes the rest, or a number is found.
// nginx names one at a time. A namespace that takes more than a few runs is left out as a whole.
func (n *Nginx) blame(ctx context.Context, c *Config, message string, enough int) (v verdict, err error) {
	out, runs := map[Object]bool{}, map[string]int{} // by namespace
	for v.rest = message; v.rest != "" && len(v.refused) < enough; {
		rest, before := without(c, out), n.Stats().Checks
		culprit, ok := suspect(rest, Render(rest, n.render), v.rest)
		if !ok {
			if culprit, v.rest, err = n.bisect(ctx, rest, v.rest); err != nil {
				return v, err
			}
		}
		said := strings.TrimSpace(atLine.ReplaceAllString(v.rest, ""))
		v.refused = append(v.refused, Refusal{Object: culprit, Message: said})
		out[culprit] = true
		if at := culprit.Namespace; at != "" && runs[at] >= few {
			v.held = append(v.held, Hold{Namespace: at, Message: said})
			for _, o := range sources(c) {
				out[o] = out[o] || o.Namespace == at
			}
		}
		if v.rest, err = n.check(ctx, Render(without(c, out), n.render).Text); err != nil {
			return v, err
		}
		runs[culprit.Namespace] += n.Stats().Checks - before
	}
	return v, nil
}

var (
	atLine        = regexp.MustCompile(`(?:in|started in) \S*candidate\.conf:(\d+)$`)
	atCertificate = regexp.MustCompile(`certificates/[0-9a-f]+\.pem`)
)

// suspect returns the object that nginx' message leads to: by the line at its end, or by the
// certificate if there is no line. The rest of a message with a line may be text of an object.
func suspect(c *Config, r Rendering, message string) (Object, bool) {
	if at := atLine.FindStringSubmatch(message); at != nil {
		line, _ := strconv.Atoi(at[1])
		for _, s := range r.Spans {
			if s.First <= line && line <= s.Last {
				return s.Source, true
			}
		}
		return Object{}, false
	}
	if file := atCertificate.FindString(message); file != "" {
		for _, id := range sortedKeys(c.Certificates) {
			if one := c.Certificates[id]; one.file() == file {
				return one.Source, one.Source != Object{}
			}
		}
	}
	return Object{}, false
}

// bisect finds, by halving, one object whose addition makes nginx refuse what it takes without it.
// It returns what nginx says then, too.
func (n *Nginx) bisect(ctx context.Context, c *Config, message string) (Object, string, error) {
	all := sources(c)
	refuses := func(first int) (string, error) {
		out := map[Object]bool{}
		for _, o := range all[first:] {
			out[o] = true
		}
		return n.check(ctx, Render(without(c, out), n.render).Text)
	}
	nobody, err := refuses(0)
	if err != nil {
		return Object{}, "", err
	}
	if nobody != "" {
		return Object{}, "", fmt.Errorf("nginx refuses the configuration, and no object is at fault: %s", message)
	}
	// The first low objects are taken, the first high ones are not.
	low, high := 0, len(all)
	for high-low > 1 {
		middle := (low + high) / 2
		said, err := refuses(middle)
		if err != nil {
			return Object{}, "", err
		}
		if said == "" {
			low = middle
		} else {
			high, message = middle, said
		}
	}
	if high == 0 {
		return Object{}, "", errors.New("nginx refuses a configuration that it takes a moment later: " + message)
	}
	return all[high-1], message, nil
}

// sources returns all objects that a configuration comes from. Each one is after those without
// which it has no effect.
func sources(c *Config) (all []Object) {
	seen := map[Object]bool{{}: true}
	add := func(o Object) {
		if !seen[o] {
			seen[o] = true
			all = append(all, o)
		}
	}
	for _, s := range c.Servers {
		add(s.Source)
		for _, l := range s.Locations {
			for _, r := range l.Rules {
				add(r.Source)
			}
		}
	}
	for _, id := range sortedKeys(c.Certificates) { // after the servers: nobody reads them before
		add(c.Certificates[id].Source)
	}
	return all
}

// without returns the configuration without what comes from some objects.
func without(c *Config, out map[Object]bool) *Config {
	if len(out) == 0 {
		return c
	}
	rest := *c
	rest.Servers, rest.Certificates = nil, map[string]Certificate{}
	for id, one := range c.Certificates {
		if !out[one.Source] {
			rest.Certificates[id] = one
		}
	}
	for _, s := range c.Servers {
		if out[s.Source] {
			continue
		}
		locations := s.Locations
		s.Locations = nil
		for _, l := range locations {
			had := len(l.Rules)
			l.Rules = slices.DeleteFunc(slices.Clone(l.Rules), func(r Rule) bool { return out[r.Source] })
			if had == 0 || len(l.Rules) > 0 { // else its path, too, was theirs
				s.Locations = append(s.Locations, l)
			}
		}
		rest.Servers = append(rest.Servers, s)
	}
	return &rest
}

// names lists the objects of refusals.
func names(refused []Refusal) string {
	var all []string
	for _, r := range refused {
		all = append(all, r.Object.String())
	}
	return strings.Join(all, ", ")
}
