package consumer

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// bareWatch uses no library, only a typed watch over protobuf. It shows how soon Go can deliver
// an event. It holds the changed pods.
type bareWatch struct {
	signal
	mu   sync.Mutex
	pods map[string]*corev1.Pod
}

func newBareWatch() Consumer { return &bareWatch{pods: map[string]*corev1.Pod{}} }

func (c *bareWatch) Start(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	w, err := client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	go func() { // ends when ctx ends the watch
		for e := range w.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok {
				c.mu.Lock()
				c.pods[pod.Namespace+"/"+pod.Name] = pod
				c.mu.Unlock()
				c.set()
			}
		}
	}()
	return nil
}

func (c *bareWatch) Snapshot(context.Context) (View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := slices.Collect(maps.Values(c.pods))
	return View{Objects: len(pods), All: objects(pods)}, nil
}
