package nginx

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// small is a configuration that a person can read.
func small() *Config {
	shop := func(kind, name string) Object { return Object{Kind: kind, Namespace: "shop", Name: name} }
	v2 := Rule{
		Source:         shop("HTTPRoute", "canary"),
		Conditions:     []Condition{{Kind: Header, Name: "X-Version", Value: "2"}, {Kind: Query, Name: "beta", Value: "y.s", Regex: true}},
		Backends:       []Backend{{Upstream: "shop/web-v2:80", Weight: 1}},
		RequestHeaders: HeaderChanges{Set: []HeaderValue{{"X-Canary", "costs $5"}}, Add: []HeaderValue{{"Via", "gateway"}}, Remove: []string{"Cookie"}},
		Timeout:        3 * time.Second,
	}
	web := Rule{Source: shop("Ingress", "web"), Backends: []Backend{
		{Upstream: "shop/web:80", Weight: 2}, {Upstream: "shop/web-v2:80", Weight: 1, ResponseHeaders: HeaderChanges{Set: []HeaderValue{{"X-Share", "third"}}}},
	}}
	api := Rule{Source: shop("Ingress", "api"), MatchedPrefix: "/api", Rewrite: &Rewrite{Path: &PathChange{To: "/v1"}}, Backends: []Backend{{Upstream: "shop/api:http", Weight: 1}}}
	old := Rule{Source: shop("HTTPRoute", "old"), MatchedPrefix: "/old", Redirect: &Redirect{Status: 301, Path: &PathChange{To: "/"}}}
	https := Rule{Source: shop("Ingress", "web"), Redirect: &Redirect{Status: 308, Scheme: "https"}}
	return &Config{
		Settings: Settings{Workers: 2, AccessLog: true, ProxyHeaders: true, RetryEndpoints: 2, KeepConnections: 16, DrainTimeout: 30 * time.Second, MaxBodyBytes: 1 << 20},
		Servers: []Server{
			{Port: 8080, Host: "shop.example.com", Source: shop("Ingress", "web"), Locations: []Location{{Path: "/", Match: Prefix, Rules: []Rule{https}}}},
			{Port: 8443, TLS: true, Host: "shop.example.com", Certificate: "shop/tls", Source: shop("Ingress", "web"), Locations: []Location{
				{Path: "/api", Match: Prefix, Rules: []Rule{api}}, {Path: "/old", Match: Prefix, Rules: []Rule{old}}, {Path: "/", Match: Prefix, Rules: []Rule{v2, web}},
			}},
			{Address: "::1", Port: 9090, Source: shop("Gateway", "all"), Locations: []Location{{Path: "/healthy", Match: Exact, Rules: []Rule{{Status: 204, Source: shop("HTTPRoute", "h")}}}}},
		},
		Upstreams:    map[string][]string{"shop/web:80": {"10.0.0.1:8080", "[fd00::1]:8080"}, "shop/web-v2:80": {"10.0.0.2:8080"}, "shop/api:http": nil},
		Certificates: map[string]Certificate{"shop/tls": {Source: shop("Secret", "tls"), Chain: []byte("chain"), Key: []byte("key")}},
	}
}

func TestRenderedConfigurationsAreThoseOfTheGoldenFiles(t *testing.T) {
	for name, o := range map[string]RenderOptions{
		"lua":    {Dir: "/run/gateway", Lua: true, Modules: []string{"/usr/lib/nginx/modules/ngx_http_lua_module.so"}, User: "nobody nogroup", ErrorLog: "/run/gateway/error.log"},
		"static": {Dir: "/run/gateway", IPv6: true, HTTP2On: true, ErrorLog: "stderr"},
	} {
		r := Render(small(), o)
		assert.Equal(t, r, Render(small(), o), "the same again")
		assert.Equal(t, r.Hash, hashOf(r.Text))
		path := "testdata/" + name + ".conf"
		if *update {
			require.NoError(t, os.WriteFile(path, r.Text, 0o644))
		}
		assert.Equal(t, read(t, path), string(r.Text), "go test -run Golden ./nginx -update writes it anew")
	}
}

