package kates_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// proxied is how a server is reached at another address. What is there changes what the server
// says, if it is evil: it is a proxy, and so has the server's UID, versions and schemas.
func proxied(s *katestest.Server, address string, evil bool) *rest.Config {
	at := rest.CopyConfig(s.Config)
	dial := at.Dial
	at.Host = "http://" + address
	at.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dial(ctx, network, "kubernetes.test:80")
	}
	if evil {
		at.Wrap(func(next http.RoundTripper) http.RoundTripper { return poisoner{next} })
	}
	return at
}

type poisoner struct{ http.RoundTripper }

func (p poisoner) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.RoundTripper.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") == "" {
		all, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(all, []byte("good"), []byte("evil"))))
	}
	return resp, err
}

type configMaps struct{ ConfigMaps []*kates.ConfigMap }

// TestG1NoClusterStartsFromWhatAnotherOneWasTold: two members of a fleet share a store. One claims
// the UID of the other.
func TestG1NoClusterStartsFromWhatAnotherOneWasTold(t *testing.T) {
	key := kates.WarmStartKey(bytes.Repeat([]byte{1}, 32))
	for name, settings := range map[string][]kates.WarmStartSetting{"without a key": nil, "with a key": {key}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + "/warm"
			synctest.Test(t, func(t *testing.T) {
				// a kind with one object is read from the server
				s := katestest.NewServer(t, katestest.WithObjects(configMap("x", "k", "good"), configMap("y"), configMap("z")))
				see := func(config *rest.Config, want, how string, more ...kates.Option) {
					t.Helper()
					c := connected(t, config, append(more, kates.WithWarmStart(kates.WarmStartDir(dir), settings...))...)
					_, snap := started[configMaps](t, c)
					assert.Equal(t, want, snap.ConfigMaps[0].Data["k"])
					assert.Equal(t, how, starts(c)["ConfigMaps"])
					c.Close()
				}
				named, list := kates.WithClusterName("one"), "list: nothing is kept of it"
				see(proxied(s, "evil.test:80", true), "evil", list)
				see(s.Config, "good", list)
				see(s.Config, "good", "warm")
				see(proxied(s, "evil.test:80", true), "evil", "warm")
				see(proxied(s, "kubernetes.test:80", true), "evil", list, named)
				see(s.Config, "good", "warm")
				see(s.Config, "evil", "warm", named) // its own file: the name is the program's to give
			})
		})
	}
}

// TestG1WhatComesFromTwoConnectionsIsKeptForNeither: a client moves to another address, and what it
// holds is not written to the files of the first one.
func TestG1WhatComesFromTwoConnectionsIsKeptForNeither(t *testing.T) {
	for name, elsewhere := range map[string]bool{"elsewhere": true, "with other credentials": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + "/warm"
			synctest.Test(t, func(t *testing.T) {
				s := katestest.NewServer(t, katestest.WithObjects(configMap("x")))
				c := connected(t, s.Config, kates.WithWarmStart(kates.WarmStartDir(dir)))
				snapshots, snap := started[configMaps](t, c)
				next := rest.CopyConfig(s.Config)
				next.BearerToken = "another"
				if elsewhere {
					next = proxied(s, "evil.test:80", true)
				}
				require.NoError(t, c.Reconnect(t.Context(), next))
				require.NoError(t, connected(t, s.Config).Create(t.Context(), configMap("y"), nil))
				until(t, snapshots, snap, func() bool { return len(snap.ConfigMaps) == 2 })
				c.Close()
				assert.Equal(t, elsewhere, len(files(t, dir)) == 0)
			})
		})
	}
}

func TestAFolderThatOthersMayWriteMeansAListAndSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777))
	synctest.Test(t, func(t *testing.T) {
		c := connected(t, seeded(t), kates.WithWarmStart(kates.WarmStartDir(dir)))
		_, _ = started[configMaps](t, c)
		assert.Contains(t, starts(c)["ConfigMaps"], "other users may write it")
		assert.Contains(t, starts(c)["ConfigMaps"], "name a folder of the program's own")
		c.Close()
		assert.Empty(t, files(t, dir))
	})
}

// TestHeadersThatNeverEndEndTheRequest: nothing but net/http bounds them.
func TestHeadersThatNeverEndEndTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := katestest.NewNetwork(t)
		listener, err := network.Listen("server.test:80")
		require.NoError(t, err)
		sent := make(chan int, 1)
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			line, n := "X-Much: "+strings.Repeat("x", 1<<16)+"\r\n", 0
			for err == nil && n < 1<<30 {
				_, err = io.WriteString(conn, line)
				n += len(line)
			}
			sent <- n
		}()
		c := connected(t, &rest.Config{Host: "http://server.test:80", Dial: network.DialContext})
		_, err = c.ServerVersion()
		assert.ErrorContains(t, err, "headers exceeded 10485760 bytes")
		assert.Less(t, <-sent, 1<<25)
	})
}
