package kates_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// fullDeployment is a deployment with more than tests keep.
func fullDeployment() *kates.Deployment {
	replicas, labels := int32(3), map[string]string{"app": "web"}
	return &kates.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "d", Labels: labels, Finalizers: []string{"example.com/kept"},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, MinReadySeconds: 7,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image:1", Command: []string{"run"}}}},
			},
		},
	}
}

// partly watches a deployment of which only its replicas and images are held, and returns it as it
// is held.
func partly(t *testing.T, c *kates.Client, more ...string) (held *kates.Deployment, now func() *kates.Deployment) {
	t.Helper()
	type deployments struct{ Deployments []*kates.Deployment }
	s, err := kates.Watch[deployments](t.Context(), c, kates.Query{
		Name: "Deployments", Projection: kates.Keep(append(more, "spec.replicas", "spec.template.spec.containers.image")...)})
	require.NoError(t, err)
	var snap deployments
	next(t, s, &snap, func() bool { return true })
	require.Len(t, snap.Deployments, 1)
	return snap.Deployments[0], func() *kates.Deployment {
		_, err := s.Update(t.Context(), &snap)
		require.NoError(t, err)
		return snap.Deployments[0]
	}
}

// stored returns a deployment as the server has it.
func storedDeployment(t *testing.T, c *kates.Client) *kates.Deployment {
	t.Helper()
	var d kates.Deployment
	require.NoError(t, c.Get(t.Context(), fullDeployment(), &d))
	return &d
}

// TestNothingThatWasNotReadIsWrittenBack: what a watch holds in part is never the base of a write.
func TestNothingThatWasNotReadIsWrittenBack(t *testing.T) {
	for name, write := range map[string]func(t *testing.T, c *kates.Client, held *kates.Deployment){
		"modify": func(t *testing.T, c *kates.Client, held *kates.Deployment) {
			_, err := kates.Modify(t.Context(), c, held, func(d *kates.Deployment) error {
				assert.Equal(t, int32(7), d.Spec.MinReadySeconds, "change gets the whole object")
				*d.Spec.Replicas = 5
				return nil
			})
			require.NoError(t, err)
		},
		"modify it untyped": func(t *testing.T, c *kates.Client, held *kates.Deployment) {
			_, err := kates.Modify(t.Context(), c, held, func(u *kates.Unstructured) error {
				return unstructured.SetNestedField(u.Object, int64(5), "spec", "replicas")
			})
			require.NoError(t, err)
		},
		"modify a struct of one's own": func(t *testing.T, c *kates.Client, held *kates.Deployment) {
			type lite struct {
				Spec struct {
					Replicas int `json:"replicas"`
					Template struct {
						Spec struct {
							Containers []struct {
								Name  string `json:"name"`
								Image string `json:"image"`
							} `json:"containers"`
						} `json:"spec"`
					} `json:"template"`
				} `json:"spec"`
			}
			_, err := kates.Modify(t.Context(), c, held, func(d *lite) error {
				d.Spec.Replicas = 5
				d.Spec.Template.Spec.Containers[0].Image = "image:1"
				return nil
			})
			require.NoError(t, err)
		},
		"patch": func(t *testing.T, c *kates.Client, held *kates.Deployment) {
			require.NoError(t, c.Patch(t.Context(), held, kates.MergePatchType, []byte(`{"spec":{"replicas":5}}`), nil))
		},
		"a finalizer": func(t *testing.T, c *kates.Client, held *kates.Deployment) {
			require.NoError(t, c.AddFinalizer(t.Context(), held, "example.com/more"))
			assert.Equal(t, []string{"example.com/kept", "example.com/more"}, storedDeployment(t, c).Finalizers)
			require.NoError(t, c.RemoveFinalizer(t.Context(), held, "example.com/more"))
			require.NoError(t, c.Patch(t.Context(), held, kates.MergePatchType, []byte(`{"spec":{"replicas":5}}`), nil))
		},
		"upsert": func(t *testing.T, c *kates.Client, held *kates.Deployment) {
			wanted := fullDeployment()
			*wanted.Spec.Replicas = 5
			require.NoError(t, c.Upsert(t.Context(), nil, wanted, nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := katestest.NewServer(t, katestest.WithObjects(fullDeployment())).Client(t)
			held, now := partly(t, c)
			require.Zero(t, held.Spec.MinReadySeconds)
			before := storedDeployment(t, c)
			write(t, c, held)
			after := storedDeployment(t, c)
			assert.Equal(t, int32(5), *after.Spec.Replicas)
			*after.Spec.Replicas = 3
			assert.Equal(t, before.Spec, after.Spec)
			assert.Equal(t, before.Finalizers, after.Finalizers)
			assert.Equal(t, before.Labels, after.Labels)
			shown := now()
			assert.Equal(t, int32(5), *shown.Spec.Replicas, "snapshots show the write")
			assert.Zero(t, shown.Spec.MinReadySeconds, "and no more than before")
			assert.Nil(t, shown.Labels)
		})
	}
}

// TestACopyOfAnObjectThatIsHeldInPartReplacesNothing: the rest would be lost.
func TestACopyOfAnObjectThatIsHeldInPartReplacesNothing(t *testing.T) {
	c := katestest.NewServer(t, katestest.WithObjects(fullDeployment())).Client(t)
	held, _ := partly(t, c)
	before := storedDeployment(t, c)
	part := held.DeepCopy()
	*part.Spec.Replicas = 5
	part.Spec.Paused = true
	for name, write := range map[string]func() error{
		"update":        func() error { return c.Update(t.Context(), part, nil) },
		"update status": func() error { return c.UpdateStatus(t.Context(), part, nil) },
		"subresource":   func() error { return c.UpdateSubresource(t.Context(), part, "status", nil, nil) },
		"apply":         func() error { return c.Apply(t.Context(), part, nil) },
		"upsert":        func() error { return c.Upsert(t.Context(), nil, part, nil) },
		"upsert it into": func() error {
			return c.Upsert(t.Context(), part, map[string]any{"spec": map[string]any{"replicas": 5}}, nil)
		},
	} {
		err := write()
		require.ErrorIs(t, err, kates.ErrPartial, name)
		assert.ErrorContains(t, err, "use Modify or Patch", name)
		assert.ErrorContains(t, err, "spec.replicas", name)
	}
	assert.Equal(t, before, storedDeployment(t, c))

	whole := storedDeployment(t, c)
	*whole.Spec.Replicas = 5
	require.NoError(t, c.Update(t.Context(), whole, nil), "one that was read as a whole is none")
	wanted := fullDeployment()
	wanted.UID = whole.UID
	require.NoError(t, c.Apply(t.Context(), wanted, nil, kates.ForceOwnership()), "nor is one that was made")
}

// TestWhatAsksForAWholeObjectGetsNoPartOfIt: GetCached, and conditions for a generation.
func TestWhatAsksForAWholeObjectGetsNoPartOfIt(t *testing.T) {
	c := katestest.NewServer(t, katestest.WithObjects(fullDeployment())).Client(t)
	held, _ := partly(t, c)
	got, err := kates.GetCached[kates.Deployment](t.Context(), c, "default", "d")
	require.NoError(t, err)
	assert.Equal(t, int32(7), got.Spec.MinReadySeconds)
	short, err := kates.GetCached[kates.PartialObjectMetadata](t.Context(), c, "default", "d", kates.OfKind("deployments"))
	require.NoError(t, err)
	assert.Equal(t, "web", short.Labels["app"])
	require.NotZero(t, held.Generation)
}

// liteDeployment is a struct with some of a deployment's fields.
type liteDeployment struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		Replicas int `json:"replicas"`
	} `json:"spec"`
}

