package connection

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/client/apipath"
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
	base := apipath.Base(config)
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
// server.
func AskedBy(method string, u *url.URL, base string) Asked {
	p := apipath.Parse(u.Path, base)
	a := Asked{
		Group: p.Group, Version: p.Version, Resource: p.Resource, Subresource: p.Subresource,
		Namespace: p.Namespace, Name: p.Name,
	}
	if p.Sort < apipath.Objects {
		a = Asked{}
	}
	a.Verb = p.Verb(method, u.Query())
	return a
}
