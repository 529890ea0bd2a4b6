package reach_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kates-go/kates/internal/client/reach"
)

var errWorse = errors.New("it is worse")

// asked returns the error of a request, wrapped as callers wrap it.
func asked(t *testing.T, c *http.Client, address string) error {
	t.Helper()
	answer, err := c.Get(address + "/api")
	if err == nil {
		_ = answer.Body.Close()
	}
	require.Error(t, err)
	return fmt.Errorf("look up: %w: %w", errWorse, err)
}

func TestThatTheServerCannotBeReachedIsSaidFirst(t *testing.T) {
	// The handler outlasts the request: an answer may count that comes while the client gives up.
	over := make(chan struct{})
	silent := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer silent.Close()
	defer close(over)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	closing := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer closing.Close()
	nobody := httptest.NewServer(nil)
	nobody.Close()
	impatient := silent.Client()
	impatient.Timeout = 50 * time.Millisecond
	for name, c := range map[string]struct {
		client  *http.Client
		address string
		says    string
	}{
		"nobody there":      {http.DefaultClient, nobody.URL, "connection refused"},
		"another authority": {http.DefaultClient, silent.URL, "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		"no answer":         {impatient, silent.URL, "Client.Timeout exceeded"},
		"no TLS":            {http.DefaultClient, strings.Replace(plain.URL, "http:", "https:", 1), "server gave HTTP response to HTTPS client"},
		"it closes":         {http.DefaultClient, closing.URL, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			err := asked(t, c.client, c.address)
			first := reach.First(err)
			said := first.Error()
			assert.Regexp(t, `^cannot reach the API server at `+c.address+`: .*\(look up: it is worse\)$`, said)
			assert.Contains(t, said, c.says)
			assert.ErrorIs(t, first, err)
			assert.ErrorIs(t, first, errWorse)
			var request *url.Error
			assert.ErrorAs(t, first, &request)

			outer := reach.First(fmt.Errorf("run: %w", fmt.Errorf("watch: %w", first)))
			assert.Equal(t, strings.Replace(said, "(look up", "(run: watch: look up", 1), outer.Error())
			assert.ErrorIs(t, outer, first)
			assert.NotContains(t, errors.Unwrap(outer).Error(), "(run")
		})
	}
}

func TestOtherErrorsStayAsTheyAre(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	get := func(err error) error { return &url.Error{Op: "Get", URL: "https://a:1/api", Err: err} }
	for _, err := range []error{
		nil, errWorse, io.EOF,
		get(context.Canceled),
		get(errors.New("getting credentials: exec: executable x not found")),
		get(fmt.Errorf("oauth2: %w", get(refused))), // another server's
		fmt.Errorf("watch: %w", &url.Error{Op: "Get", URL: "https://a:1/%zz", Err: refused}),
		// not at the end: it is unknown what was being done
		fmt.Errorf("%w: and so on", get(refused)),
	} {
		assert.Equal(t, err, reach.First(err))
	}
	assert.NotEqual(t, get(refused), reach.First(fmt.Errorf("watch: %w", get(refused))))
	late := fmt.Errorf("%w (%w)", context.DeadlineExceeded, reach.First(fmt.Errorf("watch: %w", get(refused))))
	assert.Equal(t, late, reach.First(late))
}
