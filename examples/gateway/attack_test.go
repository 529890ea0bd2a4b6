package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// The page, the metrics and the probes are for those who come directly. nginx runs on the same
// machine, and marks what it forwards.
func TestNothingIsSaidThroughAProxy(t *testing.T) {
	handler := direct(local(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })))
	ask := func(header string) int {
		r := httptest.NewRequest(http.MethodGet, "/debug/kates/", nil)
		r.RemoteAddr = "127.0.0.1:1234"
		if header != "" {
			r.Header.Set(header, "")
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	assert.Equal(t, http.StatusOK, ask(""))
	for _, header := range []string{nginx.LoopHeader, "cdn-loop", "via", "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"} {
		assert.Equal(t, http.StatusForbidden, ask(header), header)
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
