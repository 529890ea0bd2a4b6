package kates_test

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

func TestG11TheOldConnectionIsClosedAfterItsLastRequest(t *testing.T) {
	s := newSite("uid-1")
	server := s.serve(t, true)
	s.put("configmaps", "c0", thing("ConfigMap", "c0", 0))
	var old, new countedConns
	config := with(server, "old")
	config.Dial = old.dial
	client := connected(t, config)
	started[rotated](t, client)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	own, err := client.DynamicInterface().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Watch(ctx, metav1.ListOptions{ResourceVersion: "100"})
	require.NoError(t, err)
	<-own.ResultChan()
	config = with(server, "new")
	config.Dial = new.dial
	require.NoError(t, client.Reconnect(t.Context(), config))
	s.put("configmaps", "c0", thing("ConfigMap", "c0", 1))
	e := <-own.ResultChan()
	assert.Equal(t, 1, numberOf(t, e.Object.(kates.Object)), "a request under way finishes where it is")
	assert.NotZero(t, old.open.Load())
	own.Stop()
	cancel()
	require.Eventually(t, func() bool { return old.open.Load() == 0 }, time.Minute, time.Millisecond)
	assert.NotZero(t, new.open.Load())
	client.Close()
	assert.Zero(t, new.open.Load())
}

func TestG11CloseEndsAReconnectAndLeavesNoConnection(t *testing.T) {
	for name, at := range map[string]string{"which cluster it is": "kube-system", "the trial of a watch": "secrets"} {
		t.Run(name, func(t *testing.T) {
			s := newSite("uid-1")
			server := s.serve(t, true)
			s.put("secrets", "s0", thing("Secret", "s0", 0))
			held, never := make(chan struct{}), make(chan struct{})
			reached := sync.OnceFunc(func() { close(held) })
			s.hold = func(token string, r *http.Request) <-chan struct{} {
				if token != "new" || !strings.Contains(r.URL.Path, at) {
					return nil
				}
				reached()
				return never
			}
			var conns countedConns
			config := with(server, "old")
			config.Dial = conns.dial
			client := connected(t, config)
			snapshots, _ := started[rotated](t, client)
			ended := make(chan error)
			config.BearerToken = "new"
			go func() { ended <- client.Reconnect(t.Context(), config) }()
			<-held
			s.put("secrets", "s1", thing("Secret", "s1", 0)) // nobody waits for it
			<-snapshots.Changed()
			client.Close()
			assert.ErrorIs(t, <-ended, kates.ErrClosed)
			assert.Zero(t, conns.open.Load())
			assert.ErrorIs(t, client.Reconnect(t.Context(), config), kates.ErrClosed)
		})
	}
}

func TestG11CloseWaitsForAReconnectThatHasExchangedTheConnection(t *testing.T) {
	s := newSite("uid-1")
	server := s.serve(t, true)
	s.put("secrets", "s0", thing("Secret", "s0", 0))
	for range 50 {
		var conns countedConns
		config := with(server, "old")
		config.Dial = conns.dial
		client := connected(t, config)
		started[rotated](t, client)
		next, ended, watched := with(server, "new"), make(chan error, 1), s.count("new", "watch")
		next.Dial = conns.dial
		go func() { ended <- client.Reconnect(t.Context(), next) }()
		for len(ended) == 0 && s.count("new", "watch") < watched+3 { // the last trial is about to end
			runtime.Gosched()
		}
		client.Close()
		assert.Zero(t, conns.open.Load())
		if err := <-ended; err != nil {
			assert.ErrorIs(t, err, kates.ErrClosed)
		}
		next.TLSClientConfig = rest.TLSClientConfig{CAData: []byte("no certificate")}
		assert.ErrorIs(t, client.Reconnect(t.Context(), next), kates.ErrClosed)
	}
}

func TestOneReconnectWaitsForAnotherAndAContextEndsTheWait(t *testing.T) {
	s := newSite("uid-1")
	server := s.serve(t, true)
	s.put("secrets", "s0", thing("Secret", "s0", 0))
	held, open := make(chan struct{}), make(chan struct{})
	s.hold = func(token string, r *http.Request) <-chan struct{} {
		if token != "slow" || !strings.Contains(r.URL.Path, "kube-system") {
			return nil
		}
		close(held)
		return open
	}
	client := connected(t, with(server, "old"))
	snapshots, snap := started[rotated](t, client)
	slow := make(chan error)
	go func() { slow <- client.Reconnect(t.Context(), with(server, "slow")) }()
	<-held
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, client.Reconnect(over, with(server, "never")), context.Canceled)
	next := make(chan error)
	go func() { next <- client.Reconnect(t.Context(), with(server, "next")) }()
	close(open)
	require.NoError(t, <-slow)
	require.NoError(t, <-next)
	assert.Zero(t, s.count("never", "cluster"))
	s.put("secrets", "s0", thing("Secret", "s0", 1))
	until(t, snapshots, snap, func() bool { return numberOf(t, snap.Secrets[0]) == 1 })
	before := s.count("next", "GET")
	require.NoError(t, client.Get(t.Context(), thing("Secret", "s0", 0), nil))
	assert.Equal(t, before+1, s.count("next", "GET"))
}
