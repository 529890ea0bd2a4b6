package kates

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kates-go/kates/internal/client/kubeconfig"
)

const twoClusters = `
apiVersion: v1
kind: Config
current-context: test
contexts:
- {name: test, context: {cluster: test, user: me}}
- {name: prod, context: {cluster: prod, user: me, namespace: shop}}
- {name: broken, context: {cluster: missing, user: me}}
clusters:
- {name: test, cluster: {server: "https://test.example.com"}}
- {name: prod, cluster: {server: "https://prod.example.com"}}
users:
- {name: me, user: {token: secret}}
`

// kubeconfigs isolates a test from the machine's configuration. It writes files and lists them in
// $KUBECONFIG.
func kubeconfigs(t *testing.T, contents ...string) (paths []string) {
	t.Helper()
	folder := t.TempDir()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("POD_NAMESPACE", "")
	list := ""
	for i, content := range contents {
		path := filepath.Join(folder, string(rune('a'+i)))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		paths = append(paths, path)
		list += path + string(filepath.ListSeparator)
	}
	if list == "" {
		list = filepath.Join(folder, "none")
		paths = []string{list}
	}
	t.Setenv("KUBECONFIG", list)
	return paths
}

func TestTheZeroConfigurationIsTheCurrentContext(t *testing.T) {
	kubeconfigs(t, twoClusters)
	cfg, namespace, err := ClientConfig{}.load()
	require.NoError(t, err)
	assert.Equal(t, "https://test.example.com", cfg.Host)
	assert.Equal(t, "secret", cfg.BearerToken)
	assert.Equal(t, "default", namespace)
	public, err := ClientConfig{}.RESTConfig()
	require.NoError(t, err)
	assert.Equal(t, cfg.Host+cfg.BearerToken, public.Host+public.BearerToken)
	_, err = ClientConfig{Context: "none"}.RESTConfig()
	require.ErrorContains(t, err, "none")
}

func TestContextAndNamespaceAreThoseAskedFor(t *testing.T) {
	kubeconfigs(t, twoClusters)
	cfg, namespace, err := ClientConfig{Context: "prod"}.load()
	require.NoError(t, err)
	assert.Equal(t, "https://prod.example.com", cfg.Host)
	assert.Equal(t, "shop", namespace)

	_, namespace, err = ClientConfig{Context: "prod", Namespace: "other"}.load()
	require.NoError(t, err)
	assert.Equal(t, "other", namespace)
}

