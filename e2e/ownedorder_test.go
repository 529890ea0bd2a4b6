package e2e

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
)

// Nobody owns the order of a list with keys, but the order matters, for example among variables
// that refer to each other.
func TestApplyOwnedPutsItemsBackIntoTheirOrder(t *testing.T) {
	for how, options := range map[string]struct {
		watch func(*testing.T, *kates.Client, string) error
		anew  bool
	}{
		"seen whole":                      {watch: wholeDeployments},
		"seen as a Go type":               {watch: open[*appsv1.Deployment]},
		"seen whole, by a new one":        {watch: wholeDeployments, anew: true},
		"seen as a Go type, by a new one": {watch: open[*appsv1.Deployment], anew: true},
	} {
		t.Run(how, func(t *testing.T) {
			o := newOwnedTest(t)
			d := deployment(o.ns)
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "$(A)"}}
			set := o.set(d)
			set.Existing = []kates.Object{}
			require.NoError(t, options.watch(t, o.client, o.ns))
			o.apply(set)

			in := foreign(t).Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(o.ns)
			u, err := in.Get(t.Context(), "x", metav1.GetOptions{})
			require.NoError(t, err)
			containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			require.NoError(t, err)
			slices.Reverse(containers[0].(map[string]any)["env"].([]any))
			require.NoError(t, unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers"))
			_, err = in.Update(t.Context(), u, metav1.UpdateOptions{FieldManager: "others"})
			require.NoError(t, err)

			if options.anew {
				o.client = newWire(t).client(t, kates.WithNamespace(o.ns))
				require.NoError(t, options.watch(t, o.client, o.ns))
			}
			require.NoError(t, o.client.Sync(t.Context()))
			assert.Len(t, o.apply(set).Applied, 1)
			now, err := kates.GetCached[appsv1.Deployment](t.Context(), o.client, o.ns, "x")
			require.NoError(t, err)
			assert.Equal(t, d.Spec.Template.Spec.Containers[0].Env, now.Spec.Template.Spec.Containers[0].Env)
			assert.Len(t, o.apply(set).Unchanged, 1)
		})
	}
}

func wholeDeployments(t *testing.T, c *kates.Client, ns string) error {
	r, err := kates.NewLister[*kates.Unstructured](t.Context(), c, kates.Query{Kind: "deployments.v1.apps", Namespace: ns})
	if err == nil {
		t.Cleanup(r.Close)
	}
	return err
}

func TestApplyOwnedOfWhatWasReadComesToAnEnd(t *testing.T) {
	o := newOwnedTest(t)
	o.apply(o.set(o.configMap("a", "k", "v")))
	o.apply(o.set(o.stored("a"))) // its annotation is corrected, too
	applied := o.stored("a")
	for range 2 {
		assert.Len(t, o.apply(o.set(o.stored("a"))).Unchanged, 1)
	}
	assert.Equal(t, applied.GetResourceVersion(), o.stored("a").GetResourceVersion())
}

func TestApplyOwnedOfSetsByDifferentLabelsLeaveEachOtherAlone(t *testing.T) {
	o := newOwnedTest(t)
	one, two := o.set(o.configMap("a", "k", "v")), o.set(o.configMap("a", "l", "w"))
	one.Plain, one.Adopt = true, true
	two.Plain, two.Adopt, two.Owner, two.Label = true, true, o.owner("another"), "example.com/another"
	other := newWire(t).client(t, kates.WithNamespace(o.ns), kates.WithFieldManager("another"))
	for round := range 3 {
		first := o.apply(one)
		second, err := other.ApplyOwned(t.Context(), two)
		require.NoError(t, err)
		if round > 0 {
			assert.Len(t, first.Unchanged, 1)
			assert.Len(t, second.Unchanged, 1)
		}
	}
	assert.Equal(t, map[string]any{"k": "v", "l": "w"}, o.stored("a").Object["data"])
	assert.Len(t, o.stored("a").GetAnnotations(), 2)
}
