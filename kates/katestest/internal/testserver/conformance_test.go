package testserver_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/test/suite/conformance"
	"github.com/kates-go/kates/kates/katestest/internal/testserver"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// gaps are what the server in memory answers otherwise.
var gaps = []string{
	"custom/rules are checked",                  // x-kubernetes-validations: CEL would be a large dependency
	"discovery/the resources of the core group", // what needs a kubelet, and requests that store nothing, are not served
}

// TestAServerInMemoryAnswersAsARealOneDoes compares with the answers of the real API server, which
// the e2e tests compare with, too. They have no controllers.
func TestAServerInMemoryAnswersAsARealOneDoes(t *testing.T) {
	conformance.CheckInBubbles(t, listening, gaps...)
}

// listening is a server with all built-in kinds, on connections in memory.
func listening(t *testing.T) conformance.Server {
	t.Helper()
	api, err := testserver.New(scheme.Scheme, kinds.BuiltIn(scheme.Scheme, slices.Concat(kinds.OfScheme(scheme.Scheme), kinds.Unschemed())))
	require.NoError(t, err)
	pipes := pipes{made: make(chan net.Conn), closed: make(chan struct{})}
	server := http.Server{Handler: api}
	go func() { _ = server.Serve(pipes) }() // it ends with Close
	t.Cleanup(func() {
		api.Close()
		_ = server.Close() // nobody reads any more
	})
	return conformance.Server{
		Config: &rest.Config{Host: "http://kubernetes.test", QPS: -1, Dial: pipes.dial},
		Compact: func(context.Context) error {
			api.Compact()
			return nil
		},
	}
}

// pipes is a listener that is dialed in memory.
type pipes struct {
	made   chan net.Conn
	closed chan struct{}
}

func (p pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.made <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.closed)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "kubernetes.test", Net: "pipe"} }
