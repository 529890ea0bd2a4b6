package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kates-go/kates/kates"
)

type deployments struct {
	Deployments []*appsv1.Deployment
	Deltas      []*kates.Delta
}

func deployment(ns string) *appsv1.Deployment {
	labels := map[string]string{"app": "x"}
	return &appsv1.Deployment{ObjectMeta: named(ns, "x"), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		},
	}}
}

// typedStep is one write and what the very next snapshot must show of it.
type typedStep struct {
	name  string
	write func() error
	shows func(d *appsv1.Deployment) bool
}

func TestG4TypedWritesOfEveryVerbAndPatchTypeShowAtOnceThoughTheWatchIsLate(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(t), namespace(t), t.Context()
	c := w.client(t)
	s, err := kates.Watch[deployments](ctx, c, kates.Query{Name: "Deployments", Namespace: ns})
	require.NoError(t, err)
	var snap deployments
	awaitSnap(t, s, &snap, func(*deployments) bool { return s.Ready() == nil })
	w.set("deployments", late)
	d := deployment(ns)
	patch := func(pt kates.PatchType, data string) func() error {
		return func() error { return c.Patch(ctx, d, pt, []byte(data), nil) }
	}
	change := func(how func(*appsv1.Deployment), write func(d *appsv1.Deployment) error) func() error {
		return func() error {
			var got *appsv1.Deployment
			if err := c.Get(ctx, d, &got); err != nil {
				return err
			}
			how(got)
			return write(got)
		}
	}
	images := func(d *appsv1.Deployment) (all string) {
		for _, c := range d.Spec.Template.Spec.Containers {
			all += c.Name + "=" + c.Image + " "
		}
		return all
	}
	more := deployment(ns)
	more.Spec.Paused = true
	for _, step := range []typedStep{
		{"create", func() error { return c.Create(ctx, d, nil) }, func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 1 }},
		{"update", change(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](2) },
			func(d *appsv1.Deployment) error { return c.Update(ctx, d, nil) }), func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 }},
		{"update the status", change(func(d *appsv1.Deployment) { d.Status.Replicas, d.Status.ObservedGeneration = 2, 7 },
			func(d *appsv1.Deployment) error { return c.UpdateStatus(ctx, d, nil) }), func(d *appsv1.Deployment) bool { return d.Status.ObservedGeneration == 7 }},
		{"strategic merge", patch(kates.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"d","image":"j"}]}}}}`),
			func(d *appsv1.Deployment) bool { return images(d) == "d=j c=i " }},
		{"merge", patch(kates.MergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"k"}]}}}}`),
			func(d *appsv1.Deployment) bool { return images(d) == "c=k " }},
		{"JSON", patch(kates.JSONPatchType, `[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`),
			func(d *appsv1.Deployment) bool { return d.Annotations["a"] == "b" }},
		{"apply", func() error { return c.Apply(ctx, more, nil, kates.ForceOwnership(), kates.FieldManager("me")) },
			func(d *appsv1.Deployment) bool { return d.Spec.Paused && images(d) == "c=i " }},
		{"upsert", func() error {
			return c.Upsert(ctx, d, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"l": "m"}}, Spec: deployment(ns).Spec}, nil)
		}, func(d *appsv1.Deployment) bool { return d.Labels["l"] == "m" && !d.Spec.Paused }},
		{"delete", func() error { return c.Delete(ctx, d, nil) }, nil},
		{"create by upsert", func() error { return c.Upsert(ctx, nil, d, nil) }, func(d *appsv1.Deployment) bool { return d.Labels["l"] == "" }},
		{"delete in the foreground", func() error { return c.Delete(ctx, d, nil, kates.Propagation(metav1.DeletePropagationForeground)) },
			func(d *appsv1.Deployment) bool { return d.DeletionTimestamp != nil }},
		{"remove the last finalizer", patch(kates.MergePatchType, `{"metadata":{"finalizers":null}}`), nil},
		{"create by apply", func() error { return c.Apply(ctx, d, nil) }, func(d *appsv1.Deployment) bool { return d.DeletionTimestamp == nil }},
	} {
		require.NoError(t, step.write(), step.name)
		changed, err := s.Update(ctx, &snap)
		require.NoError(t, err)
		require.True(t, changed, step.name)
		require.Len(t, snap.Deltas, 1, step.name)
		if step.shows == nil {
			require.Empty(t, snap.Deployments, step.name)
			continue
		}
		require.Len(t, snap.Deployments, 1, step.name)
		require.True(t, step.shows(snap.Deployments[0]), "%s: %+v", step.name, snap.Deployments[0])
	}
	shown := snap.Deployments[0]
	w.set("deployments", 0)
	w.drained(t, "deployments")
	require.NoError(t, c.Sync(ctx))
	changed, err := s.Update(ctx, &snap)
	require.NoError(t, err)
	assert.False(t, changed, "G5: the late watch has nothing new to say")
	assert.Same(t, shown, snap.Deployments[0])
	assert.Zero(t, s.Status().Queries[0].Pending, "G6")
	assert.Equal(t, "typed from protobuf", s.Status().Queries[0].Form)
}
