package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
)

func TestG4GetAsksTheServerOnlyWhereNoWatchCanTell(t *testing.T) {
	o := newOwnedTest(t)
	get := func(name string) string {
		t.Helper()
		cm, err := kates.GetCached[corev1.ConfigMap](t.Context(), o.client, o.ns, name)
		if kates.IsNotFound(err) {
			return "not found"
		}
		require.NoError(t, err)
		return cm.Data["k"]
	}
	require.NoError(t, o.client.Create(t.Context(), o.configMap("a", "k", "1"), nil))
	o.spy.seen()
	assert.Equal(t, "1", get("a"))
	assert.Equal(t, "not found", get("none"))
	assert.Equal(t, map[string]int{"GET": 2}, o.spy.seen(), "nothing watches it")

	o.watch(kates.Query{Kind: "cm", Namespace: o.ns, LabelSelector: "in=yes"})
	assert.Equal(t, []string{"1", "not found"}, []string{get("a"), get("none")})
	assert.Equal(t, map[string]int{"GET": 2}, o.spy.seen(), "it may be out of the selector")
	o.watch(kates.Query{Kind: "cm", Namespace: o.ns, MetadataOnly: true})
	assert.Equal(t, "1", get("a"))
	assert.Equal(t, map[string]int{"GET": 1}, o.spy.seen(), "metadata is not all of it")
	short, err := kates.GetCached[kates.PartialObjectMetadata](t.Context(), o.client, o.ns, "a", kates.OfKind("cm"))
	require.NoError(t, err)
	assert.Equal(t, "ConfigMap", short.Kind)
	assert.Empty(t, o.spy.seen(), "and here it is")

	o.watch()
	o.w.set("configmaps", late)
	assert.Equal(t, []string{"1", "not found"}, []string{get("a"), get("none")})
	_, err = kates.Modify(t.Context(), o.client, o.configMap("a"), func(cm *corev1.ConfigMap) error { cm.Data["k"] = "2"; return nil })
	require.NoError(t, err)
	require.NoError(t, o.client.Create(t.Context(), o.configMap("none", "k", "new"), nil))
	assert.Equal(t, []string{"2", "new"}, []string{get("a"), get("none")}, "though the watch is late")
	require.NoError(t, o.client.Delete(t.Context(), o.configMap("a"), nil))
	assert.Equal(t, "not found", get("a"))
	assert.Zero(t, o.spy.seen()["GET"])
}

func TestFinalizersOfEightWritersAreAllAddedAndAllRemoved(t *testing.T) {
	o := newOwnedTest(t)
	require.NoError(t, o.client.Create(t.Context(), o.configMap("a", "k", "1"), nil))
	o.watch()
	o.w.set("configmaps", late)
	each := func(do func(c *kates.Client, finalizer string) error) {
		var writers sync.WaitGroup
		for i := range 8 {
			c := o.client
			if i > 2 {
				c = newWire(t).client(t)
			}
			writers.Go(func() { assert.NoError(t, do(c, fmt.Sprintf("example.com/f%d", i))) })
		}
		writers.Wait()
	}
	each(func(c *kates.Client, f string) error { return c.AddFinalizer(t.Context(), o.configMap("a"), f) })
	assert.Len(t, o.stored("a").GetFinalizers(), 8)
	require.NoError(t, o.client.Delete(t.Context(), o.configMap("a"), nil))
	each(func(c *kates.Client, f string) error {
		return kates.UnderFinalizer(t.Context(), c, o.configMap("a"), f, func(context.Context, *corev1.ConfigMap) error { return errors.New("it is being deleted") },
			func(context.Context, *corev1.ConfigMap) error { return nil })
	})
	assert.Nil(t, o.stored("a"))
	o.w.set("configmaps", 0)
	require.NoError(t, o.client.Sync(t.Context()))
	_, err := kates.GetCached[corev1.ConfigMap](t.Context(), o.client, o.ns, "a")
	assert.True(t, kates.IsNotFound(err), "%v", err)
}

func TestFinalizersThatAreThereOrNotThereCostNoRequest(t *testing.T) {
	o := newOwnedTest(t)
	require.NoError(t, o.client.Create(t.Context(), o.configMap("a"), nil))
	o.watch()
	for range 2 {
		require.NoError(t, o.client.AddFinalizer(t.Context(), o.configMap("a"), "example.com/f"))
	}
	assert.Equal(t, map[string]int{"PATCH": 1}, o.spy.seen())
	for range 2 {
		require.NoError(t, o.client.RemoveFinalizer(t.Context(), o.configMap("a"), "example.com/f"))
	}
	assert.Equal(t, map[string]int{"PATCH": 1}, o.spy.seen())
}

