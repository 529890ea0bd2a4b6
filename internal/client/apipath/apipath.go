// Package apipath reads what the path of a request to an API server asks for. Everything that has
// to know that goes by it: metrics, logs, recordings, bounds of answers, faults of tests, and the
// API server in memory. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris
//
// A server may have a base: its URL ends in a path, which may have any segments, "api" among them.
// The base is no part of what is asked for. A path that is not below it asks for nothing.
package apipath

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
)

// Sort is what sort of answer a path has.
type Sort int

const (
	// Unknown is a path that is none of an API server, or not below the base.
	Unknown Sort = iota
	// General is discovery, OpenAPI, the version or health: no objects.
	General
	// Objects is one of a resource.
	Objects
	// OldWatch is one of a resource, in the old form of a watch: /api/v1/watch/pods.
	OldWatch
)

// Path is a path that was read. A namespace is in itself: its Namespace is its Name.
type Path struct {
	Sort                                  Sort
	Group, Version, Resource, Subresource string
	Namespace, Name                       string
	// Below is what follows the subresource, as that of a proxy.
	Below string
}

// Base returns the path of a configuration's server.
func Base(config *rest.Config) string {
	if config == nil {
		return ""
	}
	u, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return ""
	}
	return strings.TrimRight(path.Clean("/"+u.Path), "/") // client-go joins paths, which cleans them
}

// Within returns what a path says below a base. It is false if the path is not below it.
func Within(path, base string) (string, bool) {
	rest, ok := strings.CutPrefix(path, strings.TrimRight(base, "/"))
	return rest, ok && (rest == "" || rest[0] == '/')
}

// Parse reads a path of a server with a base.
func Parse(path, base string) Path {
	rest, ok := Within(path, base)
	if !ok {
		return Path{}
	}
	parts := strings.Split(strings.Trim(rest, "/"), "/")
	if rest = strings.Trim(rest, "/"); rest != "" && slices.ContainsFunc(parts, nowhere) {
		return Path{}
	}
	return parse(parts)
}

// nowhere reports whether a segment names nothing.
func nowhere(part string) bool { return part == "" || part == "." || part == ".." }

// Find reads a path of a server whose base nobody knows. It takes the shortest one that leaves a
// path with a version as Kubernetes has them.
func Find(path string) Path {
	parts := strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
	for i := range parts {
		if p := parse(parts[i:]); p.Sort >= Objects && !p.Doubtful() && ordinary(p.Version) {
			return p
		}
	}
	return parse(parts)
}

// Doubtful reports whether a path looks as if it began with a base that nobody has told of: it is
// /api/api/v1/secrets, and not of the version "api".
func (p Path) Doubtful() bool { return p.Group == "api" || p.Version == "api" || p.Version == "apis" }

// ordinary reports whether a version is one as Kubernetes has them.
func ordinary(version string) bool {
	return len(version) > 1 && version[0] == 'v' && version[1] >= '0' && version[1] <= '9'
}

// parse reads the segments of a path.
func parse(parts []string) (p Path) {
	root := ""
	if len(parts) > 0 {
		root = parts[0]
	}
	switch prefix := map[string]int{"api": 2, "apis": 3}[root]; {
	case prefix == 0:
		if general(parts) {
			p.Sort = General
		}
		return p
	case len(parts) < prefix:
		return Path{Sort: General}
	default:
		if p.Version = parts[prefix-1]; prefix == 3 {
			p.Group = parts[1]
		}
		parts = parts[prefix:]
	}
	if p.Sort = Objects; len(parts) == 0 {
		p.Sort = General
		return p
	}
	if parts[0] == "watch" && len(parts) > 1 {
		p.Sort, parts = OldWatch, parts[1:]
	}
	// A namespace's own subresources are status and finalize. Any other path after its name is a
	// resource in it.
	if parts[0] == "namespaces" && len(parts) > 1 {
		if p.Namespace = parts[1]; len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	for i, into := range []*string{&p.Resource, &p.Name, &p.Subresource} {
		if i < len(parts) {
			*into = parts[i]
		}
	}
	if len(parts) > 3 {
		p.Below = strings.Join(parts[3:], "/")
	}
	return p
}

// general reports whether a path that begins neither with api nor with apis has an answer without
// objects.
func general(parts []string) bool {
	switch parts = append([]string(nil), parts...); {
	case len(parts) == 0 || len(parts) == 1 && (parts[0] == "" || parts[0] == "version"):
		return true
	case parts[0] == "healthz" || parts[0] == "livez" || parts[0] == "readyz":
		return true
	case parts[0] != "openapi" || len(parts) < 2:
		return false
	case len(parts) == 2:
		return parts[1] == "v2" || parts[1] == "v3"
	}
	// /openapi/v3/apis/apps/v1 is the document of what /apis/apps/v1 has.
	return parts[1] == "v3" && (len(parts) == 3 || parse(parts[2:]).Sort == General)
}

// Verb returns the verb of a request for a path. For a path that is not of a resource it is the
// method in lower case.
func (p Path) Verb(method string, query url.Values) string {
	switch {
	case p.Sort == OldWatch:
		return "watch"
	case p.Sort != Objects:
		return strings.ToLower(method)
	}
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if p.Name == "" {
			return "deletecollection"
		}
		return "delete"
	case http.MethodGet, http.MethodHead, "":
		switch {
		case p.Name != "":
			return "get"
		case IsTrue(query, "watch"):
			return "watch"
		}
		return "list"
	}
	return strings.ToLower(method)
}

// IsTrue reads a flag as the API server does: everything but "false" and "0" is true.
func IsTrue(query url.Values, flag string) bool {
	value := strings.ToLower(query.Get(flag))
	return query.Has(flag) && value != "false" && value != "0"
}
