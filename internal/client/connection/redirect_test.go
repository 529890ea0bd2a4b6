package connection

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// redirecting answers the first request with a redirect, and notes where the second one goes.
type redirecting struct {
	to, came string
}

func (r *redirecting) RoundTrip(q *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	if r.to == "" {
		r.came = q.URL.String()
	} else {
		answer.Header().Set("Location", r.to)
		answer.Code = http.StatusTemporaryRedirect
		r.to = ""
	}
	return answer.Result(), nil
}

func TestARedirectIsFollowedOnlyToTheSameOrigin(t *testing.T) {
	for _, c := range []struct {
		method, asked, to string
		followed          bool
	}{
		{"GET", "https://a.test:6443/x", "/y", true},
		{"GET", "https://a.test/x", "https://A.test:443/y", true},
		{"GET", "http://a.test:80/x", "http://a.test/y", true},
		{"GET", "http://[::1]:80/x", "http://[::1]/y", true},
		{"GET", "http://a.test/x", "https://a.test/y", false},
		{"GET", "http://a.test:8080/x", "https://a.test:8443/y", false},
		{"GET", "http://a.test:443/x", "https://a.test:443/y", false},
		{"GET", "https://a.test/x", "http://a.test/y", false},
		{"GET", "https://a.test/x", "https://a.test:444/y", false},
		{"GET", "https://a.test:6443/x", "https://a.test/y", false},
		{"GET", "https://a.test/x", "https://b.test/y", false},
		{"GET", "https://a.test/x", "https://a.test.evil.test/y", false},
		{"GET", "https://a.test/x", "https://a.test@b.test/y", false},
		{"GET", "https://a.test/x", "https://me:other@a.test/y", false},
		{"GET", "https://a.test/x", "//b.test/y", false},
		{"GET", "https://a.test/x", "wss://a.test/y", false},
		{"POST", "https://a.test/x", "/y", false},
		{"DELETE", "https://a.test/x", "/y", false},
	} {
		far := &redirecting{to: c.to}
		client := WithinServer(&http.Client{Transport: far})
		asked, err := http.NewRequestWithContext(t.Context(), c.method, c.asked, http.NoBody)
		require.NoError(t, err)
		answer, err := client.Do(asked)
		if answer != nil {
			_ = answer.Body.Close()
		}
		if c.followed {
			assert.NoError(t, err, "%v", c)
		} else {
			assert.ErrorContains(t, err, "not followed", "%v", c)
		}
		assert.Equal(t, c.followed, far.came != "", "%v", c)
	}
}
