package nginx

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// routes has at least one location of each kind.
func routes(s *site) []Server {
	header := func(name, value string) Condition { return Condition{Kind: Header, Name: name, Value: value} }
	query := func(name, value string) Condition { return Condition{Kind: Query, Name: name, Value: value} }
	redirect := func(r Redirect) Rule { return Rule{MatchedPrefix: "/old", Redirect: &r} }
	prefix := func(of, to string) Rule {
		r := Rule{MatchedPrefix: of, Rewrite: &Rewrite{Path: &PathChange{To: to}}, Backends: []Backend{{Upstream: "rewritten", Weight: 1}}}
		return r
	}
	full := prefix("/full", "/new path?x=$host")
	full.Rewrite = &Rewrite{Host: "inner.example.com", Path: &PathChange{Full: true, To: "/new path?x=$host"}}
	return []Server{
		s.server("paths.example.com",
			at(Exact, "/exact", to("exact")), at(Exact, "/a b", to("space")),
			at(Prefix, "/pre/longer", to("longer")), at(Prefix, "/pre", to("prefix")), at(Prefix, "/", to("root")),
			at(Regex, `/img/.*\.(jpg|png)$`, to("regex"))),
		s.server("bare.example.com", at(Prefix, "/only", to("only"))),
		s.server("conditions.example.com",
			at(Prefix, "/", to("get-v2", Condition{Kind: Method, Value: "GET"}, header("X-Version", "2")),
				to("v2", header("x-version", "2")), to("vx", Condition{Kind: Header, Name: "X-Version", Value: "[0-9]+x", Regex: true}),
				to("q", query("a-b", "c d")), to("qr", Condition{Kind: Query, Name: "n", Value: "[0-9]+", Regex: true}),
				to("post", Condition{Kind: Method, Value: "POST"}))),
		s.server("*.wild.example.com", at(Prefix, "/", to("wild"))),
		s.server("answers.example.com", at(Prefix, "/gone", Rule{Status: 410}), at(Prefix, "/nothing", Rule{}),
			at(Prefix, "/nobody", to("")), at(Prefix, "/empty", to("empty"))),
		s.server("redirects.example.com",
			at(Prefix, "/old/host", redirect(Redirect{Status: 301, Host: "new.example.com"})),
			at(Prefix, "/old/https", redirect(Redirect{Status: 308, Scheme: "https"})),
			at(Prefix, "/old/port", redirect(Redirect{Status: 302, Port: 8443})),
			at(Prefix, "/old/full", redirect(Redirect{Status: 307, Path: &PathChange{Full: true, To: "/a b?$host"}})),
			at(Prefix, "/old", redirect(Redirect{Status: 303, Scheme: "http", Port: 80, Path: &PathChange{To: "/new/"}})),
			at(Prefix, "/drop", Rule{MatchedPrefix: "/drop", Redirect: &Redirect{Path: &PathChange{To: "/"}}})),
		s.server("rewrites.example.com", at(Prefix, "/from", prefix("/from", "/to")), at(Prefix, "/strip", prefix("/strip", "/")),
			at(Prefix, "/full", full)),
	}
}

