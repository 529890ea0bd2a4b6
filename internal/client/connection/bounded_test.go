package connection

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnAnswerIsBoundedByWhatItIsTheAnswerTo(t *testing.T) {
	const object, list, general = 10, 100, 50
	next := roundTripper(func(r *http.Request) (*http.Response, error) {
		code := http.StatusOK
		if strings.Contains(r.URL.RawQuery, "fail") {
			code = http.StatusNotFound
		}
		return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", 1000)))}, nil
	})
	bounded := Bounds{Object: object, List: list, General: general}.Transport(next)
	for request, most := range map[string]int{
		"GET /api": general, "GET /apis": general, "GET /api/v1": general, "GET /apis/apps/v1": general, "GET /version": general, "GET /openapi/v3": general,
		"GET /apis?fail": object, "GET /openapi/v3/apis/apps/v1": general, "GET /elsewhere": object,
		"GET /api/v1/pods": list, "GET /api/v1/pods?watch=true": 1000, "GET /api/v1/pods?watch=true&fail": object, "GET /api/v1/pods?fail": object,
		"GET /api/v1/namespaces/ns/pods": list, "GET /api/v1/namespaces/ns/pods/p": object, "GET /api/v1/namespaces/ns": object, "GET /api/v1/nodes/n": object,
		"GET /api/v1/namespaces/ns/pods/p/log": 1000, "GET /api/v1/namespaces/ns/pods/p/status": object,
		"GET /apis/apps/v1/deployments": list, "GET /apis/apps/v1/namespaces/ns/deployments/d": object, "GET /apis/apps/v1/namespaces/ns/deployments?watch=1": 1000,
		"POST /api/v1/namespaces/ns/pods": object, "DELETE /api/v1/namespaces/ns/pods": object,
	} {
		method, path, _ := strings.Cut(request, " ")
		r := httptest.NewRequest(method, path, nil)
		response, err := bounded.RoundTrip(r)
		require.NoError(t, err)
		got, err := io.ReadAll(response.Body)
		assert.Len(t, got, most, request)
		assert.Equal(t, most < 1000, err != nil, request)
		if err != nil {
			assert.ErrorIs(t, err, errLongAnswer)
		}
	}
	whole, err := Bounds{Object: 1000}.Transport(next).RoundTrip(httptest.NewRequest(http.MethodPost, "/api", nil))
	require.NoError(t, err)
	got, err := io.ReadAll(whole.Body)
	require.NoError(t, err, "an answer of just that size")
	assert.Len(t, got, 1000)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
