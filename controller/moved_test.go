package controller

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func thingsIn(scope string) *kates.Unstructured {
	return &kates.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "things.moved.test"},
		"spec": map[string]any{
			"group": "moved.test", "scope": scope, "names": map[string]any{"plural": "things", "kind": "Thing"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
}

// TestAControllerWhoseRootComesBackWithAnotherScopeFollowsItOrSaysThatItCannot: the keys of what a
// root owns go by its scope.
func TestAControllerWhoseRootComesBackWithAnotherScopeFollowsItOrSaysThatItCannot(t *testing.T) {
	t.Run("it owns nothing", func(t *testing.T) {
		testMovedRoot[struct {
			Thing *kates.Unstructured `kates:"things.moved.test,root"`
			Info  Info
		}](t, func(keys []string, status kates.Status) {
			assert.Equal(t, []string{"default/a", "default/a", "a"}, keys)
			assert.NoError(t, status.Err())
		})
	})
	t.Run("it may own objects later", func(t *testing.T) {
		testMovedRoot[struct {
			Thing *kates.Unstructured `kates:"things.moved.test,root"`
			Owned []*corev1.ConfigMap `kates:",owned,later"`
			Info  Info
		}](t, func(keys []string, status kates.Status) {
			assert.Equal(t, []string{"default/a", "default/a"}, keys)
			assert.ErrorContains(t, status.Err(), "another scope")
		})
	})
	t.Run("it owns objects", func(t *testing.T) {
		testMovedRoot[struct {
			Thing *kates.Unstructured `kates:"things.moved.test,root"`
			Owned []*corev1.ConfigMap `kates:",owned"`
			Info  Info
		}](t, func(keys []string, status kates.Status) {
			assert.Equal(t, []string{"default/a", "default/a"}, keys)
			assert.ErrorContains(t, status.Err(), "another scope")
		})
	})
}

func testMovedRoot[P any](t *testing.T, check func(keys []string, status kates.Status)) {
	synctest.Test(t, func(t *testing.T) {
		server := katestest.NewServer(t)
		admin, client := server.Client(t), server.Client(t)
		define := func(scope string) {
			require.NoError(t, admin.Create(t.Context(), thingsIn(scope), nil))
			thing := kates.NewUnstructured("Thing", "moved.test/v1")
			thing.SetName("a")
			require.NoError(t, admin.Create(t.Context(), thing, nil))
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		var keys []string
		define("Namespaced")
		c, err := New(client, "test", func(_ context.Context, p *P) (Result, error) {
			keys = append(keys, reflect.ValueOf(p).Elem().FieldByName("Info").Interface().(Info).Key)
			return Done, nil
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		time.Sleep(time.Minute)
		require.NoError(t, admin.Delete(t.Context(), thingsIn("Namespaced"), nil))
		time.Sleep(time.Minute)
		define("Cluster")
		check(keys, client.Status())
		cancel()
		require.NoError(t, <-done)
	})
}