func TestEachLineOfAnObjectNamesIt(t *testing.T) {
	r := Render(small(), RenderOptions{Dir: "/run/gateway", Lua: true})
	lines := strings.Split(string(r.Text), "\n")
	of := map[string]string{}
	for _, s := range r.Spans {
		for i := s.First; i <= s.Last; i++ {
			of[strings.TrimSpace(lines[i-1])] = s.Source.String()
		}
	}
	assert.Equal(t, "HTTPRoute shop/canary", of[`proxy_set_header "X-Canary" "costs ${dollar}5";`])
	assert.Equal(t, "HTTPRoute shop/canary", of[`"" "gateway";`], "a map of its rule")
	assert.Equal(t, "Ingress shop/api", of[`set $path "/v1";`])
	assert.Equal(t, "Ingress shop/web", of[`server_name "shop.example.com";`])
	certificate := small().Certificates["shop/tls"]
	assert.Equal(t, "Secret shop/tls", of[fmt.Sprintf("ssl_certificate %q;", certificate.file())])
}

// every returns a configuration with a text in every field that objects have a say in.
func every(text, host, header, pattern string) *Config {
	o := Object{Kind: "Ingress", Namespace: "n" + text, Name: "o" + text}
	changes := func(p string) HeaderChanges {
		return HeaderChanges{Set: []HeaderValue{{"X-Set" + header, p + text}}, Add: []HeaderValue{{"X-Add" + header, p + text}, {"X-Set" + header, text}}, Remove: []string{"X-Rem" + header}}
	}
	proxy := Rule{
		Source: o, MatchedPrefix: "/m" + text,
		Conditions: []Condition{
			{Kind: Header, Name: "X-C" + header, Value: "c" + text}, {Kind: Query, Name: "q" + text, Value: "v" + text}, {Kind: Method, Value: "m" + text},
			{Kind: Header, Name: "X-R" + header, Value: pattern, Regex: true}, {Kind: Query, Name: "r" + text, Value: pattern, Regex: true},
		},
		Backends: []Backend{{Upstream: "a" + text, Weight: 1, RequestHeaders: changes("b"), ResponseHeaders: changes("b")}, {Upstream: "b" + text, Weight: 2}},
		Rewrite:  &Rewrite{Host: "h" + text, Path: &PathChange{To: "/t" + text}}, RequestHeaders: changes("r"), ResponseHeaders: changes("r"),
	}
	full := Rule{Source: o, Rewrite: &Rewrite{Path: &PathChange{Full: true, To: "f" + text}}, Backends: []Backend{{Upstream: "a" + text, Weight: 1}}}
	redirect := func(c *PathChange) Rule {
		return Rule{Source: o, MatchedPrefix: "/p" + text, Redirect: &Redirect{Scheme: "s" + text, Host: "h" + text, Path: c}, ResponseHeaders: changes("x")}
	}
	locations := []Location{
		at(Exact, "/e"+text, proxy), at(Prefix, "/p"+text+"p", redirect(&PathChange{To: "/t" + text})),
		at(Exact, "/f"+text, full), at(Exact, "/r"+text, redirect(&PathChange{Full: true, To: "/t" + text})), at(Regex, pattern, full),
	}
	return &Config{
		Settings: Settings{ProxyHeaders: true},
		Servers: []Server{
			{Address: text, Port: 80, Host: "sure.example.com", Source: o, Locations: locations},
			{Address: text, Port: 81, Host: host, Listener: host, Source: o, TLS: true, Certificate: "c" + text, Locations: []Location{at(Exact, text, full)}},
		},
		Upstreams:    map[string][]string{"a" + text: {"x" + text, "10.0.0.1:80"}, "b" + text: {"10.0.0.2:80", "x" + text + ":80"}},
		Certificates: map[string]Certificate{"c" + text: {Source: o, Chain: []byte(text), Key: []byte(text)}},
	}
}

// harmless replaces each text by a plain one for which Render does the same.
func harmless(text, host, header, pattern string) *Config {
	plain := "x"
	if strings.HasPrefix(text, "/") {
		plain = "/x" // the path of a location is one only with a slash
	}
	if isHost(host) {
		host = "h.example.com"
	} else if host != "" && host != "*" {
		host = "_"
	}
	switch {
	case plainName.MatchString("X" + header):
		header = "x"
	case headerName.MatchString("X" + header):
		header = "."
	default:
		header = " "
	}
	if CheckRegex(pattern) == nil {
		pattern = "x"
	} else {
		pattern = "("
	}
	return every(plain, host, header, pattern)
}

var hostile = []string{
	"x", "", "/", nasty, `"`, `\`, `\"`, `"; return 200; #`, "\n}\nserver {", "a\x00b", "$", "${", "${dollar}", "}", "é\xff", "~", "~*.*", "= /", "@none", "default",
	"';", "/../x", "%0a", "%", "%2", "?", "a?b#c", "#", "$1$2", "include /etc/passwd", "include", "hostnames", "volatile", "unix:/tmp/x", "[::1]", "::1", "127.0.0.1", "1.2.3.4:80", "-x", "//",
}

