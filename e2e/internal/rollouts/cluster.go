package rollouts

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// cluster plays the parts that a bare API server lacks, through the API: the controller manager,
// the scheduler and the kubelets. What it does it does at once, in an order that a real cluster
// could have.
type cluster struct {
	api       kubernetes.Interface
	namespace string
	nodes     []string // that take pods
	placed    int      // pods so far
}

// labels are those of all objects of the workload.
var labels = map[string]string{"app": "web"}

// nodeLabel tells the nodes of one scenario, by its namespace, from others.
const nodeLabel = "rollouts"

func newCluster(ctx context.Context, config *rest.Config, namespace string, nodes int) (*cluster, error) {
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c := &cluster{api: api, namespace: namespace}
	_, err = api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err = api.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	for n := range nodes {
		if err := c.addNode(ctx, fmt.Sprintf("%s-node-%d", namespace, n+1)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *cluster) addNode(ctx context.Context, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{nodeLabel: c.namespace}}}
	node, err := c.api.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: metav1.Now(),
	}}
	_, err = c.api.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	c.nodes = append(c.nodes, name)
	return err
}

// forget takes the nodes away again.
func (c *cluster) forget(ctx context.Context) error {
	return c.api.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{
		LabelSelector: nodeLabel + "=" + c.namespace,
	})
}

func (c *cluster) template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			Containers:                   []corev1.Container{{Name: "web", Image: image}},
			AutomountServiceAccountToken: new(false),
		},
	}
}

// deploy makes a deployment, and a quarter of it may be replaced at a time.
func (c *cluster) deploy(ctx context.Context, image string, replicas int32) (*appsv1.Deployment, error) {
	quarter := intstr.FromString("25%")
	return c.api.AppsV1().Deployments(c.namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: c.template(image),
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &quarter, MaxUnavailable: &quarter}},
		},
	}, metav1.CreateOptions{})
}

// replicas makes a replica set of a deployment, without pods.
func (c *cluster) replicas(ctx context.Context, of *appsv1.Deployment, revision string) (*appsv1.ReplicaSet, error) {
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: of.Name + "-" + revision, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(of, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Selector: of.Spec.Selector, Template: of.Spec.Template},
	}
	return c.api.AppsV1().ReplicaSets(c.namespace).Create(ctx, set, metav1.CreateOptions{})
}

// scale makes the pods of a replica set more or fewer, and says so in its spec and status.
func (c *cluster) scale(ctx context.Context, set *appsv1.ReplicaSet, from, to int32) error {
	sets := c.api.AppsV1().ReplicaSets(c.namespace)
	if _, err := sets.Patch(ctx, set.Name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, to), metav1.PatchOptions{}); err != nil {
		return err
	}
	for n := from; n < to; n++ {
		if err := c.start(ctx, set, n); err != nil {
			return err
		}
	}
	for n := from - 1; n >= to; n-- {
		if err := c.stop(ctx, podName(set, n)); err != nil {
			return err
		}
	}
	return merge(ctx, sets.Patch, set.Name, map[string]any{"replicas": to, "readyReplicas": to, "availableReplicas": to})
}

func podName(set *appsv1.ReplicaSet, n int32) string { return fmt.Sprintf("%s-%02d", set.Name, n) }

// start makes a pod, places it and lets it run.
func (c *cluster) start(ctx context.Context, set *appsv1.ReplicaSet, n int32) error {
	pods := c.api.CoreV1().Pods(c.namespace)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: podName(set, n), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: set.Spec.Template.Spec,
	}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	node := c.nodes[c.placed%len(c.nodes)]
	c.placed++
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if err := pods.Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	ip := fmt.Sprintf("10.0.%d.%d", c.placed/250, c.placed%250+1)
	return merge(ctx, pods.Patch, pod.Name, map[string]any{
		"phase": corev1.PodRunning, "podIP": ip, "podIPs": []corev1.PodIP{{IP: ip}},
		"conditions": []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}},
	})
}

// stop deletes a pod as a kubelet does: it is terminating for a moment.
func (c *cluster) stop(ctx context.Context, name string) error {
	pods := c.api.CoreV1().Pods(c.namespace)
	if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
}

// evict asks for a pod's end through its eviction, and ends it.
func (c *cluster) evict(ctx context.Context, name string) error {
	pods := c.api.CoreV1().Pods(c.namespace)
	if err := pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace}}); err != nil {
		return err
	}
	return pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
}

// report writes the status of the deployment.
func (c *cluster) report(ctx context.Context, replicas, updated int32) error {
	return merge(ctx, c.api.AppsV1().Deployments(c.namespace).Patch, "web", map[string]any{
		"replicas": replicas, "updatedReplicas": updated, "readyReplicas": replicas, "availableReplicas": replicas,
	})
}

// merge patches the status of an object.
func merge[T any](
	ctx context.Context,
	patch func(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error),
	name string, status map[string]any,
) error {
	body, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	return err
}