func TestUnderFinalizerAnObjectThatIsReplacedDuringItsCleanupIsDoneWithAndTheNewOneIsLeft(t *testing.T) {
	o := newOwnedTest(t)
	const f = "example.com/f"
	held := o.configMap("a")
	held.Finalizers = []string{f}
	require.NoError(t, o.client.Create(t.Context(), held, nil))
	o.watch()
	o.w.set("configmaps", late)
	require.NoError(t, o.client.Delete(t.Context(), held, nil))
	live := func(context.Context, *corev1.ConfigMap) error { return errors.New("it is being deleted") }
	require.NoError(t, kates.UnderFinalizer(t.Context(), o.client, held, f, live, func(context.Context, *corev1.ConfigMap) error {
		o.patch("a", `{"metadata":{"finalizers":null}}`) // as another replica
		next := o.configMap("a")
		next.Finalizers = []string{f}
		return newWire(t).client(t).Create(t.Context(), next, nil)
	}))
	assert.Equal(t, []string{f}, o.stored("a").GetFinalizers())
	assert.Nil(t, o.stored("a").GetDeletionTimestamp())
}

func TestUnderFinalizerADeletionAtTheLastMomentHasNoEffects(t *testing.T) {
	o := newOwnedTest(t)
	require.NoError(t, o.client.Create(t.Context(), o.configMap("a"), nil))
	held := o.configMap("b")
	held.Finalizers = []string{"example.com/theirs"}
	require.NoError(t, o.client.Create(t.Context(), held, nil))
	o.watch()
	o.w.set("configmaps", late)
	never := func(context.Context, *corev1.ConfigMap) error { t.Error("it is gone"); return nil }
	for _, name := range []string{"a", "b"} {
		o.spy.before("PATCH", func() { o.remove(name) })
		require.NoError(t, kates.UnderFinalizer(t.Context(), o.client, o.configMap(name), "example.com/f", never, never))
	}
	assert.Equal(t, []string{"example.com/theirs"}, o.stored("b").GetFinalizers())
}

// TestUnderFinalizerAnObjectThatIsReplacedAtTheLastMomentHasNoEffects: the snapshot still shows
// the former object when another one takes its name. Effects for the former one would stay for
// ever: the new one has the finalizer and does not know of them.
func TestUnderFinalizerAnObjectThatIsReplacedAtTheLastMomentHasNoEffects(t *testing.T) {
	o := newOwnedTest(t)
	former := &corev1.ConfigMap{}
	require.NoError(t, o.client.Create(t.Context(), o.configMap("a"), former))
	o.watch()
	o.w.set("configmaps", late)
	o.spy.before("PATCH", func() {
		o.remove("a")
		o.make("a", map[string]any{"k": "new"})
	})
	never := func(context.Context, *corev1.ConfigMap) error { t.Error("it is gone"); return nil }
	require.NoError(t, kates.UnderFinalizer(t.Context(), o.client, former, "example.com/f", never, never))
	assert.Empty(t, o.stored("a").GetFinalizers())
	assert.NotEqual(t, former.UID, o.stored("a").GetUID())

	// The next snapshot shows the new one.
	o.w.set("configmaps", 0)
	require.NoError(t, o.client.Sync(t.Context()))
	next, err := kates.GetCached[corev1.ConfigMap](t.Context(), o.client, o.ns, "a")
	require.NoError(t, err)
	made := 0
	require.NoError(t, kates.UnderFinalizer(t.Context(), o.client, next, "example.com/f", func(_ context.Context, got *corev1.ConfigMap) error {
		assert.Equal(t, next.UID, got.UID)
		made++
		return nil
	}, never))
	assert.Equal(t, 1, made)
	assert.Equal(t, []string{"example.com/f"}, o.stored("a").GetFinalizers())
}

var budgets = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}

// budget makes an object with conditions. Its watch is late.
func (o *ownedTest) budget() *policyv1.PodDisruptionBudget {
	o.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: named(o.ns, "b")}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	require.NoError(o, o.client.Create(o.Context(), b, b))
	o.spy = newSpy(o.w, "poddisruptionbudgets")
	o.watch(kates.Query{Kind: "pdb", Namespace: o.ns})
	o.w.set("poddisruptionbudgets", late)
	return b
}

