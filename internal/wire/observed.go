package wire

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Asked is a request in the words of the Kubernetes API.
type Asked struct {
	// Verb of the API; for a path that is not of a resource, the HTTP method in lower case.
	Verb                                  string
	Group, Version, Resource, Subresource string
	Namespace, Name                       string
}

// Answered is the outcome of a request.
type Answered struct {
	Code int   // HTTP status; 0: there was no answer
	Err  error // why there was none
	Took time.Duration
}

// Observe is told of each request before it is sent. It returns the context of the request, and a
// function that is told of the answer. It is called without locks.
type Observe func(ctx context.Context, a Asked) (context.Context, func(Answered))

// Observed returns a wrapper for transports of a configuration that tells of each request.
func Observed(config *rest.Config, observe Observe) func(http.RoundTripper) http.RoundTripper {
	base := ""
	if u, _, err := rest.DefaultServerUrlFor(config); err == nil {
		base = strings.TrimSuffix(u.Path, "/")
	}
	return func(next http.RoundTripper) http.RoundTripper { return &observed{next, base, observe} }
}

type observed struct {
	next    http.RoundTripper
	base    string // path of the server
	observe Observe
}

func (t *observed) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, answered := t.observe(r.Context(), AskedBy(r.Method, r.URL, t.base))
	if ctx != r.Context() {
		r = r.WithContext(ctx)
	}
	began := time.Now()
	response, err := t.next.RoundTrip(r)
	a := Answered{Err: err, Took: time.Since(began)}
	if response != nil {
		a.Code = response.StatusCode
	}
	answered(a)
	return response, err
}

// WrappedRoundTripper returns the transport beneath.
func (t *observed) WrappedRoundTripper() http.RoundTripper { return t.next }

// AskedBy reads what a request asks for from its method and URL. The base is the path of the
// server. See https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris.
func AskedBy(method string, u *url.URL, base string) Asked {
	a := Asked{Verb: strings.ToLower(method)}
	parts := strings.Split(strings.Trim(strings.TrimPrefix(u.Path, base), "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		a.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		a.Group, a.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return a
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		if a.Namespace = parts[1]; len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	a.Resource = parts[0]
	if len(parts) > 1 {
		a.Name = parts[1]
	}
	if len(parts) > 2 {
		a.Subresource = parts[2]
	}
	a.Verb = verbOf(method, a.Name, u.Query())
	return a
}

// verbOf returns the verb of a request for a resource.
func verbOf(method, name string, query url.Values) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	case http.MethodGet, http.MethodHead, "":
		if name != "" {
			return "get"
		}
		if watch := query.Get("watch"); watch == "true" || watch == "1" {
			return "watch"
		}
		return "list"
	}
	return strings.ToLower(method)
}
