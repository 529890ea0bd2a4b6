package write

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// terminating returns a Pod with which the server answers a write.
func terminating(grace int64, finalizers ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	now := metav1.Now()
	u.SetName("x")
	u.SetUID("u")
	u.SetResourceVersion("7")
	u.SetDeletionTimestamp(&now)
	u.SetDeletionGracePeriodSeconds(&grace)
	u.SetFinalizers(finalizers)
	return u
}

func TestG4AnAnswerToADeletionSaysWhetherTheObjectIsGone(t *testing.T) {
	background := metav1.DeletionPropagation(metav1.DeletePropagationBackground)
	foreground := metav1.DeletionPropagation(metav1.DeletePropagationForeground)
	for name, c := range map[string]struct {
		answer      *unstructured.Unstructured
		propagation *metav1.DeletionPropagation
		gone        bool
	}{
		"nothing keeps it":                     {terminating(0), nil, true},
		"a grace period":                       {terminating(30), nil, false},
		"a finalizer":                          {terminating(0, "example.com/f"), nil, false},
		"a finalizer of the garbage collector": {terminating(0, metav1.FinalizerDeleteDependents), nil, false},
		"the same, in the foreground":          {terminating(0, metav1.FinalizerDeleteDependents), &foreground, false},
		"the same, which a deletion in the background removes": {terminating(0, metav1.FinalizerDeleteDependents), &background, true},
		"that of orphans, which it removes":                    {terminating(0, metav1.FinalizerOrphanDependents), &background, true},
		"a finalizer that it does not remove":                  {terminating(0, metav1.FinalizerDeleteDependents, "example.com/f"), &background, false},
		"a grace period, in the background":                    {terminating(30, metav1.FinalizerDeleteDependents), &background, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := written(OpDelete, c.answer, removedBy(metav1.DeleteOptions{PropagationPolicy: c.propagation})...)
			assert.Equal(t, c.gone, w.Object == nil)
			assert.Equal(t, "7", w.Version)
		})
	}
}
