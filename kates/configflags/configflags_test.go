package configflags_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/configflags"
)

// What programs know from Emissary's kates. There, NewClientFromConfigFlags has no options.
var (
	_ func(bool) *configflags.ConfigFlags                                                         = configflags.NewConfigFlags
	_ func(*configflags.ConfigFlags, ...kates.Option) (*kates.Client, error)                      = configflags.NewClientFromConfigFlags
	_ func(*configflags.ConfigFlags) (meta.RESTMapper, discovery.CachedDiscoveryInterface, error) = configflags.NewRESTMapper
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is an API server with one kind. It notes the paths of requests.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	paths []string
	users []string
}

func newServer(t *testing.T) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.paths = append(s.paths, r.URL.Path)
	s.users = append(s.users, r.Header.Get("Impersonate-User"))
	s.mu.Unlock()
	answer, ok := map[string]any{
		"/api":  map[string]any{"kind": "APIVersions", "versions": []string{"v1"}},
		"/apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}},
		"/api/v1": map[string]any{
			"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{map[string]any{
				"name": "configmaps", "singularName": "configmap", "kind": "ConfigMap",
				"namespaced": true, "verbs": []string{"get", "list", "watch"},
			}},
		},
		"/api/v1/namespaces/blue/configmaps/c": map[string]any{
			"kind": "ConfigMap", "apiVersion": "v1", "data": map[string]string{"a": "b"},
			"metadata": map[string]any{"name": "c", "namespace": "blue"},
		},
	}[r.URL.Path]
	w.Header().Set("Content-Type", "application/json")
	if !ok {
		w.WriteHeader(http.StatusNotFound)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// flags returns parsed flags, without a kubeconfig.
func flags(t *testing.T, args ...string) *configflags.ConfigFlags {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	config := configflags.NewConfigFlags(true)
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.AddFlags(set)
	require.NoError(t, set.Parse(append(args, "--cache-dir", t.TempDir())))
	return config
}

func TestTheClientFollowsTheFlags(t *testing.T) {
	s := newServer(t)
	c, err := configflags.NewClientFromConfigFlags(flags(t, "-s", s.URL, "-n", "blue", "--as", "jane"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	assert.Empty(t, s.paths, "no request is sent")
	var cm kates.ConfigMap
	require.NoError(t, c.Get(t.Context(), &kates.ConfigMap{ObjectMeta: kates.ObjectMeta{Name: "c"}}, &cm))
	assert.Equal(t, "b", cm.Data["a"])
	assert.Contains(t, s.users, "jane")
}

func TestOptionsWinOverFlags(t *testing.T) {
	s := newServer(t)
	c, err := configflags.NewClientFromConfigFlags(
		flags(t, "-s", s.URL, "-n", "red"), kates.WithNamespace("blue"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.Get(t.Context(), &kates.ConfigMap{ObjectMeta: kates.ObjectMeta{Name: "c"}}, nil))
}

func TestTheNamespaceIsTheContexts(t *testing.T) {
	s := newServer(t)
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"clusters": [{"name": "x", "cluster": {"server": "`+s.URL+`"}}], "users": [{"name": "x", "user": {}}],
		"contexts": [{"name": "x", "context": {"cluster": "x", "user": "x", "namespace": "blue"}}]}`), 0o600))
	c, err := configflags.NewClientFromConfigFlags(flags(t, "--kubeconfig", path))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.Get(t.Context(), &kates.ConfigMap{ObjectMeta: kates.ObjectMeta{Name: "c"}}, nil))
}

func TestTheMapperIsTheFlags(t *testing.T) {
	s := newServer(t)
	mapper, disco, err := configflags.NewRESTMapper(flags(t, "-s", s.URL))
	require.NoError(t, err)
	mapping, err := mapper.RESTMapping(schema.GroupKind{Kind: "ConfigMap"})
	require.NoError(t, err)
	assert.Equal(t, "configmaps", mapping.Resource.Resource)
	assert.True(t, disco.Fresh())
}

func TestBadFlagsAreErrors(t *testing.T) {
	_, err := configflags.NewClientFromConfigFlags(nil)
	assert.ErrorContains(t, err, "nil")
	_, _, err = configflags.NewRESTMapper(nil)
	assert.ErrorContains(t, err, "nil")
	_, err = configflags.NewClientFromConfigFlags(flags(t, "--kubeconfig", "/does/not/exist"))
	assert.ErrorContains(t, err, "make a client from flags")
	_, err = configflags.NewClientFromConfigFlags(flags(t, "-n", "no such"))
	assert.Error(t, err)
}
