package connection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// TestAConnectionIsNamedByAllThatDecidesWhoAnswers: files of warm starts belong to that name.
func TestAConnectionIsNamedByAllThatDecidesWhoAnswers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca")
	require.NoError(t, os.WriteFile(file, []byte("ca"), 0o600))
	proxy, err := url.Parse("http://proxy:3128")
	require.NoError(t, err)
	reach := func(change func(*rest.Config)) string {
		c := &rest.Config{Host: "https://server:6443/base", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")}}
		change(c)
		name, err := reachOf(c)
		require.NoError(t, err)
		return name
	}
	first := reach(func(*rest.Config) {})
	for name, same := range map[string]func(*rest.Config){
		"a token":                    func(c *rest.Config) { c.BearerToken = "x" },
		"a certificate of the user":  func(c *rest.Config) { c.CertData, c.KeyData = []byte("x"), []byte("y") },
		"the same CA in a file":      func(c *rest.Config) { c.CAData, c.CAFile = nil, file },
		"the address with a slash":   func(c *rest.Config) { c.Host += "/" },
		"what the URL has otherwise": func(c *rest.Config) { c.UserAgent, c.QPS = "x", 7 },
	} {
		assert.Equal(t, first, reach(same), name)
	}
	seen := map[string]string{first: "the first"}
	for name, other := range map[string]func(*rest.Config){
		"another host":    func(c *rest.Config) { c.Host = "https://other:6443/base" },
		"another port":    func(c *rest.Config) { c.Host = "https://server:6444/base" },
		"another path":    func(c *rest.Config) { c.Host = "https://server:6443/bas" },
		"without TLS":     func(c *rest.Config) { c.Host = "http://server:6443/base" },
		"another CA":      func(c *rest.Config) { c.CAData = []byte("other") },
		"the system's CA": func(c *rest.Config) { c.CAData = nil },
		"no check at all": func(c *rest.Config) { c.CAData, c.Insecure = nil, true },
		"another name":    func(c *rest.Config) { c.ServerName = "other" },
		"a proxy":         func(c *rest.Config) { c.Proxy = http.ProxyURL(proxy) },
	} {
		name2 := reach(other)
		assert.Empty(t, seen[name2], name)
		seen[name2] = name
	}
	_, err = reachOf(&rest.Config{Host: "https://server", TLSClientConfig: rest.TLSClientConfig{CAFile: file + "not"}})
	assert.ErrorContains(t, err, "read the CA")
}

// TestNoNameAndNoPathOfAServerMakesAnAnswerUnbounded: only watches and logs of pods have no end.
func TestNoNameAndNoPathOfAServerMakesAnAnswerUnbounded(t *testing.T) {
	const object, list, general = 10, 100, 50
	next := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", 1000)))}, nil
	})
	for _, base := range []string{"", "/api", "/apis", "/k8s/clusters/c-xyz", "/apis/apps/v1", "/log"} {
		bounded := Bounds{Object: object, List: list, General: general, Base: base}.Transport(next)
		for path, most := range map[string]int{
			"/api/v1/namespaces/n/configmaps/log": object, "/api/v1/namespaces/log": object, "/apis/x/v1/things/log": object,
			"/apis/x/v1/pods/p/log": object, "/apis/x/v1/namespaces/n/things/y/log": object, "/log": object, "/anything?watch=true": object,
			"/api?watch=true": general, "/apis/apps/v1?watch=1": general, "/api/v1/pods?watch=false": list, "/api/v1/pods/p?watch=true": object,
			"/apis/x/v1/log": list, "/api/v1/watch/pods": 1000, "/api/v1/pods?watch=true": 1000, "/api/v1/namespaces/n/pods/p/log": 1000,
			"/api/v1/namespaces/n/pods": list,
		} {
			response, err := bounded.RoundTrip(httptest.NewRequest(http.MethodGet, base+path, nil))
			require.NoError(t, err)
			got, _ := io.ReadAll(response.Body)
			assert.Len(t, got, most, base+path)
		}
	}
}

func TestARequestIsToldOfAsItIsWhateverTheServersPath(t *testing.T) {
	for _, base := range []string{"", "/api", "/apis", "/k8s/clusters/c-xyz", "/apis/apps/v1"} {
		u, err := url.Parse("https://gateway.example" + base + "/apis/apps/v1/namespaces/n/deployments/d/scale")
		require.NoError(t, err)
		assert.Equal(t, Asked{
			Verb: "get", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "n", Name: "d",
		}, AskedBy(http.MethodGet, u, base), base)
		if base != "" {
			assert.Equal(t, Asked{Verb: "get"}, AskedBy(http.MethodGet, &url.URL{Path: "/apis/apps/v1/deployments"}, base+"x"), base)
		}
	}
}

