package fence

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errOver = errors.New("the lease is over")

// lease is held until the test ends it.
type lease struct{ over atomic.Bool }

func (l *lease) held() error {
	if l.over.Load() {
		return errOver
	}
	return nil
}

// server counts the requests that it has got whole.
func server(t *testing.T, http2 bool) (*http.Client, string, *atomic.Int64) {
	t.Helper()
	var whole atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err == nil {
			whole.Add(1)
		}
	}))
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	client := s.Client()
	client.Transport = Transport(client.Transport)
	return client, s.URL, &whole
}

func send(ctx context.Context, t *testing.T, client *http.Client, method, url string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte("content")))
	require.NoError(t, err)
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func protocols(t *testing.T, f func(t *testing.T, client *http.Client, url string, whole *atomic.Int64)) {
	for name, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			client, url, whole := server(t, http2)
			f(t, client, url, whole)
		})
	}
}

func TestAWriteIsNotSentWhenItsLeaseIsOver(t *testing.T) {
	protocols(t, func(t *testing.T, client *http.Client, url string, whole *atomic.Int64) {
		var l lease
		ctx := With(t.Context(), l.held)
		require.NoError(t, send(ctx, t, client, http.MethodPatch, url))
		l.over.Store(true)
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			require.ErrorIs(t, send(ctx, t, client, method, url), errOver)
			require.ErrorIs(t, send(context.WithoutCancel(With(ctx, func() error { return nil })), t, client, method, url), errOver, "all leases count")
		}
		empty, err := http.NewRequestWithContext(ctx, http.MethodDelete, url, nil)
		require.NoError(t, err)
		_, err = client.Do(empty)
		require.ErrorIs(t, err, errOver)
		assert.Equal(t, int64(1), whole.Load())
		require.NoError(t, send(ctx, t, client, http.MethodGet, url), "reading is allowed")
		require.NoError(t, send(t.Context(), t, client, http.MethodPost, url), "this is another's")
	})
}

// TestAWriteIsNotSentWhenItsLeaseEndsWhileItWaitsForAConnection: the server has no request
// without its body.
func TestAWriteIsNotSentWhenItsLeaseEndsWhileItWaitsForAConnection(t *testing.T) {
	protocols(t, func(t *testing.T, client *http.Client, url string, whole *atomic.Int64) {
		var l lease
		ctx := httptrace.WithClientTrace(With(t.Context(), l.held), &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { l.over.Store(true) },
		})
		require.ErrorIs(t, send(ctx, t, client, http.MethodPost, url), errOver)
		assert.Zero(t, whole.Load())
	})
}

// TestAWriteIsNotSentAgainWhenItsLeaseIsOver: net/http sends a request again when a connection
// turns out to be dead.
func TestAWriteIsNotSentAgainWhenItsLeaseIsOver(t *testing.T) {
	var l lease
	again := Transport(roundTripper(func(r *http.Request) (*http.Response, error) {
		l.over.Store(true)
		b, err := r.GetBody()
		if err == nil {
			_, err = io.ReadAll(b)
		}
		return nil, err
	}))
	require.ErrorIs(t, send(With(t.Context(), l.held), t, &http.Client{Transport: again}, http.MethodPut, "http://x.test"), errOver)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAHorizonIncludesWhatWasThereAndWhatTheWorkHasWritten(t *testing.T) {
	h := HorizonOf(WithHorizon(t.Context(), "a", map[string]string{"pods": "100"}), "a")
	assert.True(t, h.Includes("pods", "p", "100"))
	assert.True(t, h.Includes("services", "s", "200"), "nothing is known of those")
	assert.False(t, h.Includes("pods", "p", "101"))
	h.Wrote("p", "101")
	assert.True(t, h.Includes("pods", "p", "101"))
	assert.False(t, h.Includes("pods", "q", "101"))
	assert.False(t, h.Includes("pods", "p", "102"))
	var none *Horizon
	none.Wrote("p", "1")
	assert.True(t, none.Includes("pods", "p", "102"))
	assert.Nil(t, HorizonOf(t.Context(), "a"))
	other := WithHorizon(t.Context(), "a", map[string]string{"pods": "100"})
	assert.True(t, HorizonOf(other, "b").Includes("pods", "pod", "101"), "the versions of another server")
}

func TestTimeIsWhatTheFasterClockSays(t *testing.T) {
	now := time.Now()
	assert.Equal(t, time.Hour, Between(now, now.Add(time.Hour)))
	assert.Equal(t, time.Hour, Between(now.Round(0), now.Round(0).Add(time.Hour)), "the wall clock alone")
}
