package page

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

func TestEachPageIsHTMLAndJSONForNoClientAnEmptyOneAndAFullOne(t *testing.T) {
	worlds := map[string][]Option{
		"no client":    nil,
		"an empty one": {client("", empty())},
		"several":      {client("one", full()), client("one", full()), client("three", full()), graphs(t)},
	}
	for name, options := range worlds {
		t.Run(name, func(t *testing.T) {
			_, base := serve(t, options...)
			for _, address := range addresses() {
				body := ok(t, base+address)
				assert.Contains(t, body, "</html>", address)
				assert.NotContains(t, body, "<no value>", address)
				assert.NotContains(t, body, "%!", address)
				var of struct {
					Page string          `json:"page"`
					At   string          `json:"at"`
					Data json.RawMessage `json:"data"`
				}
				require.NoError(t, json.Unmarshal([]byte(ok(t, base+address, "Accept", "application/json")), &of), address)
				assert.NotEmpty(t, of.Page)
				assert.NotEmpty(t, of.At)
				assert.NotEqual(t, "null", string(of.Data), address)
			}
		})
	}
}

func TestEveryLinkOfEveryPageLeadsSomewhereWithAndWithoutStripPrefix(t *testing.T) {
	p := New(client("one", full()), client("two", full()), graphs(t))
	defer p.Close()
	mux := http.NewServeMux()
	mux.Handle("/debug/kates/", p)
	mux.Handle("/stripped/", http.StripPrefix("/stripped", p))
	mux.Handle("/bare/", http.StripPrefix("/bare/", p))
	s := httptest.NewServer(mux)
	defer s.Close()
	for _, base := range []string{"/debug/kates/", "/stripped/"} {
		seen := map[string]bool{}
		todo := []string{s.URL + base}
		for len(todo) > 0 {
			at := todo[0]
			todo = todo[1:]
			answer, body := get(t, at)
			require.Equal(t, http.StatusOK, answer.StatusCode, at)
			if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
				continue
			}
			from, err := url.Parse(at)
			require.NoError(t, err)
			ids := idsOf(t, body)
			for _, link := range linksOf(t, body) {
				to, err := from.Parse(link)
				require.NoError(t, err, link)
				require.True(t, strings.HasPrefix(to.String(), s.URL+base), "%s on %s leads elsewhere", link, at)
				if strings.HasPrefix(link, "#") {
					assert.Contains(t, ids, strings.TrimPrefix(link, "#"))
				}
				to.Fragment = ""
				if !seen[to.String()] {
					seen[to.String()] = true
					todo = append(todo, to.String())
				}
			}
		}
		assert.Greater(t, len(seen), 20)
	}
	assert.Contains(t, ok(t, s.URL+"/stripped/queries"), "app.Snapshot")
}

// linksOf returns what a page refers to.
func linksOf(t *testing.T, body string) (all []string) {
	t.Helper()
	for n := range nodesOf(t, body) {
		for _, a := range n.Attr {
			if a.Key == "href" || a.Key == "src" {
				all = append(all, a.Val)
			}
		}
	}
	return all
}

func idsOf(t *testing.T, body string) (all []string) {
	t.Helper()
	for n := range nodesOf(t, body) {
		for _, a := range n.Attr {
			if a.Key == "id" {
				all = append(all, a.Val)
			}
		}
	}
	return all
}

func nodesOf(t *testing.T, body string) func(func(*html.Node) bool) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	require.NoError(t, err)
	return root.Descendants()
}

func TestAPageHasNothingInlineAndNothingFromElsewhere(t *testing.T) {
	_, base := serve(t, client("one", full()), graphs(t))
	for _, address := range addresses() {
		answer, body := get(t, base+address)
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cache-Control": "no-store", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			assert.Equal(t, value, answer.Header.Get(name), address)
		}
		ids := map[string]bool{}
		for n := range nodesOf(t, body) {
			if n.Type != html.ElementNode {
				continue
			}
			assert.NotContains(t, []string{"style", "iframe", "object", "embed", "base"}, n.Data, address)
			if n.Data == "script" {
				assert.Nil(t, n.FirstChild, "an inline script on %s", address)
			}
			for _, a := range n.Attr {
				assert.NotEqual(t, "style", a.Key, address)
				assert.False(t, strings.HasPrefix(a.Key, "on"), "%s on %s", a.Key, address)
				if a.Key == "href" || a.Key == "src" || a.Key == "action" {
					assert.NotContains(t, a.Val, "//", address)
				}
				if a.Key == "id" {
					assert.False(t, ids[a.Val], "id %s is there twice on %s", a.Val, address)
					ids[a.Val] = true
				}
			}
		}
	}
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		assert.Contains(t, policy, part)
	}
	assert.NotContains(t, policy, "unsafe")
	for _, name := range []string{"style.css", "page.js", "icon.svg"} {
		content, err := os.ReadFile("assets/" + name)
		require.NoError(t, err)
		assert.NotRegexp(t, regexp.MustCompile(`https?://(www\.)?[^w]`), strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", ""))
		ok(t, base+name)
	}
}

func TestAPageIsUsableByKeyboardAndScreenReader(t *testing.T) {
	_, base := serve(t, client("one", full()), graphs(t))
	for _, address := range addresses() {
		body := ok(t, base+address)
		assert.Contains(t, body, `<html lang="en">`)
		assert.Contains(t, body, `href="#main"`)
		assert.Contains(t, body, `name="viewport"`)
		headings := 0
		for n := range nodesOf(t, body) {
			switch n.Data {
			case "h1":
				headings++
			case "th":
				assert.NotEmpty(t, attribute(n, "scope"), "a header of a table on %s", address)
			case "svg":
				assert.True(t, attribute(n, "aria-label") != "" || attribute(n, "aria-hidden") == "true", address)
			case "input":
				assert.True(t, attribute(n, "type") == "hidden" || n.Parent.Data == "label", address)
			}
			if attribute(n, "role") == "region" {
				assert.NotEmpty(t, attribute(n, "aria-label"))
				assert.Equal(t, "0", attribute(n, "tabindex"), "what scrolls can be reached by keyboard")
			}
		}
		assert.Equal(t, 1, headings, address)
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
