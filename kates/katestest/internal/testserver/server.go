// Package testserver is an API server in memory, for tests: it speaks the API server's HTTP, and
// keeps its rules for names, versions, conflicts, field managers, finalizers, deletion, selectors,
// lists and watches. Begin at [New]. Package katestest has the face of it.
//
//	request ──▶ rules ──▶ store ──▶ list, watch
//	              │         └──▶ collector (namespaces, owners)
//	           kinds, fields
//
// It is no rewrite of what others keep: managed fields and server-side apply are apimachinery's,
// on structured-merge-diff; patches are json-patch's and apimachinery's; custom schemas are
// validated by kube-openapi. client-go's object tracker has no versions, and so neither conflicts
// nor watches that begin at one: the store is our own.
package testserver

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/fields"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/store"
)

// Server is an API server. It is an http.Handler, and safe for concurrent use.
type Server struct {
	scheme   *runtime.Scheme
	builtIn  []*kinds.Kind
	managers *fields.Managers
	store    *store.Store
	serving  atomic.Pointer[serving]
	custom   definitions
	shards   atomic.Bool

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// New returns a server of built-in kinds, whose Go types the scheme has. It has the namespaces
// that every cluster has. It runs until Close. It has no controllers before [Server.Control].
func New(scheme *runtime.Scheme, builtIn []*kinds.Kind) (*Server, error) {
	s := &Server{scheme: scheme, builtIn: builtIn, managers: fields.NewManagers(scheme), store: store.New()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.serve(kinds.NewSet(builtIn...))
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		if err := s.addNamespace(name); err != nil {
			return nil, err
		}
	}
	s.tasks.Go(func() { s.afterEachWrite(s.undefineAll) })
	return s, nil
}

// Control starts the controllers that every cluster has: they empty namespaces that are deleted,
// and look after objects that have owners. They end with Close.
func (s *Server) Control() {
	s.tasks.Go(newCollector(s).run)
}

// Close ends all watches, and what the server does by itself. It waits for the latter.
func (s *Server) Close() {
	s.cancel()
	s.tasks.Wait()
}

// Compact makes the server forget all versions but the newest: a watch from an older one is
// answered 410.
func (s *Server) Compact() { s.store.Compact() }

// serving is the set of kinds that are served for now.
type serving struct {
	set       *kinds.Set
	documents *handler3.OpenAPIService
	over      chan struct{} // closed when another set is served
}

func (s *Server) kinds() *kinds.Set { return s.serving.Load().set }

// serve serves another set of kinds.
func (s *Server) serve(set *kinds.Set) {
	was := s.serving.Swap(&serving{set: set, documents: document(set), over: make(chan struct{})})
	if was != nil {
		close(was.over)
	}
}

const (
	definitionsStored = "customresourcedefinitions.apiextensions.k8s.io"
	namespacesStored  = "namespaces"
)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, ok := parse(r.URL.Path)
	if !ok || !at.names {
		s.discover(w, r)
		return
	}
	q, err := s.read(r, at)
	if err != nil {
		s.fail(w, q, err)
		return
	}
	if q.kind.Custom != nil && q.kind.Custom.Deprecated != "" {
		w.Header().Add("Warning", "299 - "+strconv.Quote(q.kind.Custom.Deprecated))
	}
	switch {
	case r.Method == http.MethodGet && q.watches():
		err = s.watch(w, q)
	case r.Method == http.MethodGet && q.name == "":
		err = s.list(w, q)
	case r.Method == http.MethodGet:
		err = s.get(w, q)
	case r.Method == http.MethodPost && (q.name == "" || q.part != "" || q.kind.Custom != nil):
		err = s.post(w, q)
	case r.Method == http.MethodPut && (q.name != "" || q.kind.Custom != nil):
		err = s.put(w, q)
	case r.Method == http.MethodPatch && q.name != "":
		err = s.patch(w, q)
	case r.Method == http.MethodDelete && q.part == "" && q.name != "":
		err = s.delete(w, q)
	case r.Method == http.MethodDelete && q.part == "" && q.takesDeleteAll():
		err = s.deleteAll(w, q)
	default:
		err = errMethod(q)
	}
	if err != nil {
		s.fail(w, q, err)
	}
}
