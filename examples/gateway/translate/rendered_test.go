package translate

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// page is a rendered configuration, taken apart.
type page struct {
	servers map[place]*section // by port and host
	names   map[string]string  // what variables and named locations stand for
}

// section is a server. Names in its texts are replaced by what they stand for, when they are read.
type section struct {
	head      string            // its lines beside the locations
	locations map[string]string // by what stands behind the word location
	regexes   []string          // those of locations that are regular expressions, in their order
	whole     map[string]bool   // whose names are replaced
}

var renderOptions = nginx.RenderOptions{Dir: "/gateway", HTTP2On: true}

// rendered takes the text of a configuration apart.
func rendered(c *nginx.Config) *page {
	p := &page{servers: map[place]*section{}, names: map[string]string{}}
	lines := strings.Split(string(nginx.Render(c, renderOptions).Text), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		end := i
		for len(line) > 5 && line[:4] == "    " && line[4] != ' ' && strings.HasSuffix(line, "{") && lines[end] != "    }" {
			end++
		}
		switch word, name := line, line[:max(0, len(line)-2)]; {
		case end == i:
		case word == "    server {":
			p.server(lines[i+1 : end])
		default: // a variable
			name = name[strings.LastIndexByte(name, ' ')+1:]
			p.names[name] = strings.TrimSuffix(line, name+" {") + strings.Join(lines[i+1:end], "\n")
		}
		i = end
	}
	return p
}

// server adds a server. nginx.Server has the same order.
func (p *page) server(lines []string) {
	s, at := &section{locations: map[string]string{}, whole: map[string]bool{}}, place{}
	var head []string
	for i := 0; i < len(lines); i++ {
		line := strings.TrimPrefix(lines[i], "        ")
		what, is := strings.CutPrefix(line, "location ")
		if !is {
			head = append(head, line)
			if port, is := strings.CutPrefix(line, "listen "); is {
				at.address, _, _ = strings.Cut(strings.TrimSuffix(port, ";"), " ")
			}
			if host, is := strings.CutPrefix(line, "server_name "); is {
				at.host = strings.Trim(host, `";`)
			}
			continue
		}
		end := i
		for !strings.HasSuffix(lines[end], "}") || len(lines[end]) > 9 && lines[end][8] == ' ' {
			end++
		}
		what = what[:strings.LastIndex(what, " {")]
		text := strings.TrimPrefix(line, "location "+what) + strings.Join(lines[i+1:end+1], "\n")
		if what[0] == '@' {
			p.names[what] = text
		} else {
			s.locations[what] = text
		}
		if what[0] == '~' {
			s.regexes = append(s.regexes, what)
		}
		i = end
	}
	s.head = strings.Join(head, "\n")
	p.servers[at] = s
}

var numbered = regexp.MustCompile(`[$@][a-z]+[0-9]+`)

// replaced replaces names by what they stand for. The map of the connections of a port has all of
// its hosts.
func (p *page) replaced(text string) string {
	if !strings.ContainsAny(text, "$@") {
		return text
	}
	return numbered.ReplaceAllStringFunc(text, func(name string) string {
		if strings.HasPrefix(name, "$connection") {
			return "$connection"
		}
		of, known := p.names[name]
		if !known {
			return name
		}
		return "<" + p.replaced(of) + ">"
	})
}

var quotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// bounded is how a regular expression begins.
const bounded = "(*NO_AUTO_POSSESS)(*LIMIT_MATCH=5000)"

// text is that of the server and the location that answer requests for a path.
func (p *page) text(s *nginx.Server, path string) string {
	if s == nil {
		return ""
	}
	in := p.servers[place{fmt.Sprint(s.Port), s.Host}]
	head := "/"
	switch l := locationFor(s, path); {
	case l == nil || l.Match == nginx.Prefix && l.Path == "/":
	case l.Match == nginx.Regex:
		n := 0
		for i := range s.Locations {
			if &s.Locations[i] == l {
				break
			}
			if s.Locations[i].Match == nginx.Regex {
				n++
			}
		}
		head = in.regexes[n]
	case l.Match == nginx.Exact || path == l.Path:
		head = `= "` + quotes.Replace(l.Path) + `"`
	default:
		head = `"` + quotes.Replace(l.Path) + `/"`
	}
	if !in.whole[head] {
		in.whole[head] = true
		in.head, in.locations[head] = p.replaced(in.head), p.replaced(in.locations[head])
	}
	if in.locations[head] == "" {
		panic("the text has no location " + head)
	}
	label := head // without the prefixes that a regular expression leaves to others
	if i := strings.LastIndex(head, `(?:/|\\z))`); i >= 0 {
		label = `~ "` + bounded + "^" + head[i+len(`(?:/|\\z))`):]
	}
	return in.head + "\n" + label + in.locations[head]
}
