package suite

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
)

var finalizerScenarios = []scenario{
	{"FinalizersAreAddedAndRemovedAmongOthersAndNothingIsWrittenTwice", finalizersAmongOthers},
	{"AddFinalizerToAnObjectThatIsBeingDeletedIsErrDeleting", finalizerTooLate},
	{"UnderFinalizerTheFirstEffectComesAfterTheFinalizer", finalizerFirst},
	{"UnderFinalizerTheFinalizerGoesLastAndOnlyAfterACleanupWithoutError", finalizerLast},
	{"UnderFinalizerNothingIsDoneForAnObjectThatIsGoneOrGoesWithoutIt", finalizerNothing},
	{"UnderFinalizerNothingIsDoneToAnotherObjectOfTheName", finalizerFormer},
	{"FinalizersOfBadInputAreAClearError", finalizersInvalid},
}

const ours, theirs = "example.com/ours", "example.com/theirs"

// leaving makes a config map that is being deleted and waits for its finalizers to be removed.
func (e *env) leaving(name string, finalizers ...string) *corev1.ConfigMap {
	cm := e.configMap(name, "a", "1")
	cm.Finalizers = finalizers
	if !e.backend.Real { // a fake would delete it
		now := metav1.Now()
		cm.DeletionTimestamp = &now
	}
	e.foreignCreate(cm)
	if e.backend.Real {
		e.foreignDelete(cm)
	}
	return e.configMap(name)
}

func finalizersAmongOthers(t *testing.T, e *env) {
	cm := e.configMap("cm", "a", "1")
	cm.Finalizers = []string{theirs}
	e.foreignCreate(cm)
	type all struct{ ConfigMaps []*corev1.ConfigMap }
	snapshots := watch[all](e, e.client, kates.Query{Name: "ConfigMaps", Namespace: e.ns})
	var snap all
	awaitFirst(t, snapshots, &snap)
	require.NoError(t, e.client.AddFinalizer(e.ctx, cm, ours))
	now(t, snapshots, &snap)
	assert.Equal(t, []string{theirs, ours}, shown(t, snap.ConfigMaps, "cm").Finalizers)
	require.NoError(t, e.client.AddFinalizer(e.ctx, cm, ours))
	unchanged(t, snapshots, &snap)
	require.NoError(t, e.client.RemoveFinalizer(e.ctx, cm, theirs))
	now(t, snapshots, &snap)
	assert.Equal(t, []string{ours}, shown(t, snap.ConfigMaps, "cm").Finalizers)
	require.NoError(t, e.client.RemoveFinalizer(e.ctx, cm, theirs))
	unchanged(t, snapshots, &snap)
	assert.Equal(t, map[string]string{"a": "1"}, shown(t, snap.ConfigMaps, "cm").Data)
	require.NoError(t, e.client.RemoveFinalizer(e.ctx, e.configMap("gone"), ours), "what is gone has none")
	require.True(t, kates.IsNotFound(e.client.AddFinalizer(e.ctx, e.configMap("gone"), ours)))
}

func finalizerTooLate(t *testing.T, e *env) {
	cm := e.leaving("cm", theirs)
	require.ErrorIs(t, e.client.AddFinalizer(e.ctx, cm, ours), kates.ErrDeleting)
	stored, err := e.stored(cm)
	require.NoError(t, err)
	assert.Equal(t, []string{theirs}, stored.GetFinalizers())
}

func finalizerFirst(t *testing.T, e *env) {
	cm := e.configMap("cm", "a", "1")
	e.foreignCreate(cm)
	never := func(context.Context, *corev1.ConfigMap) error { t.Error("it lives"); return nil }
	calls, failed := 0, errors.New("failed")
	for _, result := range []error{failed, nil, nil} {
		err := kates.UnderFinalizer(e.ctx, e.client, cm, ours, func(_ context.Context, got *corev1.ConfigMap) error {
			calls++
			stored, err := e.stored(cm)
			require.NoError(t, err)
			assert.Equal(t, []string{ours}, stored.GetFinalizers(), "before the first effect")
			assert.Equal(t, []string{ours}, got.Finalizers)
			assert.Equal(t, "1", got.Data["a"])
			got.Data["a"] = "mine"
			return result
		}, never)
		assert.Equal(t, result, err)
	}
	assert.Equal(t, 3, calls)
	assert.Empty(t, cm.Finalizers, "what is given is not modified")
}

