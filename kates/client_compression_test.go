package kates

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestNothingIsCompressedUnlessAskedFor(t *testing.T) {
	for name, options := range map[string][]Option{"": nil, "gzip": {Tuning{CompressedLists: true}}} {
		accepted := make(chan string, 1)
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			accepted <- r.Header.Get("Accept-Encoding")
			_, _ = w.Write([]byte(`{"major":"1","minor":"36"}`))
		}))
		defer server.Close()
		c, err := NewClientFromRESTConfig(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, options...)
		require.NoError(t, err)
		defer c.Close()
		_, err = c.ServerVersion()
		require.NoError(t, err)
		assert.Equal(t, name, <-accepted)
	}
}
