package connection

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
)

// pipes are the connections to a server that has no network.
type pipes struct {
	made chan net.Conn
	end  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.end)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "server"} }

// piped returns a connection to the server, and how many of its network's connections are open.
func (p *pipes) piped(t *testing.T, wrap transport.WrapperFunc) (*Connection, *atomic.Int64) {
	open := &atomic.Int64{}
	c, err := Connect(&rest.Config{Host: "http://server", WrapTransport: wrap, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		p.made <- theirs
		open.Add(1)
		return &countedPipe{Conn: ours, open: open}, nil
	}})
	require.NoError(t, err)
	return c, open
}

type countedPipe struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *countedPipe) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

// TestG11AFormerConnectionIsClosedAfterItsLastRequest: not sooner, and not later.
func TestG11AFormerConnectionIsClosedAfterItsLastRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{made: make(chan net.Conn), end: make(chan struct{})}
		say := make(chan string)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for text := range say {
				_, _ = io.WriteString(w, text)
				w.(http.Flusher).Flush()
			}
		})}
		go func() { _ = server.Serve(p) }()
		defer func() { assert.NoError(t, server.Close()) }()
		former, old := p.piped(t, nil)
		link := NewLink(former)
		go func() { say <- "before" }()
		body, err := link.Now().clients[untyped].Get().AbsPath("/").Stream(t.Context())
		require.NoError(t, err)
		read := func() string {
			text := make([]byte, 10)
			n, _ := body.Read(text)
			return string(text[:n])
		}
		assert.Equal(t, "before", read())

		next, open := p.piped(t, nil)
		link.Exchange(next)
		<-time.After(time.Minute)
		assert.EqualValues(t, 1, old.Load(), "a request is under way")
		go func() { say <- "after" }()
		assert.Equal(t, "after", read())
		close(say)
		assert.Empty(t, read())
		require.NoError(t, body.Close())
		<-time.After(2 * patience)
		synctest.Wait()
		assert.Zero(t, old.Load())
		assert.Empty(t, link.former)

		_, err = link.Now().clients[untyped].Get().AbsPath("/").DoRaw(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 1, open.Load())
		link.Close()
		assert.Zero(t, open.Load())
	})
}

// opaque is a caller's wrapper that shows neither what it wraps nor how to close connections.
type opaque struct{ next http.RoundTripper }

func (o opaque) RoundTrip(r *http.Request) (*http.Response, error) { return o.next.RoundTrip(r) }

// showing is one that shows what it wraps.
type showing struct{ opaque }

func (s showing) WrappedRoundTripper() http.RoundTripper { return s.next }

// closer is one that closes connections by itself.
type closer struct {
	opaque
	closed *atomic.Int64
}

func (c closer) CloseIdleConnections() { c.closed.Add(1) }

func TestG11TheConnectionsBeneathAWrapperAreClosedAtOnceAndNothingIsLogged(t *testing.T) {
	var logged strings.Builder
	klog.SetLogger(funcr.New(func(_, args string) { logged.WriteString(args + "\n") }, funcr.Options{}))
	defer klog.ClearLogger()
	var closed atomic.Int64
	for name, wrap := range map[string]func(http.RoundTripper) http.RoundTripper{
		"none":                 nil,
		"one that shows":       func(next http.RoundTripper) http.RoundTripper { return showing{opaque{next}} },
		"one that shows none":  func(next http.RoundTripper) http.RoundTripper { return opaque{next} },
		"one that does it all": func(next http.RoundTripper) http.RoundTripper { return closer{opaque{next}, &closed} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pipes{made: make(chan net.Conn), end: make(chan struct{})}
				server := &http.Server{Handler: http.NotFoundHandler()}
				go func() { _ = server.Serve(p) }()
				defer func() { assert.NoError(t, server.Close()) }()
				c, open := p.piped(t, wrap)
				_, _ = c.clients[untyped].Get().AbsPath("/").DoRaw(t.Context())
				assert.Equal(t, int64(1), open.Load())
				began := time.Now()
				c.Close()
				assert.Zero(t, open.Load())
				assert.Less(t, time.Since(began), patience)
			})
		})
	}
	assert.NotZero(t, closed.Load())
	assert.Empty(t, logged.String())
}
