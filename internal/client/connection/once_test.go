package connection

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// busy is a server that answers with a code and a Retry-After, a few times, and then with 200.
type busy struct {
	code, times int

	mu   sync.Mutex
	came map[string]int // requests, by method
}

func (b *busy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.came[r.Method]++
	w.Header().Set("Content-Type", "application/json")
	if b.came[r.Method] <= b.times {
		w.Header().Set(retryAfter, "0")
		w.WriteHeader(b.code)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":` +
			strconv.Itoa(b.code) + `,"details":{"retryAfterSeconds":7}}`))
		return
	}
	_, _ = w.Write([]byte(`{"kind":"ConfigMap","apiVersion":"v1"}`))
}

// sendAll sends a request of each verb with each REST client of a connection, and returns how many
// requests of a method came for one.
func sendAll(t *testing.T, b *busy, config rest.Config) (came map[string]int, failed map[string]error) {
	t.Helper()
	server := httptest.NewServer(b)
	defer server.Close()
	config.Host = server.URL
	made, err := Connect(&config)
	require.NoError(t, err)
	defer made.Close()
	came, failed = map[string]int{}, map[string]error{}
	for is := range made.clients {
		l := &linked{NewLink(made), is}
		for method, request := range map[string]*rest.Request{
			http.MethodGet: l.Get(), http.MethodPost: l.Post(), http.MethodPut: l.Put(),
			http.MethodPatch: l.Patch(types.MergePatchType), http.MethodDelete: l.Delete(),
		} {
			b.mu.Lock()
			b.came = map[string]int{}
			b.mu.Unlock()
			failed[method] = request.AbsPath("/x").Body([]byte(`{}`)).Do(t.Context()).Error()
			if before, ok := came[method]; ok {
				assert.Equal(t, before, b.came[method], "%s by client %d", method, is)
			}
			came[method] = b.came[method]
		}
	}
	return came, failed
}

func TestNoWriteThatMayHaveBeenStoredIsSentTwiceAndEveryReadIs(t *testing.T) {
	for _, code := range []int{500, 502, 503, 504, 599} {
		came, failed := sendAll(t, &busy{code: code, times: 3}, rest.Config{QPS: -1})
		once := map[string]int{"GET": 4, "POST": 1, "PUT": 1, "PATCH": 1, "DELETE": 1}
		assert.Equal(t, once, came, "%d", code)
		for method, err := range failed {
			if method == http.MethodGet {
				assert.NoError(t, err)
				continue
			}
			assert.Equal(t, code, codeOf(t, err), "%s: it is the server's error", method)
			wait, suggested := apierrors.SuggestsClientDelay(err)
			assert.True(t, suggested && wait == 7, "%s: the error still says when to try again", method)
		}
	}
}

func codeOf(t *testing.T, err error) int {
	t.Helper()
	status, ok := err.(apierrors.APIStatus)
	require.True(t, ok, "%T: %v", err, err)
	return int(status.Status().Code)
}

func TestAWriteThatTheServerHasNotBegunIsSentAgain(t *testing.T) {
	came, failed := sendAll(t, &busy{code: http.StatusTooManyRequests, times: 3}, rest.Config{QPS: -1})
	all := map[string]int{"GET": 4, "POST": 4, "PUT": 4, "PATCH": 4, "DELETE": 4}
	assert.Equal(t, all, came)
	for _, err := range failed {
		assert.NoError(t, err)
	}
}

// standIn is a transport of a user, which answers by itself.
type standIn struct{ response *http.Response }

func (a standIn) RoundTrip(*http.Request) (*http.Response, error) { return a.response, nil }

func TestTheUsersTransportsAnswerIsJudgedAndLeftAsItIs(t *testing.T) {
	header := http.Header{retryAfter: {"1"}, "X": {"y"}}
	theirs := &http.Response{StatusCode: 503, Header: header, Body: http.NoBody}
	config := &rest.Config{Host: "http://server", WrapTransport: func(http.RoundTripper) http.RoundTripper {
		return standIn{theirs}
	}}
	made, err := Connect(config)
	require.NoError(t, err)
	defer made.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://server/x", http.NoBody)
	require.NoError(t, err)
	got, err := made.http.Do(request)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	assert.Equal(t, []string{"X"}, slices.Sorted(maps.Keys(got.Header)))
	assert.Equal(t, http.Header{retryAfter: {"1"}, "X": {"y"}}, theirs.Header, "it may be shared")
}
