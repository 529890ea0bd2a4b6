package kates

import (
	"fmt"
	"net/http"
	"net/url"
)

// maxRedirects is net/http's.
const maxRedirects = 10

// withinServer returns the client with redirects followed for reads only, and to the server that was asked: an aggregated API server, or
// who else stands in between, must not have the credentials, which client-go adds to every request, sent to somebody else (as in
// CVE-2022-3172), nor a write turned into a read whose answer passes for that of the write.
func withinServer(hc *http.Client) *http.Client {
	within := *hc // it may be http.DefaultClient
	within.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		switch asked := via[0]; {
		case len(via) >= maxRedirects:
			return fmt.Errorf("%d redirects", len(via))
		case asked.Method != http.MethodGet || !sameServer(asked.URL, to.URL):
			return fmt.Errorf("the server redirects to %s://%s: not followed", to.URL.Scheme, to.URL.Host)
		}
		return nil
	}
	return &within
}

// sameServer reports whether a URL is of the server of another one; it may be for TLS where that was not.
func sameServer(asked, to *url.URL) bool {
	if to.Scheme == asked.Scheme {
		return to.Host == asked.Host
	}
	return asked.Scheme == "http" && to.Scheme == "https" && to.Hostname() == asked.Hostname()
}