func TestARequestGoesWhereItsHostPathAndConditionsSay(t *testing.T) {
	s := open(t, nil)
	c := s.config(routes(s)...)
	c.Upstreams["empty"] = nil
	s.apply(c)
	for _, request := range []struct {
		url     string
		status  int
		backend string // or location
		headers []string
	}{
		{"http://paths.example.com/exact", 200, "exact", nil},
		{"http://paths.example.com/exact/", 200, "root", nil},
		{"http://paths.example.com/exact?a=b", 200, "exact", nil},
		{"http://paths.example.com/a%20b", 200, "space", nil},
		{"http://paths.example.com/pre", 200, "prefix", nil},
		{"http://paths.example.com/pre/", 200, "prefix", nil},
		{"http://paths.example.com/pre/x", 200, "prefix", nil},
		{"http://paths.example.com/prefix", 200, "root", nil},
		{"http://paths.example.com/Pre", 200, "root", nil},
		{"http://paths.example.com/pre/longer/x", 200, "longer", nil},
		{"http://paths.example.com/pre/longerx", 200, "prefix", nil},
		{"http://paths.example.com/img/a.jpg", 200, "regex", nil},
		{"http://paths.example.com/img/a.JPG", 200, "root", nil},
		{"http://paths.example.com/x/img/a.jpg", 200, "root", nil},
		{"http://PATHS.example.com/exact", 200, "exact", nil},
		{"http://bare.example.com/", 404, "", nil},
		{"http://bare.example.com/only", 200, "only", nil},
		{"http://bare.example.com/onlyx", 404, "", nil},
		{"http://other.example.com/only", 404, "", nil},
		{"http://conditions.example.com/", 404, "", nil},
		{"http://conditions.example.com/", 200, "get-v2", []string{"x-VERSION", "2"}},
		{"http://conditions.example.com/", 200, "v2", []string{"X-Version", "2", "method", "PUT"}},
		{"http://conditions.example.com/", 200, "vx", []string{"X-Version", "17x"}},
		{"http://conditions.example.com/", 404, "", []string{"X-Version", "17X"}},
		{"http://conditions.example.com/", 404, "", []string{"X-Version", "22"}},
		{"http://conditions.example.com/?a-b=c+d", 200, "q", nil},
		{"http://conditions.example.com/?x=y&a-b=c%20d&z", 200, "q", nil},
		{"http://conditions.example.com/?a-b=c+dx", 404, "", nil},
		{"http://conditions.example.com/?xa-b=c+d", 404, "", nil},
		{"http://conditions.example.com/?n=12&n=a", 200, "qr", nil},
		{"http://conditions.example.com/?n=a&n=12", 404, "", nil},
		{"http://conditions.example.com/?n=1&a-b=c+d", 200, "q", nil},
		{"http://conditions.example.com/", 200, "post", []string{"method", "POST"}},
		{"http://x.wild.example.com/", 200, "wild", nil},
		{"http://x.y.wild.example.com/", 200, "wild", nil},
		{"http://wild.example.com/", 404, "", nil},
		{"http://answers.example.com/gone", 410, "", nil},
		{"http://answers.example.com/nothing", 500, "", nil},
		{"http://answers.example.com/nobody", 500, "", nil},
		{"http://answers.example.com/empty", 503, "", nil},
		{"http://redirects.example.com/old/host/x?a=b", 301, "http://new.example.com/old/host/x?a=b", nil},
		{"http://redirects.example.com/old/https", 308, "https://redirects.example.com/old/https", nil},
		{"http://redirects.example.com/old/port?x", 302, "http://redirects.example.com:8443/old/port?x", nil},
		{"http://redirects.example.com/old/full?q", 307, "http://redirects.example.com/a%20b%3F$host?q", nil},
		{"http://redirects.example.com/old/x%20y/%0aZ", 303, "http://redirects.example.com/new/x%20y/%0aZ", nil},
		{"http://redirects.example.com/%6fld//x", 303, "http://redirects.example.com/new//x", nil},
		{"http://redirects.example.com/old", 303, "http://redirects.example.com/new", nil},
		{"http://redirects.example.com/drop/x?q", 302, "http://redirects.example.com/x?q", nil},
		{"http://redirects.example.com/drop", 302, "http://redirects.example.com/", nil},
		{"http://redirects.example.com/x/../old/y", 400, "", nil},
	} {
		method := http.MethodGet
		if n := len(request.headers); n > 1 && request.headers[n-2] == "method" {
			method, request.headers = request.headers[n-1], request.headers[:n-2]
		}
		answer, err := s.ask(method, request.url, request.headers...)
		if !assert.NoError(t, err, request.url) {
			continue
		}
		assert.Equal(t, request.status, answer.StatusCode, "%s %s %v", method, request.url, request.headers)
		got := answer.Header.Get("X-Backend") + answer.Header.Get("Location")
		assert.Equal(t, request.backend, got, "%s %s %v", method, request.url, request.headers)
	}
}

func TestAnEndpointIsAskedForTheRewrittenPath(t *testing.T) {
	s := open(t, nil)
	s.apply(s.config(routes(s)...))
	for url, want := range map[string]string{
		"http://rewrites.example.com/from":          "/to",
		"http://rewrites.example.com/from/":         "/to/",
		"http://rewrites.example.com/from/x%20y?q":  "/to/x%20y?q",
		"http://rewrites.example.com/from/a%3Fb%0a": "/to/a%3Fb%0A",
		"http://rewrites.example.com/strip":         "/",
		"http://rewrites.example.com/strip/x?a=b":   "/x?a=b",
		"http://rewrites.example.com/full/x?a":      "/new%20path%3Fx=$host?a",
	} {
		assert.Equal(t, want, s.get(url).Header.Get("X-Uri"), url)
	}
	assert.Equal(t, "inner.example.com", s.get("http://rewrites.example.com/full").Header.Get("X-Host"))
	assert.Equal(t, "/a%20b//c?d=%41", s.get("http://paths.example.com/a%20b//c?d=%41").Header.Get("X-Uri"), "as it was sent")
}

