package kates_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// statusWrites are the methods that write a status. found: the error is the server's "not found".
var statusWrites = map[string]struct {
	found bool
	do    func(ctx context.Context, c *kates.Client, resource any) error
}{
	"UpdateStatus": {true, func(ctx context.Context, c *kates.Client, r any) error { return c.UpdateStatus(ctx, r, nil) }},
	"UpdateSubresource": {true, func(ctx context.Context, c *kates.Client, r any) error {
		return c.UpdateSubresource(ctx, r, "status", nil, nil)
	}},
	"PatchSubresource": {true, func(ctx context.Context, c *kates.Client, r any) error {
		return c.PatchSubresource(ctx, r, "status", kates.MergePatchType, []byte(`{"status":{"a":"b"}}`), nil)
	}},
	"ModifyStatus": {false, func(ctx context.Context, c *kates.Client, r any) error {
		_, err := kates.ModifyStatus(ctx, c, r, func(u *kates.Unstructured) error {
			u.Object["status"] = map[string]any{"a": "b"}
			return nil
		})
		return err
	}},
}

func TestAStatusOfABuiltInKindThatHasNoneIsAnErrorOnTheFakeToo(t *testing.T) {
	typed := configMap("x", "a", "kept")
	untyped := &kates.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "x"},
		"data": map[string]any{"a": "lost"},
	}}
	for form, resource := range map[string]any{"typed": configMap("x", "a", "lost"), "untyped": untyped, "a map": untyped.Object} {
		for name, write := range statusWrites {
			t.Run(name+"/"+form, func(t *testing.T) {
				fake := katestest.New(t, katestest.WithObjects(typed.DeepCopy()))
				err := write.do(t.Context(), fake.Client, resource)
				require.ErrorContains(t, err, `configmaps "default/x": its kind has no status subresource`)
				assert.Equal(t, write.found, kates.IsNotFound(err))
				var now kates.ConfigMap
				require.NoError(t, fake.Client.Get(t.Context(), typed, &now))
				assert.Equal(t, "kept", now.Data["a"], "nothing is written")
			})
		}
	}
	fake := katestest.New(t, katestest.WithObjects(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}, Status: corev1.PodStatus{Phase: "Running"}}
	require.NoError(t, fake.Client.UpdateStatus(t.Context(), pod, nil))
}

// TestAStatusOfAKindThatHasNoneIsSaidToWhoMayNotGetTheObject: discovery, which everybody may read,
// tells it apart from an object that is gone.
func TestAStatusOfAKindThatHasNoneIsSaidToWhoMayNotGetTheObject(t *testing.T) {
	s := newSite("uid")
	s.put("configmaps", "x", thing("ConfigMap", "x", 1))
	c, err := kates.NewClientFromRESTConfig(with(s.serve(t, false), "token"))
	require.NoError(t, err)
	defer c.Close()
	snapshots, err := kates.Watch[struct {
		ConfigMaps []*kates.Unstructured `kates:"configmaps"`
	}](t.Context(), c)
	require.NoError(t, err)
	<-snapshots.Changed()
	s.rule(func(_ string, r *http.Request) int {
		switch {
		case strings.HasSuffix(r.URL.Path, "/status"):
			return http.StatusNotFound
		case strings.HasSuffix(r.URL.Path, "/configmaps/x"):
			return http.StatusForbidden
		}
		return 0
	})
	for name, write := range statusWrites {
		err := write.do(t.Context(), c, thing("ConfigMap", "x", 1))
		assert.ErrorContains(t, err, "its kind has no status subresource", name)
		assert.Equal(t, write.found, kates.IsNotFound(err), name)
	}
	s.rule(func(_ string, r *http.Request) int {
		switch {
		case strings.HasSuffix(r.URL.Path, "/configmaps/x/status"):
			return http.StatusNotFound
		case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/ns/configmaps/x"), r.URL.Path == "/api/v1":
			return http.StatusForbidden
		}
		return 0
	})
	err = c.UpdateStatus(t.Context(), thing("ConfigMap", "x", 1), nil)
	assert.True(t, kates.IsNotFound(err))
	assert.NotContains(t, err.Error(), "subresource", "nobody knows")
}
