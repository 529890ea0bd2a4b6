package rollouts

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// Scenario is something that happens in a cluster.
type Scenario struct {
	// Name is that of the recording.
	Name string
	// Record makes it happen, and records what a client sees of it.
	Record func(ctx context.Context, config *rest.Config, file string) error
}

// Scenarios are those of which there are recordings.
func Scenarios() []Scenario {
	return []Scenario{
		{"rollout", func(ctx context.Context, config *rest.Config, file string) error {
			return Rollout(ctx, config, file, 50)
		}},
		{"drain", Drain},
		{"upgrade", Upgrade},
	}
}

// Workload is what is watched of a rollout and of a drain.
type Workload struct {
	Deployments []*appsv1.Deployment
	ReplicaSets []*appsv1.ReplicaSet
	Pods        []*corev1.Pod
	Nodes       []*corev1.Node
}

// record watches while something happens, until a snapshot is as it should be in the end.
func record[S any](
	ctx context.Context, config *rest.Config, file string, queries []kates.Query, happens func() error, end func(*S) bool,
) (err error) {
	config = rest.CopyConfig(config)
	recorder, err := katestest.Record(config, file)
	if err != nil {
		return err
	}
	defer func() {
		if e := recorder.Close(); err == nil {
			err = e
		}
	}()
	client, err := kates.NewClientFromRESTConfig(config)
	if err != nil {
		return err
	}
	defer client.Close()
	snapshots, err := kates.Watch[S](ctx, client, queries...)
	if err != nil {
		return err
	}
	begun := false
	for s, err := range snapshots.All(ctx) {
		if err != nil {
			return err
		}
		if !begun {
			begun = true
			if err := happens(); err != nil {
				return err
			}
		}
		if end(s) {
			return nil
		}
	}
	return context.Cause(ctx)
}

// Queries are those of a Workload, in the namespace of its scenario.
func Queries(namespace string) []kates.Query {
	return []kates.Query{
		{Name: "Deployments", Namespace: namespace}, {Name: "ReplicaSets", Namespace: namespace},
		{Name: "Pods", Namespace: namespace}, {Name: "Nodes", LabelSelector: nodeLabel + "=" + namespace},
	}
}

// Rollout records how a deployment of so many pods gets another image: a quarter at a time.
func Rollout(ctx context.Context, config *rest.Config, file string, replicas int32) error {
	c, err := newCluster(ctx, config, "rollout", 3)
	if err != nil {
		return err
	}
	d, err := c.deploy(ctx, "web:1", replicas)
	if err != nil {
		return err
	}
	old, err := c.replicas(ctx, d, "1")
	if err != nil {
		return err
	}
	if err := c.scale(ctx, old, 0, replicas); err != nil {
		return err
	}
	if err := c.report(ctx, replicas, replicas); err != nil {
		return err
	}
	roll := func() error {
		d, err := c.api.AppsV1().Deployments(c.namespace).Patch(ctx, "web", types.StrategicMergePatchType,
			[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		next, err := c.replicas(ctx, d, "2")
		if err != nil {
			return err
		}
		step := max(replicas/4, 1)
		for done := int32(0); done < replicas; done += step {
			to := min(done+step, replicas)
			if err := c.scale(ctx, next, done, to); err != nil {
				return err
			}
			if err := c.scale(ctx, old, replicas-done, replicas-to); err != nil {
				return err
			}
			if err := c.report(ctx, replicas, to); err != nil {
				return err
			}
		}
		return nil
	}
	err = record(ctx, config, file, Queries(c.namespace), roll, func(w *Workload) bool { return Rolled(w, "web:2", replicas) })
	if err != nil {
		return fmt.Errorf("record a rollout: %w", err)
	}
	return c.forget(ctx)
}

// Rolled reports whether the deployment says that all pods have an image, and they have.
func Rolled(w *Workload, image string, replicas int32) bool {
	if len(w.Deployments) != 1 || w.Deployments[0].Status.UpdatedReplicas != replicas || len(w.Pods) != int(replicas) {
		return false
	}
	for _, p := range w.Pods {
		if p.Spec.Containers[0].Image != image || p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			return false
		}
	}
	return true
}

// Drain records how two of three nodes are drained, one after the other, and the first comes back.
func Drain(ctx context.Context, config *rest.Config, file string) error {
	const replicas = 12
	c, err := newCluster(ctx, config, "drain", 3)
	if err != nil {
		return err
	}
	d, err := c.deploy(ctx, "web:1", replicas)
	if err != nil {
		return err
	}
	set, err := c.replicas(ctx, d, "1")
	if err != nil {
		return err
	}
	if err := c.scale(ctx, set, 0, replicas); err != nil {
		return err
	}
	first := c.nodes[0]
	drain := func() error {
		next := int32(replicas)
		for range 2 {
			if next, err = c.drain(ctx, set, next); err != nil {
				return err
			}
		}
		return c.cordon(ctx, first, false)
	}
	err = record(ctx, config, file, Queries(c.namespace), drain, func(w *Workload) bool { return Drained(w, replicas) })
	if err != nil {
		return fmt.Errorf("record a drain: %w", err)
	}
	return c.forget(ctx)
}

// Drained reports whether one node of three is cordoned, and all pods run on the third.
func Drained(w *Workload, replicas int) bool {
	cordoned := 0
	for _, n := range w.Nodes {
		if n.Spec.Unschedulable {
			cordoned++
		}
	}
	on := map[string]int{}
	for _, p := range w.Pods {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			on[p.Spec.NodeName]++
		}
	}
	return cordoned == 1 && len(w.Nodes) == 3 && len(w.Pods) == replicas && on[w.Nodes[2].Name] == replicas
}

// drain empties the first node. Its pods are made anew on the others.
func (c *cluster) drain(ctx context.Context, set *appsv1.ReplicaSet, next int32) (int32, error) {
	node := c.nodes[0]
	c.nodes = c.nodes[1:]
	if err := c.cordon(ctx, node, true); err != nil {
		return next, err
	}
	pods, err := c.api.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return next, err
	}
	for _, p := range pods.Items {
		if err := c.evict(ctx, p.Name); err != nil {
			return next, err
		}
		if err := c.start(ctx, set, next); err != nil {
			return next, err
		}
		next++
	}
	return next, nil
}

func (c *cluster) cordon(ctx context.Context, node string, off bool) error {
	_, err := c.api.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, off), metav1.PatchOptions{})
	return err
}
