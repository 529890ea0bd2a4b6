package wire

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	objects "github.com/kates-go/kates/internal/object"
)

func TestAnApplySendsItsOptionsAndTellsWhetherItCreated(t *testing.T) {
	for name, c := range map[string]struct {
		options metav1.PatchOptions
		want    url.Values
		status  int
	}{
		"forced": {
			metav1.PatchOptions{FieldManager: "m", Force: ptr.To(true)},
			url.Values{"fieldManager": {"m"}, "force": {"true"}}, http.StatusOK,
		},
		"not forced": {
			metav1.PatchOptions{FieldManager: "m", Force: ptr.To(false)},
			url.Values{"fieldManager": {"m"}, "force": {"false"}}, http.StatusCreated,
		},
		"a dry run": {
			metav1.PatchOptions{FieldManager: "m", Force: ptr.To(true), DryRun: []string{metav1.DryRunAll}},
			url.Values{"fieldManager": {"m"}, "force": {"true"}, "dryRun": {"All"}}, http.StatusOK,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got *http.Request
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`))
			}))
			defer s.Close()
			plain, err := rest.RESTClientForConfigAndClient(&rest.Config{Host: s.URL, ContentConfig: rest.ContentConfig{
				GroupVersion: &schema.GroupVersion{}, NegotiatedSerializer: clientscheme.Codecs,
			}}, s.Client())
			require.NoError(t, err)
			configMaps := objects.Resource{Namespaced: true}
			configMaps.GroupVersionResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
			server, at := &Server{Plain: plain}, Address{configMaps, "ns", "x"}
			o, created, err := server.Apply(t.Context(), at, []byte(`{}`), c.options)
			require.NoError(t, err)
			assert.Equal(t, "x", o.GetName())
			assert.Equal(t, c.status == http.StatusCreated, created)
			assert.Equal(t, "/api/v1/namespaces/ns/configmaps/x", got.URL.Path)
			assert.Equal(t, "application/apply-patch+yaml", got.Header.Get("Content-Type"))
			assert.Equal(t, c.want, got.URL.Query())
		})
	}
}
