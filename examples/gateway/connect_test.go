package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates/katestest"
)

// away is an application whose endpoints are in another cluster.
const away = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Namespace
metadata: {name: gateway}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: kates}
spec: {controller: gateway.example.com/kates}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  ingressClassName: kates
  defaultBackend: {service: {name: web, port: {number: 80}}}
`

// slice has the endpoint of it, at a port.
const slice = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: %s}]
endpoints: [{addresses: [10.0.0.1]}]
`

// serveAPI serves an API in memory at an address of this machine, and returns its URL.
func serveAPI(t *testing.T, manifests string) string {
	api := katestest.NewServer(t, katestest.WithManifests(manifests))
	transport, err := rest.TransportFor(api.Config)
	require.NoError(t, err)
	to, err := url.Parse(api.Config.Host)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, proxy.FlushInterval = transport, -1
	server := httptest.NewServer(proxy)
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	return server.URL
}

// kubeconfig writes a file whose contexts have these URLs.
func kubeconfig(t *testing.T, dir, file string, urls map[string]string) string {
	var contexts, clusters []string
	for name, url := range urls {
		contexts = append(contexts, fmt.Sprintf("{name: %s, context: {cluster: %[1]s}}", name))
		clusters = append(clusters, fmt.Sprintf("{name: %s, cluster: {server: %q}}", name, url))
	}
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: %s, contexts: [%s], clusters: [%s]}",
		strings.TrimSuffix(file, ".yaml"), strings.Join(contexts, ","), strings.Join(clusters, ","))
	path := filepath.Join(dir, file)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestEndpointsOfOtherClustersAreServed(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "from away") }))
	defer backend.Close() // at 127.0.0.1
	at, err := url.Parse(backend.URL)
	require.NoError(t, err)
	urls := map[string]string{"home": serveAPI(t, away), "east": serveAPI(t, fmt.Sprintf(slice, at.Port()))}
	dir := t.TempDir()
	home := kubeconfig(t, t.TempDir(), "home.yaml", urls)
	kubeconfig(t, dir, "east.yaml", map[string]string{"east": urls["east"]})
	for _, clusters := range []string{"east", dir} {
		ctx, cancel := context.WithCancel(t.Context())
		address, ended := ownAddress(), make(chan error, 1)
		go func() {
			ended <- run(ctx, []string{"-kubeconfig", home, "-clusters", clusters, "-endpoints-on-loopback", "-address", address, "-listen", ""}, io.Discard, t.Output())
		}()
		web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		assert.Eventually(t, func() bool {
			answer, err := web.Get("http://" + address + ":8080/")
			if err != nil {
				return false
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			assert.NoError(t, err) // not require: this is another goroutine
			assert.Equal(t, "from away", string(text), "there is no half configuration")
			return true
		}, 2*time.Minute, 10*time.Millisecond, clusters)
		cancel()
		require.NoError(t, <-ended)
	}
	for _, clusters := range []string{"west", "east,west", dir + "/none"} {
		err := run(t.Context(), []string{"-kubeconfig", home, "-clusters", clusters}, io.Discard, io.Discard)
		require.ErrorContains(t, err, "-clusters: ")
		assert.NotContains(t, err.Error(), "\n")
	}
}
