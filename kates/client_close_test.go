package kates_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
)

// countedConns dials, and counts what is open.
type countedConns struct{ made, open atomic.Int64 }

func (c *countedConns) dial(ctx context.Context, network, address string) (net.Conn, error) {
	made, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.made.Add(1)
	c.open.Add(1)
	return &countedConn{Conn: made, of: c}, nil
}

type countedConn struct {
	net.Conn
	of     *countedConns
	closed atomic.Bool
}

func (c *countedConn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.of.open.Add(-1)
	}
	return c.Conn.Close()
}

// watchedServer serves config maps, of which there are none, and watches of them that do not end.
// It uses TLS, and HTTP/2 if it is told to.
func watchedServer(t *testing.T, http2 bool) *rest.Config {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/configmaps" {
			answerDiscovery(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = w.Write([]byte(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`))
			return
		}
		_, _ = w.Write([]byte(`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1",` +
			`"annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

func TestG11CloseLeavesNoConnection(t *testing.T) {
	type inputs struct{ ConfigMaps []*kates.ConfigMap }
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			config := watchedServer(t, http2)
			for range 20 {
				var conns countedConns
				config.Dial = conns.dial
				client, err := kates.NewClientFromRESTConfig(config)
				require.NoError(t, err)
				snapshots, err := kates.Watch[inputs](t.Context(), client)
				require.NoError(t, err)
				<-snapshots.Changed()
				client.Close()
				assert.Zero(t, conns.open.Load(), "of %d", conns.made.Load())
			}
		})
	}
}

// Reads and writes work after Close, so those under way go on.
func TestCloseLetsRequestsUnderWayFinish(t *testing.T) {
	config := watchedServer(t, true)
	var conns countedConns
	config.Dial = conns.dial
	client, err := kates.NewClientFromRESTConfig(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	own, err := client.DynamicInterface().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Watch(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	<-own.ResultChan()
	client.Close()
	assert.NotZero(t, conns.open.Load())
	select {
	case e, open := <-own.ResultChan():
		assert.Fail(t, "the watch has not been let alone", "%v %v", e, open)
	default:
	}
	cancel()
	own.Stop()
	client.Close()
	assert.Zero(t, conns.open.Load())
	_, err = client.ServerResources()
	require.NoError(t, err, "on a new connection")
	client.Close()
	assert.Zero(t, conns.open.Load())
}

// cutDials makes connections until they are cut. From then on a dial lasts until its context ends,
// or the test gives up.
type cutDials struct {
	begun   chan struct{} // gets a value for each dial since
	lasting atomic.Int32  // dials since
	givenUp chan struct{}
	mu      sync.Mutex
	isCut   bool
	open    []net.Conn
}

func (d *cutDials) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	isCut := d.isCut
	d.mu.Unlock()
	if isCut {
		d.lasting.Add(1)
		defer d.lasting.Add(-1)
		d.begun <- struct{}{}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-d.givenUp:
			return nil, net.ErrClosed
		}
	}
	made, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		d.mu.Lock()
		d.open = append(d.open, made)
		d.mu.Unlock()
	}
	return made, err
}

// cut closes the connections.
func (d *cutDials) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isCut = true
	for _, c := range d.open {
		_ = c.Close()
	}
}

// TestG11CloseDoesNotWaitForAConnectionThatIsNotMade: the network takes what is sent, and answers
// nothing. The first list is under way, or the watch is being opened again.
func TestG11CloseDoesNotWaitForAConnectionThatIsNotMade(t *testing.T) {
	type inputs struct{ ConfigMaps []*kates.ConfigMap }
	closing := map[string]func(*kates.Client, *kates.Snapshots[inputs], context.CancelFunc){
		"client":  func(*kates.Client, *kates.Snapshots[inputs], context.CancelFunc) {},
		"watch":   func(_ *kates.Client, s *kates.Snapshots[inputs], _ context.CancelFunc) { s.Close() },
		"context": func(_ *kates.Client, _ *kates.Snapshots[inputs], cancel context.CancelFunc) { cancel() },
	}
	for protocol, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		for at, first := range map[string]bool{"list": true, "watch": false} {
			for what, end := range closing {
				t.Run(fmt.Sprintf("%s of the %s of %s", what, at, protocol), func(t *testing.T) {
					dials := &cutDials{begun: make(chan struct{}, 100), givenUp: make(chan struct{})}
					config := watchedServer(t, http2)
					config.Dial = dials.dial
					client, err := kates.NewClientFromRESTConfig(config)
					require.NoError(t, err)
					defer client.Close()
					_, err = client.ServerResources()
					require.NoError(t, err)
					if first {
						dials.cut()
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					snapshots, err := kates.Watch[inputs](ctx, client)
					require.NoError(t, err)
					if !first {
						<-snapshots.Changed()
						dials.cut()
					}
					<-dials.begun
					closed := make(chan struct{})
					go func() {
						defer close(closed)
						end(client, snapshots, cancel)
						client.Close()
					}()
					ended := func() bool { return dials.lasting.Load() == 0 }
					assert.Eventually(t, ended, time.Minute, time.Millisecond, "a dial goes on") // only a failure takes that long
					close(dials.givenUp)
					<-closed
				})
			}
		}
	}
}
