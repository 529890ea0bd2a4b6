package testserver

import (
	"fmt"
	"io"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/client/apipath"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/store"
)

// request is a request for objects of one kind.
type request struct {
	*http.Request
	kind                  *kinds.Kind
	namespace, name, part string // part is the subresource
	query                 url.Values
	form                  form
	body                  []byte
	how                   writing // of a write
	warnings              []string
}

// mostBody is how large a body may be, as an API server has it.
const mostBody = 3 << 20

// path is what the path of a request says.
type path struct {
	group, version                  string
	resource, namespace, name, part string
	names                           bool // it names objects, and not an API
	watch                           bool // it is one of the old paths for watches
}

// parse reads the path of a request.
func parse(p string) (at path, ok bool) {
	read := apipath.Parse(p, "")
	if read.Version == "" || read.Below != "" {
		return path{}, false
	}
	at = path{
		group: read.Group, version: read.Version, resource: read.Resource, namespace: read.Namespace, name: read.Name,
		part: read.Subresource, names: read.Sort != apipath.General, watch: read.Sort == apipath.OldWatch,
	}
	if at.resource == "namespaces" {
		at.namespace = "" // no object of the cluster is in one
	}
	return at, true
}

// read makes a request for objects out of what has come over HTTP.
func (s *Server) read(r *http.Request, at path) (*request, error) {
	q := &request{Request: r, namespace: at.namespace, name: at.name, part: at.part, query: r.URL.Query()}
	if at.watch {
		q.query.Set("watch", "true")
	}
	q.kind = s.kinds().Find(schema.GroupVersionResource{Group: at.group, Version: at.version, Resource: at.resource})
	switch {
	case q.kind == nil:
		return nil, s.unserved(at.group)
	case q.part != "" && !q.kind.Has(q.part) && q.kind.Custom != nil:
		return nil, s.notFound(q)
	case q.kind.Custom != nil && q.kind.Namespaced && q.namespace == "" && r.Method != http.MethodGet:
		return nil, errNoPath
	case q.part != "" && !q.kind.Has(q.part), q.namespace != "" && !q.kind.Namespaced, q.namespace == "" && q.name != "" && q.kind.Namespaced:
		return nil, s.unserved(at.group)
	}
	var err error
	if q.form, err = formOf(q); err != nil {
		return q, err
	}
	if q.body, err = io.ReadAll(io.LimitReader(r.Body, mostBody+1)); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(q.body) > mostBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", mostBody))
	}
	return q, nil
}

// unserved is the error of a path that is not there. The answer is a Status where the group is
// built in.
func (s *Server) unserved(group string) error {
	for _, k := range s.builtIn {
		if k.Group == group && k.Custom == nil {
			return general(http.StatusNotFound, "the server could not find the requested resource")
		}
	}
	return errNoPath
}

// key is the place of the object that the request is about.
func (q *request) key() store.Key {
	return store.Key{Resource: q.kind.Storage, Namespace: q.namespace, Name: q.name}
}

// takesDeleteAll reports whether the objects in the path can be deleted with one request.
func (q *request) takesDeleteAll() bool {
	return q.kind.Storage != namespacesStored && (q.namespace != "" || !q.kind.Namespaced)
}

// warn notes a warning for the client.
func (q *request) warn(text string) { q.warnings = append(q.warnings, text) }
