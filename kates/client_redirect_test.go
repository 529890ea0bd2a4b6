package kates_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// An aggregated API server, or something in between, may send the answer.
func TestCredentialsAreNotSentWhereAServerRedirectsTo(t *testing.T) {
	var elsewhere, redirected atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			redirected.Add(1)
			http.Redirect(w, r, other.URL+"/version", http.StatusFound)
		case "/api/v1/namespaces/default/configmaps/here":
			redirected.Add(1)
			http.Redirect(w, r, "/api/v1/namespaces/default/configmaps/there", http.StatusTemporaryRedirect)
		case "/api/v1/namespaces/default/configmaps/there":
			assert.Equal(t, http.MethodGet, r.Method, "a write is not sent on")
			assert.Equal(t, "Bearer secret", r.Header.Get("Authorization"))
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"here","namespace":"default","uid":"u","resourceVersion":"1"}}`))
		default:
			answerDiscovery(w, r)
		}
	}))
	defer server.Close()
	c, err := kates.NewClientFromRESTConfig(&rest.Config{Host: server.URL, BearerToken: "secret"})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.ServerVersion()
	assert.ErrorContains(t, err, "redirects to "+other.URL+": not followed")
	assert.Zero(t, elsewhere.Load())
	var got kates.ConfigMap
	require.NoError(t, c.Get(t.Context(), configMap("here"), &got))
	assert.Equal(t, "u", string(got.UID))
	assert.ErrorContains(t, c.Delete(t.Context(), configMap("here"), nil), "not followed")
	assert.EqualValues(t, 3, redirected.Load())
}

// answerDiscovery serves config maps.
func answerDiscovery(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/api":
		_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
	case "/apis":
		_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
	case "/api/v1":
		_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[` +
			`{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["create","delete","get","list","patch","update","watch"]}]}`))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}