func finalizerLast(t *testing.T, e *env) {
	cm := e.leaving("cm", theirs, ours)
	live := func(context.Context, *map[string]any) error { t.Error("it is being deleted"); return nil }
	failed, calls := errors.New("failed"), 0
	for _, result := range []error{failed, nil} {
		err := kates.UnderFinalizer(e.ctx, e.client, cm, ours, live, func(_ context.Context, got *map[string]any) error {
			calls++
			stored, err := e.stored(cm)
			require.NoError(t, err)
			assert.Equal(t, []string{theirs, ours}, stored.GetFinalizers(), "after the last effect")
			assert.Equal(t, map[string]any{"a": "1"}, (*got)["data"])
			return result
		})
		assert.Equal(t, result, err)
	}
	assert.Equal(t, 2, calls)
	stored, err := e.stored(cm)
	require.NoError(t, err)
	assert.Equal(t, []string{theirs}, stored.GetFinalizers())
	require.NoError(t, kates.UnderFinalizer(e.ctx, e.client, cm, theirs, live, func(context.Context, *map[string]any) error { return nil }))
	if e.backend.Real { // a fake keeps it
		_, err = e.stored(cm)
		require.True(t, kates.IsNotFound(err), "%v", err)
	}
}

func finalizerNothing(t *testing.T, e *env) {
	never := func(context.Context, *corev1.ConfigMap) error { t.Error("there is nothing to do"); return nil }
	require.NoError(t, kates.UnderFinalizer(e.ctx, e.client, e.configMap("gone"), ours, never, never))
	require.NoError(t, kates.UnderFinalizer(e.ctx, e.client, e.leaving("cm", theirs), ours, never, never))
	stored, err := e.stored(e.configMap("cm"))
	require.NoError(t, err)
	assert.Equal(t, []string{theirs}, stored.GetFinalizers())
}

// finalizerFormer: the caller has an object of a snapshot, and another one has its name by now.
// With effects for the former one, the new one would never have its own.
func finalizerFormer(t *testing.T, e *env) {
	given := e.configMap("cm", "a", "former")
	given.UID = "former" // a server gives it another one
	e.foreignCreate(given)
	former, err := e.stored(given)
	require.NoError(t, err)
	e.foreignDelete(given)
	next := e.configMap("cm", "a", "next")
	next.UID = "next"
	e.foreignCreate(next)
	finalizers := func() []string {
		stored, err := e.stored(next)
		require.NoError(t, err)
		return stored.GetFinalizers()
	}

	never := func(context.Context, *corev1.ConfigMap) error { t.Error("it is gone"); return nil }
	require.NoError(t, kates.UnderFinalizer(e.ctx, e.client, former, ours, never, never))
	err = e.client.AddFinalizer(e.ctx, former, ours)
	assert.True(t, kates.IsConflict(err), "%v", err)
	assert.Empty(t, finalizers())

	require.NoError(t, e.client.AddFinalizer(e.ctx, e.configMap("cm"), ours))
	require.NoError(t, e.client.RemoveFinalizer(e.ctx, former, ours))
	assert.Equal(t, []string{ours}, finalizers())

	e.leaving("leaving", ours)
	former.SetName("leaving")
	require.NoError(t, kates.UnderFinalizer(e.ctx, e.client, former, ours, never, never))
}

func finalizersInvalid(t *testing.T, e *env) {
	e.foreignCreate(e.configMap("cm"))
	nothing := func(context.Context, *corev1.ConfigMap) error { return nil }
	for _, name := range []string{"", "nodomain", "example.com/", "a b/c"} {
		assert.ErrorContains(t, e.client.AddFinalizer(e.ctx, e.configMap("cm"), name), "not the name of a finalizer")
		assert.ErrorContains(t, kates.UnderFinalizer(e.ctx, e.client, e.configMap("cm"), name, nothing, nothing), "not the name of a finalizer")
	}
	assert.ErrorContains(t, e.client.RemoveFinalizer(e.ctx, e.configMap("cm"), ""), "without a name")
	assert.ErrorContains(t, kates.UnderFinalizer(e.ctx, e.client, e.configMap("cm"), ours, nil, nothing), "nil")
	assert.ErrorContains(t, kates.UnderFinalizer(e.ctx, e.client, e.configMap("cm"), ours, nothing, nil), "nil")
	assert.ErrorContains(t, e.client.AddFinalizer(e.ctx, e.configMap(""), ours), "without a name")
	another := func(context.Context, *corev1.Secret) error { return nil }
	assert.ErrorContains(t, kates.UnderFinalizer(e.ctx, e.client, e.configMap("cm"), ours, another, another), "v1.Secret is /v1, Kind=Secret, not /v1, Kind=ConfigMap")
	stored, err := e.stored(e.configMap("cm"))
	require.NoError(t, err)
	assert.Empty(t, stored.GetFinalizers())
}