var patterns = []string{"", ".*", "(?P<host>a)", "(?<dollar>a)", "a)|(b", `"; }`, `\Q"\E`, `[\"]`, "(?i)é", `\x{ffff}`, "(", `a{1001}`, `\d+\.js$`, "\n", `[^\x00]`}

func FuzzNoTextChangesTheStructure(f *testing.F) {
	for i, text := range hostile {
		f.Add(text, hostile[(i+1)%len(hostile)], hostile[(i+2)%len(hostile)], patterns[i%len(patterns)])
		f.Add(text, "h.example.com", "-Name", text)
	}
	f.Fuzz(func(t *testing.T, text, host, header, pattern string) {
		for _, lua := range []bool{true, false} {
			o := RenderOptions{Dir: "/run/gateway", Lua: lua, ErrorLog: "stderr"}
			want, err := structure(Render(harmless(text, host, header, pattern), o).Text)
			require.NoError(t, err)
			r := Render(every(text, host, header, pattern), o)
			got, err := structure(r.Text)
			require.NoError(t, err, "%s", r.Text)
			if assert.Equal(t, want, got) {
				continue
			}
			t.Logf("%s", r.Text)
		}
	})
}

func TestNginxTakesEveryText(t *testing.T) {
	s := open(t, nil)
	for i, text := range hostile {
		c := every(text, "h.example.com", "-Name", patterns[i%len(patterns)])
		for j := range c.Servers {
			c.Servers[j].TLS = false
			c.Servers[j].Address, c.Servers[j].Port = "127.0.0.1", s.plain
		}
		for _, lua := range []bool{true, false} {
			s.render.Lua = lua
			r := Render(c, s.render)
			message, err := s.check(t.Context(), r.Text)
			require.NoError(t, err)
			assert.Empty(t, message, "%q: %s", text, r.Text)
		}
	}
}

// structure reads a configuration as nginx does, and returns its directives with the number of
// their parameters, and its blocks.
func structure(text []byte) ([]string, error) {
	var all, open []string
	words := 0
	var first string
	for len(text) > 0 {
		switch b := text[0]; {
		case bytes.IndexByte([]byte(" \t\r\n"), b) >= 0:
			text = text[1:]
		case b == '#':
			_, text, _ = bytes.Cut(text, []byte("\n"))
		case b == ';' || b == '{':
			entry := len(open) > 0 && strings.Contains("map geo split_clients", open[len(open)-1])
			if entry {
				first = entryOf(first)
			}
			all = append(all, fmt.Sprintf("%s %d %c", first, words, b))
			if text, words = text[1:], 0; b == '{' {
				if open = append(open, first); strings.HasSuffix(first, "_by_lua_block") {
					_, text, _ = bytes.Cut(text, []byte("}"))
					open = open[:len(open)-1]
				}
			}
		case b == '}':
			if len(open) == 0 || words > 0 {
				return nil, fmt.Errorf("a brace too many before %.60q", text)
			}
			all, open, text = append(all, "}"), open[:len(open)-1], text[1:]
		default:
			word, rest, err := token(text)
			if err != nil {
				return nil, err
			}
			if words == 0 {
				first = word
			}
			words, text = words+1, rest
		}
	}
	if len(open) > 0 || words > 0 {
		return nil, fmt.Errorf("the text ends within %v", open)
	}
	return all, nil
}

// entryOf is what nginx reads in a map: a word of its own, a regular expression, or a text.
func entryOf(first string) string {
	switch {
	case slices.Contains([]string{"default", "hostnames", "include", "volatile"}, first):
		return first
	case strings.HasPrefix(first, "~"):
		return "regular expression"
	}
	return "text"
}

// token reads one word, which may be quoted.
func token(text []byte) (word string, rest []byte, err error) {
	end := func(i int) bool { return bytes.IndexByte([]byte(" \t\r\n;{"), text[i]) >= 0 }
	quoted := text[0] == '"' || text[0] == '\''
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case quoted && text[i] == text[0]:
			if i+1 < len(text) && text[i+1] == ')' { // of an if
				return string(text[1:i]), text[i+2:], nil
			}
			if i+1 >= len(text) || !end(i+1) {
				return "", nil, fmt.Errorf("after a quote there is %.60q", text[i:])
			}
			return string(text[1:i]), text[i+1:], nil
		case !quoted && end(i):
			return string(text[:i]), text[i:], nil
		}
	}
	return "", nil, fmt.Errorf("a word does not end: %.60q", text)
}
