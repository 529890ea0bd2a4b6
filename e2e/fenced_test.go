package e2e

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// fencedWrites are the writes that have no precondition of their own, by name.
var fencedWrites = map[string]func(context.Context, *kates.Client, *corev1.ConfigMap, ...kates.WriteOption) error{
	"update": func(ctx context.Context, c *kates.Client, cm *corev1.ConfigMap, opts ...kates.WriteOption) error {
		return c.Update(ctx, unversioned(cm), nil, opts...)
	},
	"patch": func(ctx context.Context, c *kates.Client, cm *corev1.ConfigMap, opts ...kates.WriteOption) error {
		return c.Patch(ctx, cm, kates.MergePatchType, []byte(`{"data":{"late":"patch"}}`), nil, opts...)
	},
	"JSON patch": func(ctx context.Context, c *kates.Client, cm *corev1.ConfigMap, opts ...kates.WriteOption) error {
		return c.Patch(ctx, cm, kates.JSONPatchType, []byte(`[{"op":"add","path":"/data/late","value":"json"}]`), nil, opts...)
	},
	"apply": func(ctx context.Context, c *kates.Client, cm *corev1.ConfigMap, opts ...kates.WriteOption) error {
		return c.Apply(ctx, unversioned(cm), nil, append(opts, kates.ForceOwnership())...)
	},
	"delete": func(ctx context.Context, c *kates.Client, cm *corev1.ConfigMap, opts ...kates.WriteOption) error {
		return c.Delete(ctx, cm, nil, opts...)
	},
}

var configMapGets = katestest.Match{Resource: "configmaps", Verb: "get"}

// unversioned returns the object without a version.
func unversioned(cm *corev1.ConfigMap) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name}, Data: map[string]string{"late": "bare"},
	}
}

// underALease calls f as the function of a leader, with a config map.
func underALease(t *testing.T, f func(context.Context, *replica, *corev1.ConfigMap)) {
	t.Helper()
	ns := namespace(t)
	r := newReplica(t, ns)
	_, err := r.others.Resource(configMaps).Namespace(ns).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "count"}, "data": map[string]any{"a": "1"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	done := make(chan struct{})
	var once bool
	r.run(func(ctx context.Context, in *inputs) error {
		if _, cm := in.count(); cm != nil && !once {
			once = true
			f(ctx, r, cm)
			close(done)
		}
		return nil
	}, r.leading("a"))
	receive(t, done)
	r.stop()
}

// foreignChange changes the object as another program, and waits until the client's watch shows
// that. The client then knows the newest version.
func foreignChange(t *testing.T, r *replica, cm *corev1.ConfigMap) {
	t.Helper()
	u, err := r.others.Resource(configMaps).Namespace(r.ns).Patch(t.Context(), cm.Name, kates.MergePatchType, []byte(`{"data":{"foreign":"`+time.Now().String()+`"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now, err := kates.GetCached[corev1.ConfigMap](t.Context(), r.client, r.ns, cm.Name)
		return err == nil && now.ResourceVersion == u.GetResourceVersion()
	}, patience, 5*time.Millisecond)
}

// This holds even if the client knows the newer version by now.
func TestAWriteUnderALeaseConflictsWithWhatItsWorkHasNotSeen(t *testing.T) {
	t.Parallel()
	for name, write := range fencedWrites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			underALease(t, func(ctx context.Context, r *replica, cm *corev1.ConfigMap) {
				foreignChange(t, r, cm)
				require.True(t, kates.IsConflict(write(ctx, r.client, cm)), "%v", write(ctx, r.client, cm))
				require.NoError(t, write(ctx, r.client, cm, kates.Unfenced()))
			})
		})
	}
}

// That is newer than what the work began with.
func TestAWriteUnderALeaseGoesOnFromWhatItsWorkHasWritten(t *testing.T) {
	t.Parallel()
	underALease(t, func(ctx context.Context, r *replica, cm *corev1.ConfigMap) {
		last := fencedWrites["delete"]
		for name, write := range maps.All(fencedWrites) {
			if name != "delete" {
				require.NoError(t, write(ctx, r.client, cm), name)
			}
		}
		require.NoError(t, last(ctx, r.client, cm))
		require.NoError(t, fencedWrites["apply"](ctx, r.client, cm), "it is made anew")
	})
}

// Without a watch, the client reads the object before it writes.
func TestAWriteUnderALeaseOfWhatIsNotWatchedIsAboutWhatWasThere(t *testing.T) {
	t.Parallel()
	underALease(t, func(ctx context.Context, r *replica, _ *corev1.ConfigMap) {
		ns := namespace(t)
		cm := unversioned(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "elsewhere"}})
		assert.True(t, kates.IsNotFound(fencedWrites["patch"](ctx, r.client, cm)))
		require.NoError(t, r.client.Create(ctx, cm, nil))
		before := len(r.faults.Requests(configMapGets))
		require.NoError(t, fencedWrites["patch"](ctx, r.client, cm))
		assert.Len(t, r.faults.Requests(configMapGets), before+1)
		require.NoError(t, fencedWrites["patch"](ctx, r.client, cm, kates.Unfenced()))
		assert.Len(t, r.faults.Requests(configMapGets), before+1)
	})
}
