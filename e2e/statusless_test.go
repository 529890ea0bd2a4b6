package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

// A missing status subresource usually means that the author of the definition forgot it. The
// server then answers "not found" for every object.
func TestAStatusOfAKindThatHasNoneIsAnErrorAtOnceAndNotThatTheObjectIsGone(t *testing.T) {
	t.Parallel()
	ns, w := namespace(t), newWire(t)
	g := newGadget(t, ns)
	g.install("v1")
	c := w.client(t, kates.WithNamespace(ns))
	require.NoError(t, c.WaitFor(t.Context(), g.kind))
	var gadget, cm *kates.Unstructured
	require.NoError(t, c.Create(t.Context(), g.object("v1", ns, "x", "red"), &gadget))
	require.NoError(t, c.Create(t.Context(), object(configMaps, ns, "x", nil), &cm))
	for kind, u := range map[string]*kates.Unstructured{"gadgets": gadget, "configmaps": cm} {
		for name, write := range map[string]func() error{
			"SetConditions": func() error { return c.SetConditions(t.Context(), u, []kates.Condition{stated("A", "True")}) },
			"ModifyStatus": func() error {
				_, err := kates.ModifyStatus(t.Context(), c, u, func(u *kates.Unstructured) error {
					u.Object["status"] = map[string]any{"a": "b"}
					return nil
				})
				return err
			},
		} {
			requests := countRequests(w, kind)
			err := write()
			assert.ErrorContains(t, err, "has no status subresource", "%s of %s", name, kind)
			assert.ErrorContains(t, err, ns+"/x")
			assert.False(t, kates.IsNotFound(err), "who takes that for the end of the object is wrong")
			assert.Equal(t, map[string]int{"GET": 2, "PATCH": 1}, requests())
		}
	}

	for kind, u := range map[string]*kates.Unstructured{"gadgets": gadget, "configmaps": cm} {
		for name, err := range map[string]error{
			"UpdateStatus":      c.UpdateStatus(t.Context(), u, nil),
			"UpdateSubresource": c.UpdateSubresource(t.Context(), u, "status", nil, nil),
			"PatchSubresource":  c.PatchSubresource(t.Context(), u, "status", kates.MergePatchType, []byte(`{}`), nil),
		} {
			assert.ErrorContains(t, err, "its kind has no status subresource", "%s of %s", name, kind)
			assert.True(t, kates.IsNotFound(err), "it is the server's error")
		}
	}

	// A deleted object is not found, whatever the client knew of it.
	gone := gadget.DeepCopy()
	require.NoError(t, foreign(t).Resource(g.resource("v1")).Namespace(ns).Delete(t.Context(), "x", metav1.DeleteOptions{}))
	err := c.UpdateStatus(t.Context(), gone, nil)
	assert.True(t, kates.IsNotFound(err), "%v", err)
	assert.NotContains(t, err.Error(), "subresource")
	assert.True(t, kates.IsNotFound(c.SetConditions(t.Context(), gone, []kates.Condition{stated("A", "True")})))
}
