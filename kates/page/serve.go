package page

import (
	"embed"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/kates-go/kates/internal/base/plain"
)

//go:embed assets
var assets embed.FS

// policy lets a page load its own style sheet, script and icon, ask for itself again, and nothing
// else. Nobody may frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

var static = map[string]string{
	"style.css": "text/css; charset=utf-8",
	"page.js":   "text/javascript; charset=utf-8",
	"icon.svg":  "image/svg+xml",
}

// ServeHTTP answers with a page, as HTML or JSON.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "The status page is read-only: GET and HEAD alone.", http.StatusMethodNotAllowed)
		return
	}
	if host := hostOf(r); !p.mayBe(host) {
		http.Error(w, "The status page is not for the host name "+plain.Line(host[:min(len(host), 100)])+". A program that is reached by this name "+
			"gives it to page.Hosts.", http.StatusForbidden)
		return
	}
	if fromAnotherSite(r) {
		http.Error(w, "The status page is not for scripts and frames of other sites.", http.StatusForbidden)
		return
	}
	if r.URL.Path == "" { // StripPrefix without a slash: links would be wrong
		asked, _, _ := strings.Cut(r.RequestURI, "?")
		h.Set("Location", "./"+path.Base(asked)+"/") // http.Redirect would make it absolute
		w.WriteHeader(http.StatusFound)
		return
	}
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if kind, is := static[name]; is {
		content, _ := assets.ReadFile("assets/" + name)
		h.Set("Content-Type", kind)
		_, _ = w.Write(content)
		return
	}
	for i := range pages {
		if pages[i].name == name {
			p.isLooked()
			p.servePage(w, r, &pages[i])
			return
		}
	}
	http.Error(w, "There is no such page. The status page begins at a path that ends in a slash.", http.StatusNotFound)
}

// answer is what a page shows.
type answer struct {
	Page   string    `json:"page"`
	At     time.Time `json:"at"`
	Client string    `json:"client,omitempty"`
	// Problems is how many there are in all, without notes.
	Problems int `json:"problemCount"`
	Data     any `json:"data"`

	kind    *kindOfPage
	clients []string
	ask     url.Values
	full    bool
}

func (p *Page) servePage(w http.ResponseWriter, r *http.Request, kind *kindOfPage) {
	ask := r.URL.Query()
	s := p.stateNow(ask.Get("client"))
	a := answer{
		Page: kind.name, At: s.at, Client: ask.Get("client"), Data: kind.data(p, s, ask),
		kind: kind, ask: ask, full: p.history.isFull(),
	}
	if a.Page == "" {
		a.Page = "overview"
	}
	for _, c := range s.clients {
		a.clients = append(a.clients, c.member.name)
	}
	for _, of := range s.problems {
		if of.Effect != Note {
			a.Problems++
		}
	}
	w.Header().Add("Vary", "Accept")
	if wantsJSON(r, ask) {
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(a) // the reader has gone
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	a.render(w)
}

func wantsJSON(r *http.Request, ask url.Values) bool {
	if format := ask.Get("format"); format != "" {
		return format == "json"
	}
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

func hostOf(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// mayBe reports whether the page may be asked for under a host name. A name without a dot is no
// site's.
func (p *Page) mayBe(host string) bool {
	return host == "" || !strings.Contains(host, ".") || net.ParseIP(host) != nil ||
		strings.HasSuffix(host, ".localhost") || p.hosts["*"] || p.hosts[host]
}

// fromAnotherSite reports whether a page of another site has sent the request, other than by a
// link that somebody followed.
func fromAnotherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") &&
		(r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document")
}
