package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/kates"
)

// podOn returns a pod that nobody runs. Its node may be empty.
func podOn(ns, name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.PodSpec{
		NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}
}

// podClient returns a client for a namespace that accepts pods.
func podClient(t *testing.T, w *wire, ns string) *kates.Client {
	t.Helper()
	c := w.client(t, kates.WithNamespace(ns))
	require.NoError(t, c.Upsert(t.Context(), nil, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, nil))
	return c
}

func TestG4AScaledDeploymentIsShownAtOnceThoughTheAnswerIsAScale(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t, kates.WithNamespace(ns))
	d := deployment(ns)
	require.NoError(t, c.Create(ctx, d, nil))
	r := lateReader(t, w, c, kates.Query{Kind: "deploy", Namespace: ns}, "deployments")
	replicas := func() int64 {
		n, _, _ := unstructured.NestedInt64(r.look("x").Object, "spec", "replicas")
		return n
	}
	require.EqualValues(t, 1, replicas())

	var scale autoscalingv1.Scale
	require.NoError(t, c.GetSubresource(ctx, d, "scale", &scale))
	assert.EqualValues(t, 1, scale.Spec.Replicas)
	scale.Spec.Replicas = 2
	require.NoError(t, c.UpdateSubresource(ctx, d, "scale", &scale, &scale))
	assert.EqualValues(t, 2, scale.Spec.Replicas)
	assert.EqualValues(t, 2, replicas())

	stale := scale.ResourceVersion
	require.NoError(t, c.PatchSubresource(ctx, d, "scale", kates.MergePatchType, []byte(`{"spec":{"replicas":3}}`), &scale))
	assert.EqualValues(t, 3, scale.Spec.Replicas)
	assert.EqualValues(t, 3, replicas())

	before := r.look("x")
	require.NoError(t, c.PatchSubresource(ctx, d, "scale", kates.MergePatchType, []byte(`{"spec":{"replicas":9}}`), &scale, kates.DryRun()))
	assert.EqualValues(t, 9, scale.Spec.Replicas)
	assert.Same(t, before, r.look("x"), "a dry run leaves no trace")
	err := c.PatchSubresource(ctx, d, "scale", kates.MergePatchType, []byte(`{"spec":{"replicas":9}}`), nil, kates.IfResourceVersion(stale))
	assert.True(t, kates.IsConflict(err), "%v", err)
	scale.ResourceVersion = stale
	err = c.UpdateSubresource(ctx, d, "scale", &scale, nil)
	assert.True(t, kates.IsConflict(err), "%v", err)
	assert.EqualValues(t, 3, replicas())
	r.settled(w, "deployments")
}

func TestG4AnEvictedPodIsGoneOrTerminatingAtOnce(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := podClient(t, w, ns)
	for name, node := range map[string]string{"pending": "", "running": "n", "another": "n"} {
		require.NoError(t, c.Create(ctx, podOn(ns, name, node), nil))
	}
	r := lateReader(t, w, c, kates.Query{Kind: "po", Namespace: ns}, "pods")
	evict := func(name string, opts ...kates.WriteOption) error {
		return c.CreateSubresource(ctx, podOn(ns, name, ""), "eviction", &policyv1.Eviction{}, nil, opts...)
	}
	require.NoError(t, evict("pending"))
	assert.Nil(t, r.look("pending"))
	require.NoError(t, evict("running", kates.GracePeriod(7*time.Second)))
	require.NotNil(t, r.look("running"))
	require.NotNil(t, r.look("running").GetDeletionTimestamp())
	assert.EqualValues(t, 7, *r.look("running").GetDeletionGracePeriodSeconds())
	require.NoError(t, evict("running", kates.GracePeriod(0)))
	assert.Nil(t, r.look("running"))

	before := r.look("another")
	err := evict("another", kates.IfUID("somebody-else"))
	assert.True(t, kates.IsConflict(err), "%v", err)
	require.NoError(t, evict("another", kates.DryRun()))
	assert.Same(t, before, r.look("another"))
	err = evict("nobody")
	assert.True(t, kates.IsNotFound(err), "%v", err)
	require.NoError(t, evict("another", kates.GracePeriod(0), kates.IfUID(before.GetUID())))
	assert.Nil(t, r.look("another"))
	r.settled(w, "pods")
}

func TestG4ABoundPodIsShownOnItsNodeAtOnceByEveryQuery(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := podClient(t, w, ns)
	require.NoError(t, c.Create(ctx, podOn(ns, "p", ""), nil))
	all := lateReader(t, w, c, kates.Query{Kind: "po", Namespace: ns}, "pods")
	w.set("pods", 0)
	onNode := lateReader(t, w, c, kates.Query{Kind: "po", Namespace: ns, FieldSelector: "spec.nodeName=n"}, "pods")
	w.set("pods", 0)
	waiting := lateReader(t, w, c, kates.Query{Kind: "po", Namespace: ns, FieldSelector: "spec.nodeName="}, "pods")
	require.NotNil(t, waiting.look("p"))
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
	err := c.CreateSubresource(ctx, podOn(ns, "p", ""), "binding", binding, nil, kates.IfUID("somebody-else"))
	assert.True(t, kates.IsConflict(err), "%v", err)
	require.NoError(t, c.CreateSubresource(ctx, podOn(ns, "p", ""), "binding", binding, nil))
	assert.Empty(t, binding.Name, "what is given is not modified")
	for _, r := range []*reader{all, onNode} {
		require.NotNil(t, r.look("p"))
		node, _, _ := unstructured.NestedString(r.look("p").Object, "spec", "nodeName")
		assert.Equal(t, "n", node)
	}
	assert.Nil(t, waiting.look("p"))
	for _, r := range []*reader{all, onNode, waiting} {
		r.settled(w, "pods")
	}
}

func TestG4ASubresourceThatAnswersWithItsObjectIsAnOrdinaryOwnWrite(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := podClient(t, w, ns)
	require.NoError(t, c.Create(ctx, podOn(ns, "p", ""), nil))
	r := lateReader(t, w, c, kates.Query{Kind: "po", Namespace: ns}, "pods")
	asked := w.seen("pods", func(request) bool { return true })
	var got corev1.Pod
	require.NoError(t, c.PatchSubresource(ctx, podOn(ns, "p", ""), "ephemeralcontainers", kates.StrategicMergePatchType,
		[]byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"i","terminationMessagePolicy":"File","imagePullPolicy":"Always"}]}}`), &got))
	require.Len(t, got.Spec.EphemeralContainers, 1)
	assert.Equal(t, got.ResourceVersion, r.look("p").GetResourceVersion())
	got.Status.Message = "seen"
	require.NoError(t, c.UpdateSubresource(ctx, &got, "status", nil, nil), "a nil body stands for the resource")
	message, _, _ := unstructured.NestedString(r.look("p").Object, "status", "message")
	assert.Equal(t, "seen", message)
	var token authenticationv1.TokenRequest
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	require.NoError(t, c.CreateSubresource(ctx, sa, "token", &authenticationv1.TokenRequest{}, &token))
	assert.NotEmpty(t, token.Status.Token)
	assert.Equal(t, asked, w.seen("pods", func(request) bool { return true }), "no watch had to ask")
	r.settled(w, "pods")
}
