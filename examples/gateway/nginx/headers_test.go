package nginx

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

// nasty is a text that would do something if it were not quoted.
const nasty = `$host;}"\ ' #{` + "\t" + `$1 ${dollar} \n`

// literally is what arrives of it.
const literally = `$host;}"\ ' #{ $1 ${dollar} \n`

func TestHeadersAreRemovedSetAndAddedInThisOrder(t *testing.T) {
	s := open(t, nil)
	rule := to("changed")
	rule.RequestHeaders = HeaderChanges{
		Set:    []HeaderValue{{"X-Set", nasty}, {"x-twice", "1"}, {"X-Empty", ""}, {"Host", "other.example.com"}},
		Add:    []HeaderValue{{"X-Added", "more"}, {"X-Added", "and more"}, {"X-New", nasty}, {"X-Forwarded-For", "10.9.9.9"}},
		Remove: []string{"X-Removed", "User-Agent"},
	}
	rule.ResponseHeaders = HeaderChanges{
		Set: []HeaderValue{{"X-From-Backend", nasty}}, Add: []HeaderValue{{"X-Uri", "more"}, {"X-Own", "1"}}, Remove: []string{"X-Host"},
	}
	rule.Backends[0].RequestHeaders = HeaderChanges{Set: []HeaderValue{{"X-Twice", "2"}}, Add: []HeaderValue{{"X-Set", "backend"}}}
	rule.Backends[0].ResponseHeaders = HeaderChanges{Set: []HeaderValue{{"X-Own", "2"}}}
	answers := Rule{Status: 403, ResponseHeaders: HeaderChanges{Set: []HeaderValue{{"X-Own", nasty}}}}
	s.apply(s.config(s.server("h.example.com", at(Prefix, "/", rule), at(Exact, "/403", answers), at(Exact, "/plain", to("plain")))))

	got := s.get("http://h.example.com/", "X-Set", "client", "X-Twice", "client", "X-Added", "client", "X-Removed", "client", "X-Other", "kept").Header
	assert.Equal(t, literally+",backend", got.Get("Got-X-Set"))
	assert.Equal(t, "2", got.Get("Got-X-Twice"))
	assert.Equal(t, "client,more,and more", got.Get("Got-X-Added"))
	assert.Equal(t, literally, got.Get("Got-X-New"))
	assert.Equal(t, "kept", got.Get("Got-X-Other"))
	assert.Equal(t, "127.0.0.1,10.9.9.9", got.Get("Got-X-Forwarded-For"))
	assert.Empty(t, got.Values("Got-X-Removed"))
	assert.Empty(t, got.Values("Got-User-Agent"))
	assert.Equal(t, []string{literally}, got.Values("X-From-Backend"))
	assert.Equal(t, []string{"/", "more"}, got.Values("X-Uri"))
	assert.Equal(t, []string{"2"}, got.Values("X-Own"))
	assert.Empty(t, got.Values("X-Host"))
	assert.Equal(t, "more,and more", s.get("http://h.example.com/").Header.Get("Got-X-Added"), "the client has none")
	assert.Equal(t, literally, s.get("http://h.example.com/403").Header.Get("X-Own"))

	got = s.get("http://h.example.com/plain").Header
	assert.Equal(t, "h.example.com", got.Get("X-Host"), "as the client has sent it")
	assert.Equal(t, "127.0.0.1", got.Get("Got-X-Real-Ip"))
	assert.Equal(t, "h.example.com", got.Get("Got-X-Forwarded-Host"))
	assert.Equal(t, "http", got.Get("Got-X-Forwarded-Proto"))
}

func TestHeadersOfTheConnectionAreNotChanged(t *testing.T) {
	s := open(t, nil)
	rule := to("b")
	rule.RequestHeaders = HeaderChanges{
		Set:    []HeaderValue{{"Content-Length", "5"}, {"transfer-encoding", "chunked"}, {"Connection", "x"}, {"no name", "x"}, {"X-Last", "1"}},
		Remove: []string{"Upgrade", "a\r\nb"},
	}
	s.apply(s.config(s.server("h.example.com", at(Prefix, "/", rule))))
	answer := s.get("http://h.example.com/")
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	assert.Equal(t, "1", answer.Header.Get("Got-X-Last"))
	for _, name := range []string{"Got-Content-Length", "Got-Transfer-Encoding", "Got-Connection"} {
		assert.Empty(t, answer.Header.Values(name), name)
	}
}

func TestTextOfObjectsArrivesLiterally(t *testing.T) {
	s := open(t, nil)
	rewritten := to("rewritten")
	rewritten.MatchedPrefix = "/" + literally
	rewritten.Rewrite = &Rewrite{Host: "$host;x", Path: &PathChange{To: "/" + literally}}
	redirected := Rule{Redirect: &Redirect{Host: "$host.example.com", Path: &PathChange{Full: true, To: nasty}}}
	s.apply(s.config(s.server("t.example.com",
		at(Prefix, "/"+literally, rewritten), at(Exact, "/redirect", redirected),
		at(Exact, "/header", to("header", Condition{Kind: Header, Name: "X-Nasty", Value: literally})),
		at(Exact, "/query", to("query", Condition{Kind: Query, Name: literally, Value: literally})))))
	const escaped = `%24host%3B%7D%22%5C%20%27%20%23%7B%20%241%20%24%7Bdollar%7D%20%5Cn`
	answer := s.get("http://t.example.com/" + escaped + "/x")
	assert.Equal(t, "rewritten", answer.Header.Get("X-Backend"))
	assert.Equal(t, `/$host;%7D%22%5C%20'%20%23%7B%20$1%20$%7Bdollar%7D%20%5Cn/x`, answer.Header.Get("X-Uri"))
	assert.Equal(t, "$host;x", answer.Header.Get("X-Host"))
	location := s.get("http://t.example.com/redirect").Header.Get("Location")
	assert.Equal(t, `http://$host.example.com/$host;%7D%22%5C%20%27%20%23%7B%09$1%20$%7Bdollar%7D%20%5Cn`, location)
	assert.Equal(t, 200, s.get("http://t.example.com/header", "X-Nasty", literally).StatusCode)
	assert.Equal(t, 404, s.get("http://t.example.com/header", "X-Nasty", "x").StatusCode)
	assert.Equal(t, 200, s.get("http://t.example.com/query?"+escaped+"="+escaped).StatusCode)
}
