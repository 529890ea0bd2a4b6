package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// served is a program that serves its page, and the address that it says.
func served(t *testing.T, args ...string) (r *running, url string) {
	t.Helper()
	c := newCluster(t)
	r = c.start(args...)
	said := regexp.MustCompile(`Serving (http://\S+)\n`)
	for { // it is said before the first snapshot is asked for
		if found := said.FindStringSubmatch(r.err.String()); found != nil {
			return r, found[1]
		}
		select {
		case code := <-r.code:
			require.FailNow(t, "it has ended", "%d: %s", code, r.err.String())
		case <-r.err.wrote:
		}
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	answer, err := http.Get(url)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	defer http.DefaultClient.CloseIdleConnections()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(body)
}

func TestThePageIsServedOnThisMachineOnly(t *testing.T) {
	r, url := served(t, "svc", "--serve=:0")
	assert.True(t, strings.HasPrefix(url, "http://127.0.0.1:"), url)
	code, _ := get(t, strings.Replace(url, pagePath, "/readyz", 1))
	assert.Contains(t, []int{200, 503}, code)
	assert.Zero(t, r.stop(nil))
	assert.NotContains(t, r.err.String(), "error")
}

func TestAnAddressThatIsInUseIsAnError(t *testing.T) {
	r, url := served(t, "svc", "--serve=127.0.0.1:0")
	address := strings.TrimPrefix(strings.TrimSuffix(url, pagePath), "http://")
	code, _, err := newCluster(t).run("svc", "--serve", address)
	assert.Equal(t, 1, code)
	assert.Contains(t, err, "error: --serve: listen tcp")
	assert.Zero(t, r.stop(nil))
}

func TestAWebSiteThatResolvesToThisMachineReadsNothing(t *testing.T) {
	handler := localOnly(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "content")
	}))
	for host, allowed := range map[string]bool{
		"localhost": true, "localhost:8080": true, "127.0.0.1:8080": true, "[::1]:8080": true,
		"evil.example": false, "evil.example:8080": false, "10.0.0.1:8080": false, "localhost.evil.example": false,
	} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Host = host
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		assert.Equal(t, allowed, answer.Code == http.StatusOK, host)
		assert.Equal(t, allowed, strings.Contains(answer.Body.String(), "content"), host)
	}
}
