package main

import (
	"encoding/json"
	"io"
	"net/http"
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
	assert.Contains(t, []int{200, 500}, code)
	code, _ = get(t, strings.Replace(url, pagePath, "/healthz", 1))
	assert.Equal(t, http.StatusOK, code)
	code, body := get(t, url)
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, "<html")
	code, body = get(t, url+"?format=json")
	assert.Equal(t, http.StatusOK, code)
	assert.True(t, json.Valid([]byte(body)), body)
	request, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Host = "evil.example" // a web site that resolves to this machine
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	assert.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusForbidden, answer.StatusCode)
	http.DefaultClient.CloseIdleConnections()
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
