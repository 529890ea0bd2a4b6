package nginx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests attack the time that nginx has for others.

// The answers say that nginx gives up. PCRE does so by itself, too, but some 2,000 times later.
func TestNoRegularExpressionTakesNginxLong(t *testing.T) {
	s := open(t, nil)
	var servers []Server
	slow := []string{
		"/(a+)+(a+)+$", "/(a|a)*$", "/(a|aa)+$", "/.*.*.*.*.*.*[0-9]", "/(?:a*)*[0-9]", "/([a-z]+)*[0-9]", "/(.*[a-z])*[0-9]", "/a{0,9}a{0,9}a{0,9}a{0,9}a{0,9}[0-9]",
		"/.*a[a-z]*[0-9]", // without counting where PCRE knows not to go back
		"/(?:a|b|aa)*?[0-9]",
	}
	header := func(i int, pattern string) Rule {
		return to("header", Condition{Kind: Header, Name: "X-Slow", Value: strings.TrimPrefix(pattern, "/"), Regex: true}, Condition{Kind: Query, Name: "n", Value: fmt.Sprint(i)})
	}
	var headers []Rule
	for i, pattern := range slow {
		require.NoError(t, CheckRegex(pattern))
		servers = append(servers, s.server(fmt.Sprintf("slow%d.example.com", i), at(Regex, pattern, to("slow"))))
		headers = append(headers, header(i, pattern))
	}
	servers = append(servers, s.server("headers.example.com", at(Prefix, "/", append(headers, to("rest"))...)))
	out := s.apply(s.config(servers...))
	require.True(t, out.Active, "%v", out.Refused)
	text := strings.Repeat("a", 4000) + "!"
	for i, pattern := range slow {
		assert.Equal(t, 500, s.get(fmt.Sprintf("http://slow%d.example.com/%s", i, text)).StatusCode, pattern)
		answer := s.get(fmt.Sprintf("http://headers.example.com/?n=%d", i), "X-Slow", text[:1500]+"!") // the endpoint sends it back
		assert.Equal(t, "rest", answer.Header.Get("X-Backend"), "%s: %s", answer.Status, pattern)
	}
	assert.GreaterOrEqual(t, strings.Count(read(t, s.path("error.log")), "failed: -47"), 2*len(slow), "each one was given up")
	assert.Contains(t, read(t, s.path("nginx.conf")), "\npcre_jit off;")
}

func TestALongRegularExpressionIsAnError(t *testing.T) {
	for _, long := range []string{"/" + strings.Repeat("a", mostInstructions), "/.*[a-z]{500}", "/(?:(?:a{10}){10}){10}", "(?:" + strings.Repeat("a", 100) + "){1000}"} {
		assert.ErrorContains(t, CheckRegex(long), "at most 256 instructions", long)
	}
	assert.NoError(t, CheckRegex("/"+strings.Repeat("a", mostInstructions-10)))
}

// A prefix is no regular expression of a user. It becomes one in a redirect.
func TestAPrefixOfSlashesTakesNginxNotLong(t *testing.T) {
	s := open(t, nil)
	rule := Rule{MatchedPrefix: "/a" + strings.Repeat("/", 60) + "b", Redirect: &Redirect{Path: &PathChange{To: "/"}}}
	query := to("up", Condition{Kind: Query, Name: strings.Repeat("/", 60) + "n", Value: strings.Repeat("/", 60)})
	out := s.apply(s.config(s.server("s.example.com", at(Exact, "/x", rule), at(Prefix, "/", query, to("rest")))))
	require.True(t, out.Active, "%v", out.Refused)
	assert.Equal(t, 400, s.get("http://s.example.com/y/../x?"+strings.Repeat("/", 4000)).StatusCode)
	assert.Equal(t, 400, s.get("http://s.example.com/a"+strings.Repeat("/", 4000)+"../x").StatusCode)
	assert.Equal(t, "rest", s.get("http://s.example.com/?"+strings.Repeat("/", 1500)+"m="+strings.Repeat("/", 1500)).Header.Get("X-Backend"))
	assert.NotContains(t, read(t, s.path("error.log")), "failed: -47", "PCRE gives up by itself, but late")
}