func TestConditionsOfEightWritersAreAllThereAndNothingIsSentTwice(t *testing.T) {
	o := newOwnedTest(t)
	b := o.budget()
	var writers sync.WaitGroup
	for i := range 8 {
		c := o.client
		if i > 2 {
			c = newWire(t).client(t)
		}
		writers.Go(func() {
			assert.NoError(t, c.SetConditions(t.Context(), b, []kates.Condition{{Type: fmt.Sprintf("T%d", i), Status: "True", Reason: "R"}}))
		})
	}
	writers.Wait()
	got, err := foreign(t).Resource(budgets).Namespace(o.ns).Get(t.Context(), "b", metav1.GetOptions{})
	require.NoError(t, err)
	for i := range 8 {
		c := kates.FindCondition(got, fmt.Sprintf("T%d", i))
		require.NotNil(t, c)
		assert.Equal(t, int64(1), c.ObservedGeneration)
	}
	require.NoError(t, o.client.SetConditions(t.Context(), b, []kates.Condition{{Type: "T1", Status: "False", Reason: "R"}}))
	o.spy.seen()
	for range 3 {
		require.NoError(t, o.client.SetConditions(t.Context(), b, []kates.Condition{{Type: "T1", Status: "False", Reason: "R"}}))
		_, err := kates.ModifyStatus(t.Context(), o.client, b, func(b *policyv1.PodDisruptionBudget) error {
			b.Status.ExpectedPods = 0
			return nil
		})
		require.NoError(t, err)
	}
	assert.Empty(t, o.spy.seen())
}

func TestAStatusIsNotWrittenToAnotherObjectOfTheSameName(t *testing.T) {
	o := newOwnedTest(t)
	b := o.budget()
	d := foreign(t).Resource(budgets).Namespace(o.ns)
	require.NoError(t, d.Delete(t.Context(), "b", metav1.DeleteOptions{}))
	again := b.DeepCopy()
	again.ResourceVersion, again.UID = "", ""
	require.NoError(t, newWire(t).client(t).Create(t.Context(), again, nil))
	err := o.client.SetConditions(t.Context(), b, []kates.Condition{{Type: "Ready", Status: "True", Reason: "R"}})
	assert.True(t, kates.IsConflict(err), "%v", err)
	b.Status.ExpectedPods = 3
	_, err = setStatus(t.Context(), o.client, b)
	assert.True(t, kates.IsConflict(err), "%v", err)
	got, err := d.Get(t.Context(), "b", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Nil(t, kates.FindCondition(got, "Ready"))
}

// setStatus makes the status of a budget that of the given one.
func setStatus(ctx context.Context, c *kates.Client, given *policyv1.PodDisruptionBudget, opts ...kates.WriteOption) (*policyv1.PodDisruptionBudget, error) {
	return kates.ModifyStatus(ctx, c, given, func(now *policyv1.PodDisruptionBudget) error {
		now.Status = given.Status
		return nil
	}, opts...)
}

func TestAStatusIsSentOnceThroughConflictsWithWritersOfTheSpec(t *testing.T) {
	o := newOwnedTest(t)
	b := o.budget()
	b.Status.ExpectedPods = 3
	o.spy.before(http.MethodPatch, func() {
		_, err := foreign(t).Resource(budgets).Namespace(o.ns).Patch(t.Context(), "b", kates.MergePatchType, []byte(`{"metadata":{"labels":{"l":"m"}}}`), metav1.PatchOptions{})
		assert.NoError(t, err)
	})
	got, err := setStatus(t.Context(), o.client, b)
	require.NoError(t, err)
	assert.Equal(t, int32(3), got.Status.ExpectedPods)
	assert.Equal(t, map[string]string{"l": "m"}, got.Labels)
	assert.Equal(t, map[string]int{"PATCH": 2, "GET": 1}, o.spy.seen())
	for range 2 {
		_, err = setStatus(t.Context(), o.client, b)
		require.NoError(t, err)
	}
	assert.Empty(t, o.spy.seen())
}

func TestAStatusThatIsThereIsNotSentAndYetBoundToTheObject(t *testing.T) {
	o := newOwnedTest(t)
	b := o.budget()
	require.NoError(t, open[*policyv1.PodDisruptionBudget](t, o.client, o.ns))
	o.spy.seen()
	another := b.DeepCopy()
	another.UID = "another"
	_, err := setStatus(t.Context(), o.client, another)
	assert.True(t, kates.IsConflict(err), "%v", err)
	_, err = setStatus(t.Context(), o.client, b, kates.IfResourceVersion("1"))
	assert.True(t, kates.IsConflict(err), "%v", err)
	o.spy.seen()
	got, err := setStatus(t.Context(), o.client, b)
	require.NoError(t, err)
	assert.Equal(t, b.UID, got.UID)
	assert.Equal(t, "PodDisruptionBudget", got.Kind)
	got.Status.ExpectedPods = 7
	known, err := kates.GetCached[policyv1.PodDisruptionBudget](t.Context(), o.client, o.ns, "b")
	require.NoError(t, err)
	assert.Equal(t, b.Status, known.Status, "what is returned is the caller's own")
	assert.Empty(t, o.spy.seen())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = setStatus(ctx, o.client, b)
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, o.spy.seen()["PATCH"])
}
