package katestest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/kates-go/kates/internal/client/apipath"
)

// Request is the record that a [Faults] keeps of one request. Verbs are those of the API server
// (https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb).
type Request struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection. For a request
	// without a resource (discovery, /version, /readyz) it is the HTTP method in lower case. A
	// streamed list is a watch.
	Verb string

	// Group, Version and Resource are those of the path, such as "apps", "v1" and "deployments".
	// The core group is "". All are empty if the request has no resource.
	Group, Version, Resource string

	// Subresource is "status", "scale", "log" and so on, or empty.
	Subresource string

	// Namespace and Name are empty if the request has none. A list or watch of metadata.name=x
	// has the name x.
	Namespace, Name string

	// Path is the path of the URL, and Query its parsed query.
	Path  string
	Query url.Values

	// Status is the code of the client's answer. It is 0 while there is no answer, or if there
	// was none.
	Status int

	// Err is the reason why there was no answer.
	Err error
}

// StreamedList reports whether the request is a watch that begins with a list (sendInitialEvents,
// KEP-3157).
func (r Request) StreamedList() bool {
	return r.Verb == "watch" && apipath.IsTrue(r.Query, "sendInitialEvents")
}

// A Match selects requests. Empty fields match everything, so the zero Match is every request,
// discovery included.
type Match struct {
	// Verb is one of those of [Request].
	Verb string

	// Resource is the plural in lower case, with the group if it matters, and with the
	// subresource: "configmaps", "deployments.apps", "pods/log". As in RBAC, "pods" excludes
	// their subresources, "*" is every resource, and "pods/*" every subresource of pods.
	Resource string

	// Namespace and Name are those of the request: requests for all namespaces have none.
	Namespace, Name string

	// Where is called last, for requests that the other fields match. Several goroutines may call
	// it at once. It must not call the Faults. It may be nil.
	Where func(Request) bool
}

// among returns the requests that match. It reuses the slice.
func (m Match) among(requests []Request) []Request {
	return slices.DeleteFunc(requests, func(r Request) bool { return !m.matches(r) })
}

func (m Match) matches(r Request) bool {
	return (m.Verb == "" || m.Verb == r.Verb) &&
		(m.Resource == "" || m.ofResource(r)) &&
		(m.Namespace == "" || m.Namespace == r.Namespace) &&
		(m.Name == "" || m.Name == r.Name) &&
		(m.Where == nil || m.Where(r))
}

func (m Match) ofResource(r Request) bool {
	resource, subresource, _ := strings.Cut(m.Resource, "/")
	resource, group, withGroup := strings.Cut(resource, ".")
	return r.Resource != "" &&
		(resource == "*" || resource == r.Resource) && (!withGroup || group == r.Group) &&
		(subresource == r.Subresource || subresource == "*" && r.Subresource != "")
}

// requestOf reads a request as the API server does. What comes before /api or /apis is the path of
// the server, or of a proxy.
func requestOf(r *http.Request) Request {
	p := apipath.Find(r.URL.Path)
	req := Request{
		Verb: p.Verb(r.Method, r.URL.Query()), Path: r.URL.Path, Query: r.URL.Query(),
	}
	if p.Sort < apipath.Objects {
		return req
	}
	req.Group, req.Version, req.Resource, req.Subresource = p.Group, p.Version, p.Resource, p.Subresource
	req.Namespace, req.Name = p.Namespace, p.Name
	req.named()
	return req
}

// named takes the name of a list or a watch of one object.
func (r *Request) named() {
	if r.Name != "" || r.Verb == "create" {
		return
	}
	for term := range strings.SplitSeq(r.Query.Get("fieldSelector"), ",") {
		field, value, _ := strings.Cut(term, "=")
		if value = strings.TrimPrefix(value, "="); strings.TrimSpace(field) == "metadata.name" && r.Name == "" {
			r.Name = value
		}
	}
}
