package kates_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// writeErrors are what a write may end with, other than success.
var writeErrors = func() map[string]error {
	of := schema.GroupResource{Resource: "configmaps"}
	return map[string]error{
		"conflict":            apierrors.NewConflict(of, "x", errors.New("somebody was faster")),
		"invalid":             apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "x", nil),
		"exists":              apierrors.NewAlreadyExists(of, "x"),
		"not found":           apierrors.NewNotFound(of, "x"),
		"forbidden":           apierrors.NewForbidden(of, "x", errors.New("no right")),
		"internal":            apierrors.NewInternalError(errors.New("etcd is away")),
		"server timeout":      apierrors.NewServerTimeout(of, "update", 1),
		"too many":            apierrors.NewTooManyRequests("later", 1),
		"deadline":            context.DeadlineExceeded,
		"cancelled":           context.Canceled,
		"network":             &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")},
		"in the middle":       io.ErrUnexpectedEOF,
		"before the answer":   fmt.Errorf("Post \"https://server\": %w", io.EOF),
		"plain, and answered": errors.New("plain"),
	}
}()

// writing is every method that writes, and the verb that it sends.
var writing = map[string]struct {
	verb string
	do   func(ctx context.Context, c *kates.Client, target any) error
}{
	"Create": {"create", func(ctx context.Context, c *kates.Client, target any) error {
		return c.Create(ctx, configMap("new", "a", "lost"), target)
	}},
	"Update": {"update", func(ctx context.Context, c *kates.Client, target any) error {
		return c.Update(ctx, configMap("x", "a", "lost"), target)
	}},
	"UpdateStatus": {"update", func(ctx context.Context, c *kates.Client, _ any) error {
		return c.UpdateStatus(ctx, &kates.Pod{ObjectMeta: kates.ObjectMeta{Namespace: "default", Name: "x"}}, nil)
	}},
	"Patch": {"patch", func(ctx context.Context, c *kates.Client, target any) error {
		return c.Patch(ctx, configMap("x"), types.MergePatchType, []byte(`{"data":{"a":"lost"}}`), target)
	}},
	"Apply": {"patch", func(ctx context.Context, c *kates.Client, target any) error {
		return c.Apply(ctx, configMap("x", "a", "lost"), target)
	}},
	"Delete": {"delete", func(ctx context.Context, c *kates.Client, target any) error {
		return c.Delete(ctx, configMap("x"), target)
	}},
	"Upsert": {"update", func(ctx context.Context, c *kates.Client, target any) error {
		return c.Upsert(ctx, nil, configMap("x", "a", "lost"), target)
	}},
	"Modify": {"*", func(ctx context.Context, c *kates.Client, _ any) error {
		_, err := kates.Modify(ctx, c, configMap("x"), func(cm *kates.ConfigMap) error {
			cm.Data["a"] = "lost"
			return nil
		})
		return err
	}},
	"DeleteAll": {"delete", func(ctx context.Context, c *kates.Client, _ any) error {
		return c.DeleteAll(ctx, kates.Query{Kind: "configmaps"})
	}},
}

// TestG4AnErrorOfAWriteIsNoSuccessAndNoOwnWrite: whatever the error, the method returns it, leaves
// its target alone, and no snapshot shows what was not written. The fake's answer comes with the
// error, as a broken proxy might send one.
func TestG4AnErrorOfAWriteIsNoSuccessAndNoOwnWrite(t *testing.T) {
	for method, w := range writing {
		for name, cause := range writeErrors {
			t.Run(method+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { failingWrite(t, method, w.verb, cause, w.do) })
			})
		}
	}
}

func failingWrite(t *testing.T, method, verb string, cause error, do func(context.Context, *kates.Client, any) error) {
	fake := katestest.New(t, katestest.WithObjects(configMap("x", "a", "kept")))
	snapshots, err := kates.Watch[struct{ ConfigMaps []*kates.ConfigMap }](t.Context(), fake.Client)
	require.NoError(t, err)
	<-snapshots.Changed()
	snap := struct{ ConfigMaps []*kates.ConfigMap }{}
	_, err = snapshots.Update(t.Context(), &snap)
	require.NoError(t, err)
	sent := 0
	react(fake, verb, "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetVerb() == "get" || a.GetVerb() == "list" || a.GetVerb() == "watch" {
			return false, nil, nil
		}
		sent++
		return true, configMap("x", "a", "lost"), cause
	})
	target := configMap("untouched", "a", "before")
	want := target.DeepCopy()
	err = do(t.Context(), fake.Client, target)
	gone := apierrors.IsNotFound(cause)
	switch {
	case method == "DeleteAll" && gone:
		require.NoError(t, err, "what is gone is deleted")
	default:
		require.ErrorIs(t, err, cause)
		assert.Equal(t, apierrors.ReasonForError(cause), apierrors.ReasonForError(err), "the error keeps its type")
	}
	assert.Equal(t, want, target, "the target is untouched on error")
	again := false // somebody was faster: the object is read again
	switch method {
	case "Modify":
		again = apierrors.IsConflict(cause) || gone
	case "Upsert":
		again = apierrors.IsConflict(cause) || gone || apierrors.IsAlreadyExists(cause)
	}
	assert.Equal(t, again, sent > 1, "tried %d times", sent)
	_, err = snapshots.Update(t.Context(), &snap)
	require.NoError(t, err)
	require.Len(t, snap.ConfigMaps, 1)
	assert.Equal(t, "kept", snap.ConfigMaps[0].Data["a"])
	for _, q := range fake.Client.Status().Queries {
		assert.Zero(t, q.Pending, "no own write")
	}
}

// TestG4AReadEndsNoOwnWriteThatTheWatchHasNotShown: no watch can be opened, so the own write is
// pending when each method that reads is called, and after it.
func TestG4AReadEndsNoOwnWriteThatTheWatchHasNotShown(t *testing.T) {
	reading := map[string]func(context.Context, *kates.Client) error{
		"Get": func(ctx context.Context, c *kates.Client) error { return c.Get(ctx, configMap("x"), nil) },
		"List": func(ctx context.Context, c *kates.Client) error {
			return c.List(ctx, kates.Query{Kind: "configmaps"}, &[]*kates.ConfigMap{})
		},
		"GetCached": func(ctx context.Context, c *kates.Client) error {
			got, err := kates.GetCached[kates.ConfigMap](ctx, c, "default", "x")
			if err == nil && got.Data["a"] != "new" {
				err = fmt.Errorf("not as written: %v", got.Data)
			}
			return err
		},
	}
	for name, read := range reading {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := katestest.New(t, katestest.WithObjects(configMap("x", "a", "old")))
				fake.Dynamic.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) {
					return true, nil, apierrors.NewServiceUnavailable("there is no watch")
				})
				snapshots, err := kates.Watch[struct{ ConfigMaps []*kates.ConfigMap }](t.Context(), fake.Client)
				require.NoError(t, err)
				<-snapshots.Changed()
				require.NoError(t, fake.Client.Update(t.Context(), configMap("x", "a", "new"), nil))
				pending := func() (all int) {
					for _, q := range fake.Client.Status().Queries {
						all += q.Pending
					}
					return all
				}
				require.Equal(t, 1, pending())
				require.NoError(t, read(t.Context(), fake.Client))
				assert.Equal(t, 1, pending())
				snap := struct{ ConfigMaps []*kates.ConfigMap }{}
				_, err = snapshots.Update(t.Context(), &snap)
				require.NoError(t, err)
				require.Len(t, snap.ConfigMaps, 1)
				assert.Equal(t, "new", snap.ConfigMaps[0].Data["a"])
			})
		})
	}
}
