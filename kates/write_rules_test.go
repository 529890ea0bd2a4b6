package kates_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func configMap(name string, data ...string) *kates.ConfigMap {
	cm := &kates.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := 0; i+1 < len(data); i += 2 {
		cm.Data = map[string]string{data[i]: data[i+1]}
	}
	return cm
}

func TestUpsertRetriesConflictsOnTheNewestVersion(t *testing.T) {
	fake := katestest.New(t, katestest.WithObjects(configMap("x", "a", "old")))
	conflicts := 0
	react(fake, "update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts++; conflicts > 3 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "x", errors.New("somebody was faster"))
	})
	src := configMap("x", "a", "new")
	src.Labels = map[string]string{"l": "1"}
	var got *kates.ConfigMap
	require.NoError(t, fake.Client.Upsert(t.Context(), nil, src, &got))
	assert.Equal(t, 4, conflicts)
	assert.Equal(t, "new", got.Data["a"])
	assert.Equal(t, "1", got.Labels["l"])
	assert.Equal(t, "default", got.Namespace)
	assert.Empty(t, src.Namespace, "what is given is never modified")
}

func TestUpsertEndsWithItsContextOrItsLastError(t *testing.T) {
	synctest.Test(t, upsertEnds)
}

func upsertEnds(t *testing.T) {
	fake := katestest.New(t, katestest.WithObjects(configMap("x")))
	react(fake, "update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "x", errors.New("always"))
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	start := time.Now()
	assert.ErrorIs(t, fake.Client.Upsert(ctx, nil, configMap("x"), nil), context.DeadlineExceeded)
	assert.Equal(t, 30*time.Millisecond, time.Since(start))
	assert.True(t, kates.IsConflict(fake.Client.Upsert(t.Context(), nil, configMap("x"), nil)))
}

func TestTheServersErrorsKeepTheirTypeThroughTheWrapping(t *testing.T) {
	c := katestest.NewClient(t, configMap("x"))
	err := c.Get(t.Context(), configMap("none"), nil)
	assert.True(t, kates.IsNotFound(err))
	assert.ErrorContains(t, err, `get configmaps "default/none"`)
	var status *apierrors.StatusError
	assert.True(t, errors.As(err, &status))
	assert.True(t, apierrors.IsAlreadyExists(c.Create(t.Context(), configMap("x"), nil)))
	assert.ErrorIs(t, c.Apply(t.Context(), configMap("x"), nil), kates.ErrApplyNotSupported)
}

func TestBadInputIsAClearErrorBeforeAnythingIsSent(t *testing.T) {
	fake := katestest.New(t)
	c := fake.Client
	for want, err := range map[string]error{
		"nil":            c.Create(t.Context(), nil, nil),
		"without a name": c.Get(t.Context(), &kates.ConfigMap{}, nil),
		"not a pointer":  c.Create(t.Context(), configMap("x"), kates.ConfigMap{}),
		"nil pointer":    c.Create(t.Context(), configMap("x"), (*kates.ConfigMap)(nil)),
		"kind":           c.Create(t.Context(), map[string]any{"metadata": map[string]any{"name": "x"}}, nil),
		`"nonsense"`:     c.Create(t.Context(), map[string]any{"kind": "nonsense", "metadata": map[string]any{"name": "x"}}, nil),
	} {
		assert.ErrorContains(t, err, want)
	}
	assert.Empty(t, fake.Dynamic.Actions())
}

func TestATargetIsZeroedBeforeItIsFilledAndUntouchedOnError(t *testing.T) {
	c := katestest.NewClient(t, configMap("x", "a", "b"))
	target := configMap("old", "left", "over")
	target.Labels = map[string]string{"left": "over"}
	require.NoError(t, c.Get(t.Context(), configMap("x"), target))
	assert.Equal(t, map[string]string{"a": "b"}, target.Data)
	assert.Empty(t, target.Labels)
	before := target.DeepCopy()
	require.Error(t, c.Get(t.Context(), configMap("none"), target))
	assert.Equal(t, before, target)
	pointer := target
	require.NoError(t, c.Get(t.Context(), configMap("x"), &pointer))
	assert.NotSame(t, target, pointer, "a pointer to a pointer gets a fresh object")
	require.NoError(t, c.Delete(t.Context(), configMap("x"), target))
	assert.Equal(t, &kates.ConfigMap{}, target, "the fake does not answer with the last state")
}

func TestWaitForReturnsTheErrorOfItsContextWhenTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := katestest.NewClient(t)
		require.NoError(t, c.WaitFor(t.Context(), "ConfigMap"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		assert.ErrorIs(t, c.WaitFor(ctx, "nonsense"), context.DeadlineExceeded)
		assert.Equal(t, 10*time.Second, time.Since(start))
	})
}

func TestDeltasAreJSONAndConvertFromObjects(t *testing.T) {
	u := widget("w", nil)
	u.SetUID("uid")
	d, err := kates.NewDeltaFromObject(kates.ObjectUpdate, u)
	require.NoError(t, err)
	text, err := json.Marshal(d)
	require.NoError(t, err)
	assert.JSONEq(t, `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"w","namespace":"default","uid":"uid"},"deltaType":"update"}`, string(text))
	var back kates.Delta
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, *d, back)
	assert.Error(t, json.Unmarshal([]byte(`"nonsense"`), &back.DeltaType))
	_, err = json.Marshal(kates.DeltaType(7))
	assert.Error(t, err)
	assert.Equal(t, "DeltaType(7)", kates.DeltaType(7).String())
}

func TestQuietOwnWritesAndTheOtherSettingsAreOfOneClientAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain := katestest.NewClient(t).With(kates.WithInterval(0))
		quiet := plain.With(kates.WithQuietOwnWrites())
		l, err := kates.Watch[services](t.Context(), plain)
		require.NoError(t, err)
		q, err := kates.Watch[services](t.Context(), quiet)
		require.NoError(t, err)
		for _, s := range []*kates.Snapshots[services]{l, q} {
			<-s.Changed()
			_, err := s.Update(t.Context(), &services{})
			require.NoError(t, err)
		}
		require.NoError(t, quiet.Create(t.Context(), service("a", "x"), nil))
		synctest.Wait()
		assert.Len(t, l.Changed(), 1)
		assert.Empty(t, q.Changed())
		var snap services
		changed, err := q.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.True(t, changed)
		assert.Len(t, snap.Deltas, 1, "in the content and in the deltas")
		plain.Close() // closes both
		_, err = quiet.Watch(t.Context(), kates.Query{Name: "A", Kind: "pods"})
		assert.ErrorIs(t, err, kates.ErrClosed)
	})
}

// The fake would persist it. Here it answers like a server, and stores nothing.
func TestG4ADryRunIsNoOwnWrite(t *testing.T) {
	fake := katestest.New(t)
	react(fake, "create", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, action.(clienttesting.CreateAction).GetObject(), nil
	})
	watch, err := fake.Client.Watch(t.Context(), kates.Query{Name: "ConfigMaps", Kind: "configmaps"})
	require.NoError(t, err)
	<-watch.Changed()
	var snap struct{ ConfigMaps []*kates.ConfigMap }
	require.NoError(t, fake.Client.Create(t.Context(), configMap("x"), nil, kates.DryRun()))
	_, err = watch.Update(t.Context(), &snap)
	require.NoError(t, err)
	assert.NotNil(t, snap.ConfigMaps)
	assert.Empty(t, snap.ConfigMaps)
}
