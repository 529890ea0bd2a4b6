package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// vandalized is a test that collects its errors.
type vandalized struct {
	testing.TB
	errors   []string
	cleanups []func()
}

func (v *vandalized) Cleanup(f func())  { v.cleanups = append(v.cleanups, f) }
func (v *vandalized) Error(args ...any) { v.errors = append(v.errors, fmt.Sprint(args...)) }

// TestG10TheDetectorSeesWritesToTypedObjectsOfARealServer: there the functions of a query get the
// very objects that snapshots show.
func TestG10TheDetectorSeesWritesToTypedObjectsOfARealServer(t *testing.T) {
	ns, inner := namespace(t), &vandalized{TB: t}
	client, err := tapped(kates.NewClientFromRESTConfig(serverOf(t), kates.WithInterval(0), katestest.DetectMutations(inner)))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, client.Create(t.Context(), &kates.ConfigMap{
			ObjectMeta: kates.ObjectMeta{Namespace: ns, Name: name}, Data: map[string]string{"a": "of " + name}, // equal maps are one
		}, nil))
	}
	type snap struct{ ConfigMaps []*kates.ConfigMap }
	snapshots, err := kates.Watch[snap](t.Context(), client, kates.Query{
		Name: "ConfigMaps", Namespace: ns,
		Signal: kates.SignalOf(func(old, current metav1.Object) bool {
			if current != nil && current.GetName() == "b" {
				current.SetAnnotations(map[string]string{"written": "here"})
			}
			return true
		}),
	})
	require.NoError(t, err)
	for s, err := range snapshots.All(t.Context()) {
		require.NoError(t, err)
		require.Len(t, s.ConfigMaps, 3)
		if s.ConfigMaps[1].Data["a"] == "c" {
			break
		}
		s.ConfigMaps[0].Data["a"] = "x"
		_, err := kates.Modify(t.Context(), client, s.ConfigMaps[1], func(c *kates.ConfigMap) error {
			c.Data["a"] = "c"
			return nil
		})
		require.NoError(t, err)
	}
	for _, f := range slices.Backward(inner.cleanups) {
		f()
	}
	require.Len(t, inner.errors, 2)
	slices.Sort(inner.errors)
	assert.Contains(t, inner.errors[0], fmt.Sprintf("ConfigMap %s/a of query %q: data.a: first seen in snapshot ", ns, "ConfigMaps"))
	assert.Contains(t, inner.errors[1], fmt.Sprintf("ConfigMap %s/b of query %q: metadata.annotations: first seen when the Signal function", ns, "ConfigMaps"))
}