func TestKubeconfigListsAreMergedAndMissingFilesInThemIgnored(t *testing.T) {
	paths := kubeconfigs(t, "current-context: prod\n", twoClusters)
	require.NoError(t, os.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none")+string(filepath.ListSeparator)+paths[0]+string(filepath.ListSeparator)+paths[1]))
	cfg, _, err := ClientConfig{}.load()
	require.NoError(t, err)
	assert.Equal(t, "https://prod.example.com", cfg.Host)
}

func TestANamedKubeconfigIsReadInsteadOfTheList(t *testing.T) {
	path := kubeconfigs(t, twoClusters)[0]
	kubeconfigs(t, "current-context: other\n")
	cfg, _, err := ClientConfig{Kubeconfig: path}.load()
	require.NoError(t, err)
	assert.Equal(t, "https://test.example.com", cfg.Host)
}

func TestConfigurationErrorsSayWhatToDo(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for name, tc := range map[string]struct {
		content  string
		config   ClientConfig
		messages []string
	}{
		"nothing":          {"", ClientConfig{}, []string{"no cluster configured: no kubeconfig at ", "and not running in a cluster"}},
		"missing file":     {twoClusters, ClientConfig{Kubeconfig: missing}, []string{missing, "no such file"}},
		"not a kubeconfig": {"a: b: c", ClientConfig{}, []string{"load kubeconfig"}},
		"unknown context":  {twoClusters, ClientConfig{Context: "nope"}, []string{`there is no context "nope"`, "it has broken, prod, test"}},
		"context of none":  {"", ClientConfig{Context: "nope"}, []string{`there is no context "nope", it has none`, "(which does not exist)"}},
		"current is gone":  {"current-context: gone\n" + twoClusters[len("\napiVersion: v1\nkind: Config\ncurrent-context: test\n"):], ClientConfig{}, []string{`there is no context "gone"`}},
		"no current":       {twoClusters[len("\napiVersion: v1\nkind: Config\ncurrent-context: test\n"):], ClientConfig{}, []string{"no current context", "broken, prod, test"}},
		"no such cluster":  {twoClusters, ClientConfig{Context: "broken"}, []string{"load kubeconfig", "missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			var path string
			if tc.content == "" {
				path = kubeconfigs(t)[0]
			} else {
				path = kubeconfigs(t, tc.content)[0]
			}
			_, _, err := tc.config.load()
			require.Error(t, err)
			for _, message := range tc.messages {
				assert.ErrorContains(t, err, message)
			}
			if tc.config.Kubeconfig == "" {
				assert.ErrorContains(t, err, path, "the error names the file")
			}
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}

// TestAKubeconfigThatIsNamedIsNeverReplacedByTheClusterOfThePod: client-go treats a file without
// a current context as no file, and writes to another cluster.
func TestAKubeconfigThatIsNamedIsNeverReplacedByTheClusterOfThePod(t *testing.T) {
	for _, content := range []string{"apiVersion: v1\nkind: Config\n", twoClusters[len("\napiVersion: v1\nkind: Config\ncurrent-context: test\n"):]} {
		path := kubeconfigs(t, content)[0]
		t.Setenv("KUBECONFIG", "")
		_, _, err := ClientConfig{Kubeconfig: path}.load()
		assert.ErrorContains(t, err, "load kubeconfig from "+path+": it has no current context (choose one, it has ")
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		load := kubeconfig.BindFlags(flags)
		require.NoError(t, flags.Parse([]string{"--kubeconfig=" + path}))
		_, _, err = load()
		assert.ErrorContains(t, err, "no current context")
		flags = pflag.NewFlagSet("test", pflag.ContinueOnError)
		load = kubeconfig.BindFlags(flags)
		require.NoError(t, flags.Parse([]string{"--kubeconfig=" + path, "--server=https://only.example.com"}))
		cfg, _, err := load()
		require.NoError(t, err)
		assert.Equal(t, "https://only.example.com", cfg.Host)
	}
}

func TestTheHomeFileIsReadWithoutKUBECONFIG(t *testing.T) {
	path := kubeconfigs(t, twoClusters)[0]
	t.Setenv("KUBECONFIG", "")
	defer func(was string) { clientcmd.RecommendedHomeFile = was }(clientcmd.RecommendedHomeFile)
	clientcmd.RecommendedHomeFile = path
	cfg, _, err := ClientConfig{}.load()
	require.NoError(t, err)
	assert.Equal(t, "https://test.example.com", cfg.Host)
}

func TestFactoryFlagsOverrideTheKubeconfig(t *testing.T) {
	path := kubeconfigs(t, twoClusters)[0]
	t.Setenv("KUBECONFIG", "")
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	load := kubeconfig.BindFlags(flags)
	require.NoError(t, flags.Parse([]string{
		"--kubeconfig", path, "--context=prod", "-n", "mine", "-s", "https://other.example.com", "--token=t",
		"--as=jane", "--as-group=dev", "--as-group=ops", "--insecure-skip-tls-verify", "--request-timeout=5s",
	}))
	cfg, namespace, err := load()
	require.NoError(t, err)
	assert.Equal(t, "mine", namespace)
	assert.Equal(t, "https://other.example.com", cfg.Host)
	assert.Equal(t, "t", cfg.BearerToken)
	assert.Equal(t, "jane", cfg.Impersonate.UserName)
	assert.Equal(t, []string{"dev", "ops"}, cfg.Impersonate.Groups)
	assert.True(t, cfg.Insecure)
	assert.Equal(t, 5*time.Second, cfg.Timeout)
}

func TestFactoryTakesKubectlsExtrasAndCacheFolderAndTheClientsOptions(t *testing.T) {
	path := kubeconfigs(t, twoClusters)[0]
	make := func(args ...string) (*Client, *rest.Config, error) {
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		factory := NewClientFactory(flags, WithNamespace("option"), WithFieldManager("me"))
		require.NoError(t, flags.Parse(append(args, "--kubeconfig", path, "-n", "flag", "--cache-dir", "/nowhere/to/be/written")))
		c, err := factory()
		if err != nil {
			return nil, nil, err
		}
		t.Cleanup(c.Close)
		flags = pflag.NewFlagSet("test", pflag.ContinueOnError)
		load := kubeconfig.BindFlags(flags)
		require.NoError(t, flags.Parse(append(args, "--kubeconfig", path)))
		cfg, _, err := load()
		return c, cfg, err
	}
	c, cfg, err := make("--as=jane", "--as-user-extra=scopes=a=b", "--as-user-extra", "scopes=c", "--as-user-extra=why=tests")
	require.NoError(t, err)
	assert.Equal(t, "option", c.core.Namespace)
	assert.Equal(t, "me", c.core.FieldManager)
	assert.Equal(t, map[string][]string{"scopes": {"a=b", "c"}, "why": {"tests"}}, cfg.Impersonate.Extra)
	assert.Equal(t, "jane", cfg.Impersonate.UserName)
	for _, wrong := range []string{"scopes", "=a"} {
		_, _, err = make("--as=jane", "--as-user-extra", wrong)
		assert.ErrorContains(t, err, "--as-user-extra \""+wrong+"\": it is key=value")
	}
	_, _, err = make("--as-user-extra=a=b")
	assert.ErrorContains(t, err, "impersonat", "of whom?")
}

func TestFactoryWorksWithAServerFlagAlone(t *testing.T) {
	kubeconfigs(t)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	load := kubeconfig.BindFlags(flags)
	require.NoError(t, flags.Parse([]string{"--server=https://only.example.com"}))
	cfg, namespace, err := load()
	require.NoError(t, err)
	assert.Equal(t, "https://only.example.com", cfg.Host)
	assert.Equal(t, "default", namespace)
}

func TestAServerOrClusterFlagStandsInForACluster(t *testing.T) {
	for flag, host := range map[string]string{
		"--cluster=test": "https://test.example.com", "--server=https://other.example.com": "https://other.example.com",
	} {
		kubeconfigs(t, twoClusters)
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		load := kubeconfig.BindFlags(flags)
		require.NoError(t, flags.Parse([]string{"--context=broken", flag}))
		cfg, _, err := load()
		require.NoError(t, err, flag)
		assert.Equal(t, host, cfg.Host)
	}
}

func TestFactoryWithoutFlagsIsTheZeroConfiguration(t *testing.T) {
	kubeconfigs(t, twoClusters)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	load := kubeconfig.BindFlags(flags)
	require.NoError(t, flags.Parse(nil))
	cfg, _, err := load()
	require.NoError(t, err)
	want, _, err := ClientConfig{}.load()
	require.NoError(t, err)
	assert.Equal(t, want, cfg)
}

func TestFactoryInsistsOnTheOrderBindParseCall(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	factory := NewClientFactory(flags)
	_, err := factory()
	assert.ErrorContains(t, err, "not parsed yet")
	for _, name := range []string{"kubeconfig", "cluster", "user", "certificate-authority", "client-key"} {
		assert.NotNil(t, flags.Lookup(name), name)
	}
	assert.Nil(t, flags.Lookup("password"))

	require.NoError(t, flags.Parse(nil))
	assert.Panics(t, func() { NewClientFactory(flags) })
}

func TestInClusterIsFalseWithoutTheAddressOfAServer(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	assert.False(t, InCluster())
}

func TestATokenThatIsRefusedIsReadAgainFromItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	rotate := func(token string) { require.NoError(t, os.WriteFile(file, []byte(token), 0o600)) }
	rotate("old")
	var seen []string
	c := &rest.Config{Host: "https://example.com", BearerToken: "older", BearerTokenFile: file}
	c.Wrap(func(http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			seen = append(seen, r.Header.Get("Authorization"))
			status := http.StatusUnauthorized
			if r.Header.Get("Authorization") == "Bearer new" {
				status = http.StatusOK
			}
			return &http.Response{StatusCode: status, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
		})
	})
	client, err := NewClientFromRESTConfig(c)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	_, err = client.ServerVersion()
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)
	rotate("new")
	_, _ = client.ServerVersion()
	assert.Equal(t, []string{"Bearer old", "Bearer new"}, seen)
	assert.Equal(t, file, c.BearerTokenFile, "the configuration is copied")

	c.BearerTokenFile += "-missing"
	client, err = NewClientFromRESTConfig(c)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	_, _ = client.ServerVersion()
	assert.Equal(t, "Bearer older", seen[2], "without the file it is the configuration's")
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWhatAKubeconfigSaysOfTheConnectionIsKept: the impersonated user, the proxy and the server
// name. The REST configuration is copied.
func TestWhatAKubeconfigSaysOfTheConnectionIsKept(t *testing.T) {
	var asked []*http.Request
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Clone(r.Context()))
		_, _ = w.Write([]byte(`{"major":"1","minor":"36"}`))
	}))
	defer proxy.Close()
	kubeconfigs(t, `
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u, namespace: shop}}]
clusters: [{name: c, cluster: {server: "http://cluster.invalid/k8s/c-1", proxy-url: "`+proxy.URL+`"}}]
users: [{name: u, user: {token: sesame, as: jane, as-uid: "7", as-groups: [admins], as-user-extra: {why: [tests]}}}]
`)
	c, err := NewClient(ClientConfig{})
	require.NoError(t, err)
	defer c.Close()
	assert.Equal(t, "shop", c.core.Namespace)
	_, err = c.ServerVersion()
	require.NoError(t, err)
	require.NotEmpty(t, asked)
	assert.Equal(t, "http://cluster.invalid/k8s/c-1/version", asked[0].RequestURI)
	for header, want := range map[string]string{
		"Authorization": "" /* a token goes over TLS alone */, "Impersonate-User": "jane", "Impersonate-Uid": "7", "Impersonate-Group": "admins", "Impersonate-Extra-Why": "tests",
	} {
		assert.Equal(t, want, asked[0].Header.Get(header), header)
	}
	given := &rest.Config{Host: proxy.URL, BearerToken: "sesame", QPS: 3, Impersonate: rest.ImpersonationConfig{UserName: "jane"}}
	before := rest.CopyConfig(given)
	c, err = NewClientFromRESTConfig(given, WithRateLimit(7, 8))
	require.NoError(t, err)
	c.Close()
	assert.Equal(t, before, given)
}
