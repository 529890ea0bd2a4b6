package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/examples/gateway/loops"
	"github.com/kates-go/kates/examples/gateway/nginx"
)

// The page, the metrics and the probes are for those who come directly. nginx runs on the same
// machine, and marks what it forwards.
func TestNothingIsSaidThroughAProxy(t *testing.T) {
	o := newObservers()
	defer o.close()
	handler := o.handler(&loops.Gateway{}, &dryRun{}, false)
	ask := func(path, header string) int {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.RemoteAddr, r.Host = "127.0.0.1:1234", "127.0.0.1:8099"
		if header != "" {
			r.Header.Set(header, "")
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	assert.Equal(t, http.StatusOK, ask("/debug/kates/", ""))
	assert.Equal(t, http.StatusOK, ask("/metrics", ""))
	for _, header := range []string{nginx.LoopHeader, "cdn-loop", "via", "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"} {
		for _, path := range []string{"/debug/kates/", "/metrics", "/healthz", "/readyz"} {
			assert.Equal(t, http.StatusForbidden, ask(path, header), "%s: %s", path, header)
		}
	}
}

func TestObjectsGetNothingOfTheMachine(t *testing.T) {
	s, err := parse([]string{"-kubeconfig", "x", "-listen", ":8099", "-addresses", "192.0.2.1,2001:db8::1"}, io.Discard)
	require.NoError(t, err)
	m := s.translate().Machine
	assert.Equal(t, []int{8099}, m.Ports)
	for _, address := range []string{"127.0.0.1", "192.0.2.1", "2001:db8::1"} { // the first one is of an interface
		assert.Contains(t, m.Addresses, netip.MustParseAddr(address))
	}
	assert.Nil(t, s.translate().Endpoint, "endpoints stay where they are: those on the machine are left out")
	for _, listen := range []string{"", "127.0.0.1:0"} {
		s, err = parse([]string{"-listen", listen}, io.Discard)
		require.NoError(t, err)
		assert.Empty(t, s.translate().Machine.Ports)
	}
}
