package e2e

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates/katestest"
)

// definitionPaths are the custom kinds of the tests.
var definitionPaths = []string{"../testdata/crds", "../testdata/validate/crd.yaml", "../examples/configmapgen/crd.yaml"}

// serverOf returns the configuration of the API server that a test runs on: the real one of all
// tests, or one in memory that only this test and its subtests share. The list inMemory decides.
func serverOf(t testing.TB) *rest.Config {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	if *allReal || !slices.Contains(inMemory, test) {
		require.NotNil(t, testCluster, "it is not in the list inMemory")
		return testCluster.Config
	}
	return memoryServers.of(t, test)
}

// memoryServers has the servers in memory, by the test.
var memoryServers servers

type servers struct {
	mu  sync.Mutex
	all map[string]*memoryServer
}

// memoryServer is a server with the number of those that use it.
type memoryServer struct {
	server *katestest.Server
	bridge *bridge
	config *rest.Config
	users  int
}

// of returns the server of a test. It ends when each t that has asked for it is over.
func (s *servers) of(t testing.TB, test string) *rest.Config {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[test]
	if one == nil {
		server, err := katestest.StartServer(katestest.WithoutControllers(), katestest.WithManifests(manifests(t)))
		require.NoError(t, err)
		one = &memoryServer{server: server}
		require.NoError(t, one.connect())
		if s.all == nil {
			s.all = map[string]*memoryServer{}
		}
		s.all[test] = one
	}
	one.users++
	t.Cleanup(func() { s.leave(test, one) })
	return one.config
}

// connect sets the configuration of clients. A client that has a network of its own in it goes
// through the bridge.
func (m *memoryServer) connect() (err error) {
	address := strings.TrimPrefix(m.server.Config.Host, "http://")
	dial := func(ctx context.Context) (net.Conn, error) { return m.server.Config.Dial(ctx, "tcp", address) }
	if m.bridge, err = newBridge(dial); err != nil {
		return err
	}
	m.config = rest.CopyConfig(m.server.Config)
	m.config.Host = "http://" + m.bridge.listener.Addr().String()
	m.config.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	m.config.Wrap(secrecy.Transport)
	return nil
}

func (s *servers) leave(test string, one *memoryServer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(s.all, test)
		one.bridge.close()
		one.server.Close()
	}
}

// manifests returns the custom kinds of the tests as one text.
func manifests(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, path := range definitionPaths {
		files := []string{path}
		if !strings.HasSuffix(path, ".yaml") {
			var err error
			files, err = filepath.Glob(path + "/*.yaml")
			require.NoError(t, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			all.Write(text)
			all.WriteString("\n---\n")
		}
	}
	return all.String()
}
