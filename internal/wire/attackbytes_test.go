package wire

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
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
