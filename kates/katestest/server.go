package katestest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest/internal/testserver"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// Server is an API server in memory, with a real one's semantics: versions, UIDs, conflicts, field
// managers, finalizers, selectors, lists, watches, custom kinds. Clients reach it over HTTP, on
// connections in memory: kates, client-go and controller-runtime run on it as on a real server.
//
// It empties namespaces that are deleted and collects objects whose owners are gone, as a
// cluster's controllers do, unless [WithoutControllers] says otherwise. There is no kubelet: a pod
// that is bound to a node stays until it is deleted without a grace period. Validation rules in
// CEL (x-kubernetes-validations) and conversion webhooks of custom kinds do nothing here.
//
// [NewServer] and [StartServer] make one. It is safe for concurrent use.
type Server struct {
	// Config is for a user with all rights, without a client-side rate limit. Copy it before
	// changing it; [Faults] wrap the copy.
	Config *rest.Config
	// Network has the connections to the server: it can freeze, reset, refuse and delay them.
	Network *Network

	api     *testserver.Server
	http    *http.Server
	options []kates.Option
	serving sync.WaitGroup
}

// host is the server's address in its network.
const host = "kubernetes.test:80"

// NewServer returns a server that holds the objects of the options. It ends with the test. The
// options are those of [New]. A custom kind comes from its CustomResourceDefinition, with schema,
// defaults and subresources, or from [WithKinds], which takes any content. A namespace that
// starting objects are in is made.
//
// Starting objects keep their status, but for definitions, whose status is the server's. As for
// any new object, UIDs, versions and times are the server's own. One with a deletionTimestamp is
// an error: create it, and delete it then. Each server is a cluster of its own
// ([kates.Client.ClusterUID]).
//
// Inside a synctest bubble its time is the bubble's.
func NewServer(t testing.TB, options ...Option) *Server {
	t.Helper()
	s, err := startServer(DetectMutations(t), options)
	if err != nil {
		t.Fatalf("starting the API server in memory: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// StartServer is NewServer for programs that are not tests. The caller calls Close.
func StartServer(options ...Option) (*Server, error) { return startServer(nil, options) }

func startServer(detector kates.Option, options []Option) (*Server, error) {
	c, err := configOf(detector, options)
	if err != nil {
		return nil, err
	}
	objects, err := c.unstructuredObjects()
	if err != nil {
		return nil, err
	}
	builtIn, err := c.servedKinds()
	if err != nil {
		return nil, err
	}
	api, err := testserver.New(clientgoscheme.Scheme, builtIn)
	if err != nil {
		return nil, err
	}
	if c.sharded {
		api.ServeShards()
	}
	s := &Server{
		Config:  &rest.Config{Host: "http://" + host, QPS: -1},
		Network: NewNetwork(nil), api: api, http: &http.Server{Handler: api}, options: c.clientOptions(),
	}
	s.Config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return s.Network.DialContext(ctx, network, address)
	}
	listener, err := s.Network.Listen(host)
	if err != nil {
		return nil, err
	}
	s.serving.Go(func() { _ = s.http.Serve(listener) }) // it ends with Close
	for _, o := range inOrder(objects) {
		if err := s.add(o); err != nil {
			s.Close()
			return nil, err
		}
	}
	if !c.uncontrolled {
		api.Control() // all objects are there before it looks at their owners
	}
	return s, nil
}

// servedKinds are the built-in kinds, and those that options add.
func (c *config) servedKinds() ([]*kinds.Kind, error) {
	found := kinds.BuiltIn(clientgoscheme.Scheme, slices.Concat(kinds.OfScheme(clientgoscheme.Scheme), kinds.Unschemed()))
	for _, k := range c.kinds {
		gvk, err := k.gvk()
		if err != nil {
			return nil, err
		}
		found = append(found, kinds.Free(gvk, k.gvr(gvk).Resource, !k.ClusterScoped, k.ShortNames))
	}
	return found, nil
}

// inOrder puts definitions before namespaces, and these before all other objects.
func inOrder(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	rank := func(o *unstructured.Unstructured) int {
		switch o.GetKind() {
		case "CustomResourceDefinition":
			return 0
		case "Namespace":
			return 1
		}
		return 2
	}
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b *unstructured.Unstructured) int { return cmp.Compare(rank(a), rank(b)) })
	return sorted
}

// add stores a starting object.
func (s *Server) add(o *unstructured.Unstructured) error {
	if err := s.api.Add(o.Object); err != nil {
		return fmt.Errorf("%s: %w", describe(o), err)
	}
	return nil
}

// Client returns a client of the server, made with the options of [NewServer] and more. It is
// closed when the test ends.
func (s *Server) Client(t testing.TB, options ...kates.Option) *kates.Client {
	t.Helper()
	c, err := kates.NewClientFromRESTConfig(rest.CopyConfig(s.Config), append(slices.Clone(s.options), options...)...)
	if err != nil {
		t.Fatalf("a client of the API server in memory: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

// Compact makes the server forget all versions but the newest ones, as etcd does every five
// minutes: watches from an older version, and pages of an older list, are answered 410.
func (s *Server) Compact() { s.api.Compact() }

// Close ends the server, its connections and watches. It may be called more than once.
func (s *Server) Close() {
	s.api.Close()
	_ = s.http.Close() // nothing is left to lose
	s.Network.Close()
	s.serving.Wait()
}
