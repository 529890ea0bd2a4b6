package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/kates"
)

func TestG4ADeletedNamespaceIsTerminatingUntilItIsFinalized(t *testing.T) {
	t.Parallel()
	for name, selector := range map[string]string{"by name": "", "by label": "mine=yes"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ctx := newWire(), t.Context()
			c := w.client(t)
			n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "terminating-" + namespace(t), Labels: map[string]string{"mine": "yes"}}}
			query := kates.Query{Kind: "ns", LabelSelector: selector}
			if selector == "" {
				query.FieldSelector = "metadata.name=" + n.Name
			} else {
				query.LabelSelector += ",kubernetes.io/metadata.name=" + n.Name
			}
			r := lateReader(t, w, c, query, "namespaces")
			require.NoError(t, c.Create(ctx, n, nil))
			require.NotNil(t, r.look(n.Name))
			require.NoError(t, c.Delete(ctx, n, nil))
			require.NotNil(t, r.look(n.Name), "spec.finalizers keep it")
			assert.NotNil(t, r.look(n.Name).GetDeletionTimestamp())

			// The namespace controller's part is played here: its write is observed.
			admin, err := kubernetes.NewForConfig(testCluster.Config)
			require.NoError(t, err)
			last, err := admin.CoreV1().Namespaces().Get(ctx, n.Name, metav1.GetOptions{})
			require.NoError(t, err)
			last.Spec.Finalizers = nil
			answer, err := admin.CoreV1().Namespaces().Finalize(ctx, last, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.NoError(t, c.Observe(answer))
			require.Nil(t, r.look(n.Name))
			r.settled(w, "namespaces")
		})
	}
}

func TestG4AFailedPreconditionIsAConflictThatLeavesNoTrace(t *testing.T) {
	t.Parallel()
	w, ns, ctx := newWire(), namespace(t), t.Context()
	c := w.client(t)
	x := object(configMaps, ns, "x", nil)
	var first *kates.Unstructured
	require.NoError(t, c.Create(ctx, x, &first))
	r := lateReader(t, w, c, kates.Query{Kind: "cm", Namespace: ns}, "configmaps")
	d := foreign(t).Resource(configMaps).Namespace(ns)
	require.NoError(t, d.Delete(ctx, "x", metav1.DeleteOptions{}))
	second, err := d.Create(ctx, x, metav1.CreateOptions{})
	require.NoError(t, err)
	patch := []byte(`{"data":{"a":"b"}}`)
	for name, err := range map[string]error{
		"delete": c.Delete(ctx, x, nil, kates.IfUID(first.GetUID())),
		"patch":  c.Patch(ctx, x, kates.MergePatchType, patch, nil, kates.IfResourceVersion(first.GetResourceVersion())),
		"update": c.Update(ctx, first, nil),
		"apply":  c.Apply(ctx, x, nil, kates.IfUID(first.GetUID())),
		"status": c.UpdateStatus(ctx, first, nil),
	} {
		assert.True(t, kates.IsConflict(err), "%s: %v", name, err)
	}
	require.NotNil(t, r.look("x"))
	assert.Equal(t, first.GetUID(), r.look("x").GetUID(), "as its watch, which is late, has it")
	require.NoError(t, c.Delete(ctx, x, nil, kates.IfUID(second.GetUID()), kates.IfResourceVersion(second.GetResourceVersion())))
	assert.Nil(t, r.look("x"))
	r.settled(w, "configmaps")
}
