package connection

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// maxRedirects is the limit of net/http.
const maxRedirects = 10

// WithinServer returns the client with redirects restricted: it follows them for reads only, and
// only to the origin that was asked: the same scheme, host and port. client-go adds the
// credentials to every request, so an aggregated API server or a proxy could otherwise have them
// sent elsewhere (CVE-2022-3172). It could also turn a write into a read, and the answer to that
// read would pass for the write's. Of an error that never ends, the client reads the beginning.
func WithinServer(hc *http.Client) *http.Client {
	within := *hc // it may be http.DefaultClient
	if within.Transport == nil {
		within.Transport = http.DefaultTransport
	}
	within.Transport = &briefErrors{within.Transport}
	within.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		switch asked := via[0]; {
		case len(via) >= maxRedirects:
			return fmt.Errorf("%d redirects", len(via))
		case asked.Method != http.MethodGet || !sameServer(asked.URL, to.URL):
			return fmt.Errorf("the server redirects to %s: not followed", &url.URL{Scheme: to.URL.Scheme, Host: to.URL.Host})
		}
		return nil
	}
	return &within
}

// sameServer reports whether two URLs have the same origin: the scheme, the host and the port. A
// URL with credentials has none: net/http would send these in place of the client's.
func sameServer(asked, to *url.URL) bool {
	return to.User == nil && to.Scheme == asked.Scheme && strings.EqualFold(to.Hostname(), asked.Hostname()) && portOf(to) == portOf(asked)
}

func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}