func TestNamedGroupsOfAUserSetNoVariables(t *testing.T) {
	s := open(t, nil)
	rule := to("right", Condition{Kind: Header, Name: "X-To", Value: `(?P<upstream>\w+)`, Regex: true})
	s.apply(s.config(s.server("g.example.com", at(Regex, "/(?P<upstream>[a-z]+)", to("right")), at(Exact, "/", rule, to("wrong")))))
	assert.Equal(t, "right", s.get("http://g.example.com/wrong").Header.Get("X-Backend"))
	assert.Equal(t, "right", s.get("http://g.example.com/", "X-To", "wrong").Header.Get("X-Backend"))
	assert.NotContains(t, read(t, s.path("nginx.conf")), "<upstream>")
}

func TestAMissingHeaderMeetsNoCondition(t *testing.T) {
	s := open(t, nil)
	anything := func(kind ConditionKind) Condition {
		return Condition{Kind: kind, Name: "any", Value: ".*", Regex: true}
	}
	s.apply(s.config(s.server("m.example.com", at(Exact, "/h", to("up", anything(Header))), at(Exact, "/q", to("up", anything(Query))))))
	assert.Equal(t, 404, s.get("http://m.example.com/h").StatusCode)
	assert.Equal(t, 200, s.get("http://m.example.com/h", "Any", "thing").StatusCode)
	assert.Equal(t, 404, s.get("http://m.example.com/q").StatusCode)
	assert.Equal(t, 200, s.get("http://m.example.com/q?any=thing").StatusCode)
}

func TestARegularExpressionThatNginxCannotHaveIsAnError(t *testing.T) {
	for _, bad := range []string{"(", "a)|(b", "é", `\x{ffff}`, "(?=a)", `a{1001}`} {
		assert.Error(t, CheckRegex(bad), bad)
	}
	for _, good := range []string{"", "a|b", `\d+\.js$`, `(?i)x`, `(?P<name>a)`, `[^/]+`, `\Q"\E`} {
		assert.NoError(t, CheckRegex(good), good)
	}
}

// nginx takes the first line of a map alone. So conditions that may hold for the same value share
// no map.
func TestConditionsOnOneValueHideNoOther(t *testing.T) {
	s := open(t, nil)
	query := func(name, value string, more ...Condition) Rule {
		return to(name, append(more, Condition{Kind: Query, Name: "q", Value: value})...)
	}
	header := func(name, value string, more ...Condition) Rule {
		return to(name, append(more, Condition{Kind: Header, Name: "X-A", Value: value})...)
	}
	flag := Condition{Kind: Header, Name: "X-Flag", Value: "1"}
	s.apply(s.config(s.server("q.example.com", at(Prefix, "/",
		query("space", "a b", flag), query("plus", "a+b"), query("letter", "A", flag), query("percent", "%41"),
		query("one", "x/y", flag), query("two", "x//y"), query("nothing", ""),
		header("put", "v", Condition{Kind: Method, Value: "PUT"}), header("value", "v"), header("both", "w", Condition{Kind: Header, Name: "x-a", Value: "v"}),
		header("long", "vv"), to("rest")))))
	ask := func(method, path string, headers ...string) string {
		answer, err := s.ask(method, "http://q.example.com/"+path, headers...)
		require.NoError(t, err)
		return answer.Header.Get("X-Backend")
	}
	for query, want := range map[string][2]string{
		"a+b": {"space", "plus"}, "a%20b": {"space", "rest"}, "a%2Bb": {"plus", "plus"}, "A": {"letter", "rest"}, "%41": {"letter", "percent"},
		"x/y": {"one", "two"}, "x%2f/y": {"one", "two"}, "": {"rest", "rest"}, "a": {"rest", "rest"},
	} {
		assert.Equal(t, want[0], ask("GET", "?q="+query, "X-Flag", "1"), query)
		assert.Equal(t, want[1], ask("GET", "?q="+query), query)
	}
	assert.Equal(t, "put", ask("PUT", "", "X-A", "v"))
	assert.Equal(t, "value", ask("GET", "", "X-A", "v", "X-Flag", "1"))
	assert.Equal(t, "long", ask("GET", "", "X-A", "vv"))
	assert.Equal(t, "rest", ask("GET", "", "X-A", "w"))
	assert.Equal(t, "rest", ask("GET", "", "X-A", "vx", "X-Flag", "1"))
}