// groups is a server without aggregated discovery, with so many groups, and resources in each.
type groups struct{ groups, versions, resources int }

func (g groups) RoundTrip(r *http.Request) (*http.Response, error) {
	say := func(v any) (*http.Response, error) {
		text, err := json.Marshal(v)
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), Request: r,
		}, err
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/api":
		return say(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		all := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for i := range g.groups {
			one := metav1.APIGroup{Name: fmt.Sprintf("g%d.io", i)}
			for v := range g.versions {
				one.Versions = append(one.Versions, metav1.GroupVersionForDiscovery{GroupVersion: fmt.Sprintf("g%d.io/v%d", i, v+1), Version: fmt.Sprintf("v%d", v+1)})
			}
			one.PreferredVersion = one.Versions[0]
			all.Groups = append(all.Groups, one)
		}
		return say(all)
	}
	all := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: parts[len(parts)-1]}
	if len(parts) == 3 {
		all.GroupVersion = parts[1] + "/" + parts[2]
	}
	for i := range g.resources {
		all.APIResources = append(all.APIResources, metav1.APIResource{Name: fmt.Sprint("r", i), Kind: fmt.Sprint("K", i), Verbs: []string{"list"}})
	}
	return say(all)
}

// discovered reads the discovery of a server, with a bound of so many bytes.
func discovered(t *testing.T, g http.RoundTripper, most int64) (discovery.CachedDiscoveryInterface, error) {
	t.Helper()
	c, err := Connect(&rest.Config{
		Host: "http://server.invalid", Transport: g, QPS: -1, WrapTransport: Bounds{Object: most, General: most}.Transport,
	})
	require.NoError(t, err)
	cache := memory.NewMemCacheClient(NewLink(c).Discovery(most))
	_, _, err = discovery.ServerGroupsAndResourcesWithContext(klog.NewContext(t.Context(), logr.Discard()), discovery.ToDiscoveryInterfaceWithContext(cache))
	return cache, err
}

func TestDiscoveryIsBoundedInAllAndSaysWhatIsTooMuch(t *testing.T) {
	const most = 256 << 10
	for name, c := range map[string]struct {
		server groups
		says   []string
	}{
		"a usual server":        {groups{20, 2, 10}, nil},
		"many groups":           {groups{300, 1, 0}, []string{"256 groups and versions in all", "is the first one past that"}},
		"many versions":         {groups{2, 300, 0}, []string{"256 groups and versions in all", `"g0.io"`}},
		"many resources":        {groups{60, 1, 40}, []string{"more than 2048 in all", ".io/v1"}},
		"two with many":         {groups{1, 1, 1100}, []string{"v1 has 1100 resources", "more than 2048 in all"}},
		"large groups":          {groups{5, 1, 1100}, []string{"more than 262144 bytes in all", ".io/v1"}},
		"one larger than all":   {groups{1, 1, 6000}, []string{"bytes", "g0.io/v1"}},
		"none that is too much": {groups{1, 1, 1000}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cache, err := discovered(t, c.server, most)
			if c.says == nil {
				require.NoError(t, err)
				cache.Invalidate()
				_, _, err = cache.ServerGroupsAndResources()
				require.NoError(t, err, "each reading has the whole bound")
				return
			}
			for _, says := range append(c.says, "Tuning.MaxObjectBytes") {
				assert.ErrorContains(t, err, says)
			}
		})
	}
}

// TestWarningsOfAServerAreRememberedUpToABound: a header may have ten megabytes.
func TestWarningsOfAServerAreRememberedUpToABound(t *testing.T) {
	var logged []string
	w := NewWarnings(funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	for range 3 {
		w.HandleWarningHeader(299, "", strings.Repeat("w", 1<<20))
	}
	require.Len(t, logged, 1, "a long one is logged once, too")
	assert.Less(t, len(logged[0]), 2*mostWarning)
	for i := range 3 * mostWarnings {
		w.HandleWarningHeader(299, "", fmt.Sprint("warning ", i))
	}
	held := 0
	w.logged.Range(func(any, any) bool { held++; return true })
	assert.LessOrEqual(t, held, mostWarnings)
}
