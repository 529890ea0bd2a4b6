package replay

import (
	"context"
	"fmt"
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

// crowdClient is a client of a new crowd.
func crowdClient(t *testing.T, pods int) (*kubernetes.Clientset, func(n int)) {
	crowd, err := NewCrowd(pods)
	require.NoError(t, err)
	server := httptest.NewServer(crowd)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: server.URL, ContentConfig: rest.ContentConfig{AcceptContentTypes: protobufType, ContentType: protobufType},
	})
	require.NoError(t, err)
	return client, func(n int) {
		answer, err := http.Get(fmt.Sprintf("%s%s?n=%d", server.URL, ChangePath, n))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
	}
}

func TestAPageOfACrowdHasThePodsOfTheFirstPagesMoment(t *testing.T) {
	client, change := crowdClient(t, 95)
	change(2)
	seen := map[string]corev1.Pod{}
	o := metav1.ListOptions{Limit: 10}
	for page := 0; ; page++ {
		l, err := client.CoreV1().Pods("").List(context.Background(), o)
		require.NoError(t, err)
		assert.Equal(t, "2000000002", l.ResourceVersion)
		for _, p := range l.Items {
			seen[p.Namespace+"/"+p.Name] = p
		}
		change(50)
		if o.Continue = l.Continue; o.Continue == "" {
			assert.Equal(t, 9, page)
			break
		}
	}
	assert.Len(t, seen, 95)
	uids := map[string]bool{}
	for _, p := range seen {
		uids[string(p.UID)] = true
		require.NotEmpty(t, p.Status.ContainerStatuses)
		require.Len(t, p.ManagedFields, 2)
	}
	assert.Len(t, uids, 95)
	assert.Equal(t, CrowdMark(1), seen[CrowdKey(95, 1)].Annotations[workload.Mark])
	assert.Equal(t, "1000000002", func() string { p := seen[CrowdKey(95, 2)]; return p.ResourceVersion }())
	real, err := workload.RunningPod(99_990)
	require.NoError(t, err)
	one := seen[CrowdKey(95, 94)]
	assert.InDelta(t, real.Size(), one.Size(), 300, "it is as large as a real one")
	services, err := client.CoreV1().Services("").List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, services.Items)
}

func TestAWatchOfACrowdHasItsStateAndThenItsEvents(t *testing.T) {
	client, change := crowdClient(t, 40)
	change(45)
	yes := true
	w, err := client.CoreV1().Pods("").Watch(context.Background(), metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	require.NoError(t, err)
	defer w.Stop()
	for range 40 {
		e := <-w.ResultChan()
		require.Equal(t, watch.Added, e.Type)
	}
	end := <-w.ResultChan()
	require.Equal(t, watch.Bookmark, end.Type)
	assert.Equal(t, "2000000045", end.Object.(*corev1.Pod).ResourceVersion)
	assert.Equal(t, "true", end.Object.(*corev1.Pod).Annotations[metav1.InitialEventsAnnotationKey])
	change(3)
	for event := 45; event < 48; event++ {
		e := <-w.ResultChan()
		require.Equal(t, watch.Modified, e.Type)
		p := e.Object.(*corev1.Pod)
		assert.Equal(t, CrowdKey(40, event), p.Namespace+"/"+p.Name)
		assert.Equal(t, CrowdMark(event), p.Annotations[workload.Mark])
		assert.Equal(t, fmt.Sprint(crowdVersion+event+1), p.ResourceVersion)
	}
}
