package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
)

// kubelet has the log of one container. It breaks each connection in the middle of a line, so that
// the API server ends its answer in good order.
type kubelet struct {
	*httptest.Server
	mu      sync.Mutex
	lines   []string
	reached int // how many lines the connection before has brought whole
	asked   []string
}

var logBegins = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newKubelet(t *testing.T, lines int) *kubelet {
	t.Helper()
	k := &kubelet{}
	for i := range lines { // four have one time
		at := logBegins.Add(time.Duration(i/4) * 300 * time.Millisecond)
		k.lines = append(k.lines, fmt.Sprintf("%s line %d\n", at.Format(time.RFC3339Nano), i))
	}
	k.Server = httptest.NewTLSServer(http.HandlerFunc(k.serve))
	t.Cleanup(k.Close)
	return k
}

func (k *kubelet) serve(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, r.URL.String())
	since, _ := time.Parse(time.RFC3339, r.URL.Query().Get("sinceTime"))
	k.reached = min(k.reached+5, len(k.lines))
	for i, line := range k.lines {
		at, _ := time.Parse(time.RFC3339Nano, line[:strings.Index(line, " ")])
		if at.Before(since) {
			continue
		}
		if i == k.reached {
			_, _ = io.WriteString(w, line[:len(line)-3])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, line)
	}
}

// node registers the kubelet as that of a node.
func (k *kubelet) node(t *testing.T, c *kates.Client, name string) {
	t.Helper()
	_, port, err := net.SplitHostPort(k.Listener.Addr().String())
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	node := &corev1.Node{}
	node.Name = name
	require.NoError(t, c.Create(t.Context(), node, node))
	t.Cleanup(func() { assert.NoError(t, c.Delete(context.Background(), node, nil)) })
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	require.NoError(t, c.UpdateStatus(t.Context(), node, nil))
}

func TestPodLogsComeOnceThroughARealAPIServer(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := podClient(t, w, ns)
	k := newKubelet(t, 30)
	k.node(t, c, "node-"+ns)
	pod := podOn(ns, "web", "node-"+ns)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	require.NoError(t, c.Create(ctx, pod, &pod))

	events := make(chan kates.LogEvent)
	options := &kates.PodLogOptions{Follow: true, InsecureSkipTLSVerifyBackend: true}
	require.NoError(t, c.PodLogs(ctx, pod, options, events))
	var got []string
	for e := range events {
		assert.Equal(t, string(pod.UID), e.PodID)
		assert.Equal(t, "c", e.Container)
		if e.Closed {
			assert.NoError(t, e.Error)
			break
		}
		got = append(got, e.Timestamp+" "+e.Output)
		if len(got) == len(k.lines) {
			pod.Status.Phase = corev1.PodSucceeded
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{},
			}}}
			require.NoError(t, c.UpdateStatus(ctx, pod, nil))
		}
	}
	assert.Equal(t, k.lines, got)
	assert.Greater(t, len(k.asked), 6)
	assert.Contains(t, k.asked[0], "/containerLogs/"+ns+"/web/c?")
	assert.Contains(t, k.asked[0], "timestamps=true")
	assert.Contains(t, k.asked[1], "sinceTime=2029-12-31T23")
}
