package kates_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// contended returns a fake whose first patches are conflicts.
func contended(t *testing.T, conflicts int) (fake *katestest.Fake, patches *int) {
	fake = katestest.New(t, katestest.WithObjects(configMap("x", "a", "0")))
	patches = new(int)
	react(fake, "patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if *patches++; *patches > conflicts {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "x", errors.New("somebody was faster"))
	})
	return fake, patches
}

func grow(cm *kates.ConfigMap) error { cm.Data["a"] += "1"; return nil }

func TestModifyTriesAgainAfterAConflictFromWhatTheServerHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, patches := contended(t, 3)
		got, err := kates.Modify(t.Context(), fake.Client, configMap("x"), grow)
		require.NoError(t, err)
		assert.Equal(t, "01", got.Data["a"], "each try starts anew")
		assert.Equal(t, 4, *patches)
	})
}

func TestModifyEndsWithTheConflictAfterSomeTriesOrWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, patches := contended(t, 1000)
		start := time.Now()
		_, err := kates.Modify(t.Context(), fake.Client, configMap("x"), grow)
		assert.True(t, kates.IsConflict(err), "%v", err)
		assert.ErrorContains(t, err, `modify configmaps "default/x"`)
		assert.Equal(t, 21, *patches)
		assert.Less(t, time.Since(start), 10*time.Second)

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start = time.Now()
		_, err = kates.Modify(ctx, fake.Client, configMap("x"), grow)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "somebody was faster")
		assert.Equal(t, 100*time.Millisecond, time.Since(start))
	})
}

func TestAnErrorOfAChangeIsNoConflictOfModify(t *testing.T) {
	fake, patches := contended(t, 0)
	for _, mine := range []error{
		apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "y", errors.New("of another object")),
		fmt.Errorf("mine: %w", context.DeadlineExceeded),
	} {
		calls := 0
		_, err := kates.Modify(t.Context(), fake.Client, configMap("x"), func(*kates.ConfigMap) error { calls++; return mine })
		assert.Same(t, mine, err)
		assert.Equal(t, 1, calls)
	}
	assert.Zero(t, *patches)
}

func TestModifyStartsFromWhatAFakeHasNowThoughItWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, patches := contended(t, 0)
		acc, err := fake.Client.Watch(t.Context(), kates.Query{Name: "A", Kind: "cm"})
		require.NoError(t, err)
		defer acc.Close()
		synctest.Wait()
		others := fake.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
		for range 5 { // another program writes in between, and the watch may be late
			_, err := kates.Modify(t.Context(), fake.Client, configMap("x"), grow)
			require.NoError(t, err)
			u, err := others.Get(t.Context(), "x", metav1.GetOptions{})
			require.NoError(t, err)
			_ = unstructured.SetNestedField(u.Object, u.Object["data"].(map[string]any)["a"].(string)+"2", "data", "a")
			_, err = others.Update(t.Context(), u, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
		var cm kates.ConfigMap
		require.NoError(t, fake.Client.Get(t.Context(), configMap("x"), &cm))
		assert.Equal(t, "01212121212", cm.Data["a"])
		assert.Equal(t, 5, *patches)
	})
}

func TestTheErrorOfDeleteAllNamesEveryObjectThatIsLeftAndOnlyThose(t *testing.T) {
	fake := katestest.New(t, katestest.WithObjects(configMap("a"), configMap("b"), configMap("c"), configMap("d")))
	react(fake, "delete", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		switch name := a.(clienttesting.DeleteAction).GetName(); name {
		case "a", "c":
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, name, errors.New("hands off"))
		case "d":
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
		}
		return false, nil, nil
	})
	err := fake.Client.DeleteAll(t.Context(), kates.Query{Kind: "cm"})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, `delete configmaps "default/a"`)
	assert.ErrorContains(t, err, `delete configmaps "default/c"`)
	assert.NotContains(t, err.Error(), "default/b")
	assert.NotContains(t, err.Error(), "default/d")
	assert.True(t, kates.IsNotFound(fake.Client.Get(t.Context(), configMap("b"), nil)))
}

func TestAContextThatEndsAmidDeleteAllLeavesTheRest(t *testing.T) {
	var objects []kates.Object
	for i := range 100 {
		objects = append(objects, configMap(fmt.Sprintf("cm-%02d", i)))
	}
	fake := katestest.New(t, katestest.WithObjects(objects...))
	ctx, cancel := context.WithCancel(t.Context())
	react(fake, "delete", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		cancel()
		return false, nil, nil
	})
	err := fake.Client.DeleteAll(ctx, kates.Query{Kind: "cm"})
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "of 100 not tried")
	var left []*kates.ConfigMap
	require.NoError(t, fake.Client.List(t.Context(), kates.Query{Kind: "cm"}, &left))
	assert.GreaterOrEqual(t, len(left), 80)
	assert.Less(t, len(left), 100)
}

// expiring returns a fake whose lists have two pages. The second one always fails.
func expiring(t *testing.T) *katestest.Fake {
	fake := katestest.New(t, katestest.WithObjects(configMap("a"), configMap("b")))
	pages := 0
	react(fake, "list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if pages++; pages%3 == 2 {
			return true, nil, apierrors.NewResourceExpired("too old")
		} else if pages%3 == 0 {
			return false, nil, nil
		}
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configMap("a"))
		page := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMapList"}, Items: []unstructured.Unstructured{{Object: u}}}
		page.Items[0].SetNamespace("default")
		page.Items[0].SetAPIVersion("v1")
		page.Items[0].SetKind("ConfigMap")
		page.SetContinue("more")
		return true, page, err
	})
	return fake
}

func TestAListWhosePagesExpireBeginsAnew(t *testing.T) {
	fake := expiring(t)
	var all []*kates.ConfigMap
	require.NoError(t, fake.Client.List(t.Context(), kates.Query{Kind: "cm"}, &all))
	assert.Len(t, all, 2)
	deletes := 0
	react(fake, "delete", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		deletes++
		return false, nil, nil
	})
	require.NoError(t, fake.Client.DeleteAll(t.Context(), kates.Query{Kind: "cm"}))
	assert.Equal(t, 2, deletes, "each once")
}
