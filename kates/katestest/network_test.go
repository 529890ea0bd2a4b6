package katestest_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates/katestest"
)

// connected returns both ends of a connection in memory.
func connected(t *testing.T, n *katestest.Network) (client, server net.Conn) {
	t.Helper()
	l, err := n.Listen("api.test:80")
	require.NoError(t, err)
	client, err = n.DialContext(t.Context(), "tcp", "api.test:80")
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return client, server
}

func TestConnectionsInMemoryAreNetConns(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		n := katestest.NewNetwork(nil)
		c1, c2 = connected(t, n)
		return c1, c2, n.Close, nil
	})
}

func TestConnectionsThroughTheMachineAreNetConns(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		n := katestest.NewNetwork(nil)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, nil, err
		}
		defer func() { _ = l.Close() }()
		if c1, err = n.DialContext(t.Context(), "tcp", l.Addr().String()); err != nil {
			return nil, nil, nil, err
		}
		c2, err = l.Accept()
		return c1, c2, func() { _ = c2.Close(); n.Close() }, err
	})
}

func TestAFrozenConnectionIsSilentBothWaysUntilItIsThawed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := katestest.NewNetwork(t)
		client, server := connected(t, n)
		thaw := n.Freeze()
		_, err := io.WriteString(client, "ping")
		require.NoError(t, err, "nobody is told")
		require.NoError(t, server.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err = server.Read(make([]byte, 4))
		assert.ErrorContains(t, err, "i/o timeout")
		require.NoError(t, client.SetWriteDeadline(time.Now().Add(time.Hour)))
		_, err = client.Write(make([]byte, 1<<20))
		assert.ErrorContains(t, err, "i/o timeout", "the buffer is full")
		require.NoError(t, client.Close())
		thaw()
		thaw()
		require.NoError(t, server.SetReadDeadline(time.Time{}))
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		assert.Equal(t, "ping", string(got[:4]))
	})
}

func TestAConnectionIsResetForBothSidesAndNewOnesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := katestest.NewNetwork(t)
		client, server := connected(t, n)
		assert.Equal(t, 1, n.Reset())
		for _, c := range []net.Conn{client, server} {
			_, err := c.Read(make([]byte, 1))
			assert.True(t, utilnet.IsConnectionReset(err), err)
			_, err = c.Write(make([]byte, 1))
			assert.ErrorIs(t, err, syscall.ECONNRESET)
		}
		assert.Zero(t, n.Open())
		_, err := n.Listen("api.test:80")
		require.NoError(t, err)
		_, err = n.Listen("api.test:80")
		assert.ErrorIs(t, err, syscall.EADDRINUSE)
		_, err = n.Listen("api.test")
		assert.ErrorContains(t, err, "missing port")
		heal := n.Refuse()
		_, err = n.DialContext(t.Context(), "tcp", "api.test:80")
		assert.True(t, utilnet.IsConnectionRefused(err), err)
		heal()
		_, err = n.DialContext(t.Context(), "tcp", "api.test:80")
		assert.NoError(t, err)
		assert.Equal(t, 2, n.Dialed())
	})
}

func TestIntoABlackHoleNobodyConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := katestest.NewNetwork(t)
		_, err := n.Listen("api.test:80")
		require.NoError(t, err)
		heal := n.Blackhole()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err = n.DialContext(ctx, "tcp", "api.test:80")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		time.AfterFunc(time.Hour, heal)
		_, err = n.DialContext(t.Context(), "tcp", "api.test:80")
		assert.NoError(t, err)
		assert.NoError(t, n.Wait(t.Context(), func() bool { return n.Open() == 1 }))
	})
}

func TestADelayedConnectionKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := katestest.NewNetwork(t)
		client, server := connected(t, n)
		n.Delay(time.Minute)
		started := time.Now()
		_, _ = io.WriteString(client, "one")
		n.Delay(0)
		_, _ = io.WriteString(client, "two")
		_ = client.Close()
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		assert.Equal(t, "onetwo", string(got))
		assert.Equal(t, time.Minute, time.Since(started))
	})
}

// serveInMemory starts a server that sends one line to each watch, then nothing until the request
// ends.
func serveInMemory(t *testing.T, n *katestest.Network, secure bool) *httptest.Server {
	t.Helper()
	listener, err := n.Listen("api.test:443")
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, EnableHTTP2: true, Config: &http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Proto+"\n")
			w.(http.Flusher).Flush()
			if r.URL.Query().Has("watch") {
				<-r.Context().Done()
			}
		})}}
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	return server
}

// This test and the next one show client-go with and without pings. HTTP/2's health check pings
// after 30 s of silence, and gives up after 15 more. The test takes no real time.
func TestHTTP2PingsEndAHalfOpenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := katestest.NewNetwork(t)
		server := serveInMemory(t, n, true)
		line, silent := halfOpen(t, n, server)
		assert.Equal(t, "HTTP/2.0\n", line)
		assert.Equal(t, 45*time.Second, silent)
	})
}

func TestHTTP1HasNoPingsAndAHalfOpenConnectionStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := katestest.NewNetwork(t)
		server := serveInMemory(t, n, false)
		line, silent := halfOpen(t, n, server)
		assert.Equal(t, "HTTP/1.1\n", line)
		assert.Equal(t, 24*time.Hour, silent, "until the caller gives up")
	})
}

// halfOpen watches, freezes the connection, and returns how long the client took to notice.
func halfOpen(t *testing.T, n *katestest.Network, server *httptest.Server) (line string, silent time.Duration) {
	t.Helper()
	config := &rest.Config{Host: server.URL, Dial: n.DialContext, Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}
	config.Insecure = server.TLS != nil
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", server.URL+configMaps+"?watch=true", nil)
	require.NoError(t, err)
	resp, err := client.Do(r)
	require.NoError(t, err)
	p := make([]byte, 9)
	_, err = io.ReadFull(resp.Body, p)
	require.NoError(t, err)
	synctest.Wait()
	thaw := n.Freeze()
	started := time.Now()
	_, err = resp.Body.Read(p)
	require.Error(t, err)
	silent = time.Since(started)
	_ = resp.Body.Close()
	thaw()
	client.CloseIdleConnections()
	utilnet.CloseIdleConnectionsFor(client.Transport)
	synctest.Wait()
	server.Close()
	return string(p), silent
}
