package kates

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/base/jsonform"
)

// logServer serves the logs of pods, and cuts each connection after one new line and a half.
type logServer struct {
	*httptest.Server
	mu       sync.Mutex
	pods     map[string]*corev1.Pod
	lines    int // of each container
	sent     map[string]int
	requests []url.URL
}

var logStart = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newLogServer(t *testing.T, lines int, names ...string) *logServer {
	s := &logServer{lines: lines, pods: map[string]*corev1.Pod{}, sent: map[string]int{}}
	for _, name := range names {
		pod := &corev1.Pod{}
		pod.APIVersion, pod.Kind = "v1", "Pod"
		pod.Namespace, pod.Name, pod.UID = "prod", name, types.UID("uid-"+name)
		pod.Spec.InitContainers = []corev1.Container{{Name: "init"}}
		pod.Spec.Containers = []corev1.Container{{Name: "app"}}
		pod.Status.Phase = corev1.PodSucceeded
		s.pods[name] = pod
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// line is a line of a log. Four have one time.
func (s *logServer) line(of string, i int) string {
	at := logStart.Add(time.Duration(i/4) * 300 * time.Millisecond)
	return fmt.Sprintf("%s %s line %d\n", at.Format(time.RFC3339Nano), of, i)
}

func (s *logServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	pod := s.pods[parts[5]]
	if pod == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if len(parts) == 6 {
		body, _ := jsonform.Encode(pod)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
		return
	}
	s.requests = append(s.requests, *r.URL)
	of := pod.Name + "/" + r.URL.Query().Get("container")
	since, _ := time.Parse(time.RFC3339, r.URL.Query().Get("sinceTime"))
	s.sent[of]++
	for i := range s.lines {
		line := s.line(of, i)
		if at, _ := time.Parse(time.RFC3339Nano, line[:strings.Index(line, " ")]); at.Before(since) {
			continue
		}
		if i > s.sent[of] {
			_, _ = io.WriteString(w, line[:len(line)/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, line)
	}
}

func (s *logServer) client(t *testing.T) *Client {
	c, err := NewClientFromRESTConfig(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestPodLogsOfManyPodsShareAChannelAndNoLineComesTwice(t *testing.T) {
	s := newLogServer(t, 12, "a", "b", "c")
	c := s.client(t)
	events := make(chan LogEvent)
	for _, pod := range s.pods {
		require.NoError(t, c.PodLogs(t.Context(), pod, &PodLogOptions{Follow: true}, events))
	}
	got := map[string]string{}
	for closed := 0; closed < 6; {
		e := <-events
		if e.Closed {
			assert.NoError(t, e.Error)
			closed++
			continue
		}
		assert.NotEmpty(t, e.Timestamp)
		got[e.PodID+"/"+e.Container] += e.Timestamp + " " + e.Output
	}
	assert.Len(t, got, 6)
	for of, text := range got {
		var want strings.Builder
		for i := range s.lines {
			want.WriteString(s.line(strings.TrimPrefix(of, "uid-"), i))
		}
		assert.Equal(t, want.String(), text)
	}
}

func TestPodLogsSendsTheOptionsAndLeavesThemAlone(t *testing.T) {
	s := newLogServer(t, 1, "a")
	events := make(chan LogEvent, 10)
	tail := int64(3)
	options := &PodLogOptions{Container: "app", TailLines: &tail}
	// The pod's UID is asked for.
	pod := &Pod{ObjectMeta: ObjectMeta{Namespace: "prod", Name: "a"}}
	require.NoError(t, s.client(t).PodLogs(t.Context(), pod, options, events))
	assert.Equal(t, "uid-a", (<-events).PodID)
	assert.True(t, (<-events).Closed)
	assert.Equal(t, &PodLogOptions{Container: "app", TailLines: &tail}, options)
	assert.Equal(t, url.Values{"container": {"app"}, "tailLines": {"3"}, "timestamps": {"true"}}, s.requests[0].Query())
}

func TestPodLogsEndWithTheirContextAndWithTheClient(t *testing.T) {
	s := newLogServer(t, 3, "a")
	c := s.client(t)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, c.PodLogs(ctx, s.pods["a"], nil, make(chan LogEvent))) // nobody reads
	cancel()
	require.NoError(t, c.PodLogs(t.Context(), s.pods["a"], nil, make(chan LogEvent)))
	c.Close() // waits; goleak looks for the rest
	assert.ErrorIs(t, c.PodLogs(t.Context(), s.pods["a"], nil, make(chan LogEvent)), ErrClosed)
}

func TestPodLogsOfAPodThatIsNotThere(t *testing.T) {
	s := newLogServer(t, 3, "a")
	c := s.client(t)
	gone := s.pods["a"].DeepCopy()
	gone.Name = "none"
	events := make(chan LogEvent, 2)
	require.NoError(t, c.PodLogs(t.Context(), gone, &PodLogOptions{Container: "app"}, events))
	e := <-events
	assert.True(t, e.Closed)
	assert.True(t, IsNotFound(e.Error), "%v", e.Error)
	gone.UID = ""
	assert.True(t, IsNotFound(c.PodLogs(t.Context(), gone, nil, events)))
	another := s.pods["a"].DeepCopy()
	another.UID, another.Spec.Containers = "other", nil
	assert.True(t, IsConflict(c.PodLogs(t.Context(), another, nil, events)))
}

func TestPodLogsRefusesWhatMakesNoSense(t *testing.T) {
	s := newLogServer(t, 3, "a")
	c := s.client(t)
	events := make(chan LogEvent)
	for want, err := range map[string]error{
		"it needs a pod":    c.PodLogs(t.Context(), nil, nil, events),
		"and a channel":     c.PodLogs(t.Context(), s.pods["a"], nil, nil),
		"it has no name":    c.PodLogs(t.Context(), &Pod{}, nil, events),
		`invalid name ".."`: c.PodLogs(t.Context(), &Pod{ObjectMeta: ObjectMeta{Name: ".."}}, nil, events),
	} {
		assert.ErrorContains(t, err, want)
	}
	assert.Empty(t, s.requests)

	mapper := meta.NewDefaultRESTMapper(nil)
	bare, err := NewClientFromDynamic(fake.NewSimpleDynamicClient(scheme.Scheme), mapper)
	require.NoError(t, err)
	t.Cleanup(bare.Close)
	assert.ErrorIs(t, bare.PodLogs(t.Context(), s.pods["a"], nil, events), ErrLogsNotSupported)
}