// TestACopyOfAStructReplacesNothing: a struct of one's own is a part of the object, too. Modify
// writes what was changed in it.
func TestACopyOfAStructReplacesNothing(t *testing.T) {
	c := katestest.NewServer(t, katestest.WithObjects(fullDeployment())).Client(t)
	type deployments struct {
		Deployments []*liteDeployment `kates:"deployments"`
	}
	s, err := kates.Watch[deployments](t.Context(), c)
	require.NoError(t, err)
	var snap deployments
	next(t, s, &snap, func() bool { return true })
	require.Contains(t, s.Status().Queries[0].Form, "fields")
	part := *snap.Deployments[0]
	part.Spec.Replicas = 5
	before := storedDeployment(t, c)
	require.ErrorIs(t, c.Update(t.Context(), &part, nil), kates.ErrPartial)
	assert.Equal(t, before, storedDeployment(t, c))
	got, err := kates.Modify(t.Context(), c, &part, func(d *liteDeployment) error { d.Spec.Replicas = 5; return nil })
	require.NoError(t, err)
	assert.Equal(t, 5, got.Spec.Replicas)
	after := storedDeployment(t, c)
	assert.Equal(t, int32(5), *after.Spec.Replicas)
	*after.Spec.Replicas = 3
	assert.Equal(t, before.Spec, after.Spec)
	_, err = s.Update(t.Context(), &snap)
	require.NoError(t, err)
	assert.Equal(t, 5, snap.Deployments[0].Spec.Replicas)
}
