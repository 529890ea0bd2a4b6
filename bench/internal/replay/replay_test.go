package replay

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/bench/internal/workload"
)

// start starts a replay of 4 objects of each kind and 30 events. The server behind it knows
// nothing.
func start(t *testing.T) *Server {
	t.Helper()
	behind := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(behind.Close)
	s, err := Start(&rest.Config{Host: behind.URL}, 4, 30)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s
}

func TestClientsReadTheReplay(t *testing.T) {
	for _, mediaType := range []string{"application/json", protobufType} {
		t.Run(mediaType, func(t *testing.T) {
			s := start(t)
			client, err := kubernetes.NewForConfig(&rest.Config{
				Host: s.URL, ContentConfig: rest.ContentConfig{ContentType: mediaType, AcceptContentTypes: mediaType},
			})
			require.NoError(t, err)
			list, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Len(t, list.Items, 4)
			assert.Equal(t, "1000000", list.ResourceVersion)
			assert.Equal(t, workload.Pod(2).Spec, list.Items[2].Spec)

			w, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{SendInitialEvents: new(true)})
			require.NoError(t, err)
			defer w.Stop()
			types, marks := follow(t, w, s)
			assert.Equal(t, map[watch.EventType]int{watch.Added: 4, watch.Bookmark: 1, watch.Modified: 10}, types)
			for key, mark := range marks {
				assert.Equal(t, s.Marks()[key], mark, key)
			}
			assert.Len(t, s.Marks(), 12)
		})
	}
}

// follow starts the events after the bookmark, and reads them all.
func follow(t *testing.T, w watch.Interface, s *Server) (map[watch.EventType]int, map[string]string) {
	t.Helper()
	types, marks, lastRV := map[watch.EventType]int{}, map[string]string{}, ""
	for types[watch.Modified] < 10 {
		e, open := <-w.ResultChan()
		require.True(t, open)
		types[e.Type]++
		pod, ok := e.Object.(*corev1.Pod)
		require.True(t, ok, "%T", e.Object)
		switch e.Type {
		case watch.Bookmark:
			assert.Equal(t, "true", pod.Annotations[metav1.InitialEventsAnnotationKey])
			lastRV = pod.ResourceVersion
			s.Go()
		case watch.Modified:
			assert.Greater(t, pod.ResourceVersion, lastRV, "all have as many digits")
			lastRV = pod.ResourceVersion
			marks[pod.Namespace+"/"+pod.Name] = pod.Annotations[workload.Mark]
		}
	}
	return types, marks
}

func TestOtherRequestsAreHandedOn(t *testing.T) {
	s := start(t)
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL+"/apis", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusNotFound, answer.StatusCode)
}
