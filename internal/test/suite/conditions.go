package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kates-go/kates/kates"
)

var conditionScenarios = []scenario{
	{"G4SetConditionsMergesAndKeepsTransitionTimesWhileTheStatusStays", setConditions},
	{"SetConditionsStatesTheGenerationThatWasLookedAtAndNeverAnOlderOne", conditionGenerations},
	{"SetConditionsStatesNoGenerationWhereTheKindsConditionsHaveNone", conditionsWithoutGeneration},
	{"SetConditionsOfBadInputIsAClearErrorAndWritesNothing", conditionsInvalid},
	{"G4AStatusIsWrittenAndNothingWhereItIsTheSame", setStatus},
	{"ModifyStatusWritesNothingWhereNothingChanges", modifyStatusNothing},
	{"G4WhatTheServerDropsOfAStatusIsAnErrorAndTheRestIsStored", statusDropped},
}

type budgets struct {
	Budgets []*policyv1.PodDisruptionBudget
	Deltas  []*kates.Delta
}

// budget returns an object with conditions. A real server gives it generations; a fake keeps the
// given one.
func (e *env) budget(name string, generation int64) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: e.meta(name)}
	least := intstr.FromInt32(int32(generation))
	b.Spec.MinAvailable, b.Spec.Selector = &least, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	b.Generation = generation
	return b
}

func (e *env) watchBudgets() (*kates.Snapshots[budgets], *budgets) {
	e.t.Helper()
	snapshots, snap := watch[budgets](e, e.client, kates.Query{Name: "Budgets", Namespace: e.ns}), &budgets{}
	awaitFirst(e.t, snapshots, snap)
	return snapshots, snap
}

func condition(kind string, status metav1.ConditionStatus, reason string) kates.Condition {
	return kates.Condition{Type: kind, Status: status, Reason: reason}
}

func setConditions(t *testing.T, e *env) {
	b := e.budget("b", 1)
	past := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	foreign := condition("Foreign", "True", "Theirs")
	foreign.LastTransitionTime = past
	b.Status.Conditions = []kates.Condition{foreign}
	e.foreignCreate(b)
	snapshots, snap := e.watchBudgets()
	if e.backend.Real { // it starts without a status
		require.NoError(t, e.client.SetConditions(e.ctx, b, []kates.Condition{foreign}))
		now(t, snapshots, snap)
	}
	ready := condition("Ready", "False", "Starting")
	ready.LastTransitionTime = past
	require.NoError(t, e.client.SetConditions(e.ctx, b, []kates.Condition{ready}))
	now(t, snapshots, snap)
	assert.Equal(t, []string{"update b"}, deltaNames(snap.Deltas))
	require.Len(t, shown(t, snap.Budgets, "b").Status.Conditions, 2)

	ready = condition("Ready", "False", "StillStarting")
	require.NoError(t, e.client.SetConditions(e.ctx, shown(t, snap.Budgets, "b"), []kates.Condition{ready}))
	now(t, snapshots, snap)
	got := shown(t, snap.Budgets, "b").Status.Conditions
	assert.Equal(t, []string{"Foreign", "Ready"}, []string{got[0].Type, got[1].Type}, "in their places")
	assert.True(t, past.Equal(&got[1].LastTransitionTime), "the status is what it was")
	assert.Equal(t, "StillStarting", got[1].Reason)
	assert.Equal(t, int64(1), got[1].ObservedGeneration)

	require.NoError(t, e.client.SetConditions(e.ctx, shown(t, snap.Budgets, "b"), []kates.Condition{ready}))
	unchanged(t, snapshots, snap)

	before := metav1.NewTime(time.Now().Add(-time.Second))
	require.NoError(t, e.client.SetConditions(e.ctx, b, []kates.Condition{condition("Ready", "True", "Ready"), condition("New", "Unknown", "New")}))
	now(t, snapshots, snap)
	got = shown(t, snap.Budgets, "b").Status.Conditions
	require.Len(t, got, 3)
	assert.True(t, before.Before(&got[1].LastTransitionTime), "the status is another one")
	assert.True(t, past.Equal(&got[0].LastTransitionTime), "and this is another condition")
	assert.Equal(t, "Theirs", kates.FindCondition(shown(t, snap.Budgets, "b"), "Foreign").Reason)
}

func conditionGenerations(t *testing.T, e *env) {
	e.foreignCreate(e.budget("b", 1))
	snapshots, snap := e.watchBudgets()
	looked := shown(t, snap.Budgets, "b")
	e.foreignUpdate(e.budget("b", 2))
	await(t, snapshots, snap, "the next generation", func(s *budgets) bool { return shown(t, s.Budgets, "b").Generation == 2 })
	observed := func() int64 {
		return kates.FindCondition(shown(t, snap.Budgets, "b"), "Ready").ObservedGeneration
	}
	require.NoError(t, e.client.SetConditions(e.ctx, looked, []kates.Condition{condition("Ready", "True", "Old")}))
	now(t, snapshots, snap)
	assert.Equal(t, int64(1), observed(), "though there is a newer one")
	require.NoError(t, e.client.SetConditions(e.ctx, shown(t, snap.Budgets, "b"), []kates.Condition{condition("Ready", "True", "New")}))
	now(t, snapshots, snap)
	assert.Equal(t, int64(2), observed())
	require.NoError(t, e.client.SetConditions(e.ctx, looked, []kates.Condition{condition("Ready", "False", "Old")}))
	unchanged(t, snapshots, snap)
	assert.Equal(t, int64(2), observed(), "what is known of an older one is out of date")
	explicit := condition("Ready", "False", "Explicit")
	explicit.ObservedGeneration = 2
	require.NoError(t, e.client.SetConditions(e.ctx, looked, []kates.Condition{explicit}))
	now(t, snapshots, snap)
	assert.Equal(t, "Explicit", kates.FindCondition(shown(t, snap.Budgets, "b"), "Ready").Reason)
}

type deployments struct{ Deployments []*appsv1.Deployment }

func conditionsWithoutGeneration(t *testing.T, e *env) {
	d := &appsv1.Deployment{ObjectMeta: e.meta("d")}
	d.Generation = 1 // a fake keeps it
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	d.Spec.Template.Labels = map[string]string{"a": "b"}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	e.foreignCreate(d)
	snapshots, snap := watch[deployments](e, e.client, kates.Query{Name: "Deployments", Namespace: e.ns}), &deployments{}
	awaitFirst(t, snapshots, snap)
	require.Equal(t, int64(1), shown(t, snap.Deployments, "d").Generation)
	ready := condition("Ready", "True", "Good")
	require.NoError(t, e.client.SetConditions(e.ctx, shown(t, snap.Deployments, "d"), []kates.Condition{ready}))
	now(t, snapshots, snap)
	d = shown(t, snap.Deployments, "d")
	require.Len(t, d.Status.Conditions, 1)
	assert.Equal(t, "Good", d.Status.Conditions[0].Reason)
	require.NoError(t, e.client.SetConditions(e.ctx, d, []kates.Condition{ready}))
	unchanged(t, snapshots, snap)
	ready.ObservedGeneration = 1 // it is asked for
	err := e.client.SetConditions(e.ctx, d, []kates.Condition{ready})
	require.ErrorIs(t, err, kates.ErrDropped)
	assert.ErrorContains(t, err, "observedGeneration")
}

func conditionsInvalid(t *testing.T, e *env) {
	e.foreignCreate(e.budget("b", 1))
	snapshots, snap := e.watchBudgets()
	for want, conditions := range map[string][]kates.Condition{
		"type":      {condition("", "True", "Good")},
		"status":    {condition("Ready", "Yes", "Good")},
		"reason":    {condition("Ready", "True", "")},
		"Duplicate": {condition("Ready", "True", "Good"), condition("Ready", "False", "Good")},
	} {
		assert.ErrorContains(t, e.client.SetConditions(e.ctx, e.budget("b", 1), conditions), want)
	}
	assert.ErrorContains(t, e.client.SetConditions(e.ctx, nil, nil), "nil")
	assert.True(t, kates.IsNotFound(e.client.SetConditions(e.ctx, e.budget("none", 1), []kates.Condition{condition("Ready", "True", "Good")})))
	unchanged(t, snapshots, snap)
}

func setStatus(t *testing.T, e *env) {
	e.foreignCreate(e.budget("b", 1))
	snapshots, snap := e.watchBudgets()
	b := shown(t, snap.Budgets, "b").DeepCopy()
	b.Status.ExpectedPods, b.Status.ObservedGeneration = 3, 1
	b.Labels, b.Spec.MinAvailable = map[string]string{"not": "written"}, nil
	_, err := kates.SetCondition(b, condition("Ready", "True", "Good"))
	require.NoError(t, err)
	given := b.DeepCopy()
	set := func(now *policyv1.PodDisruptionBudget) error {
		now.Status = b.Status
		return nil
	}
	got, err := kates.ModifyStatus(e.ctx, e.client, b, set)
	require.NoError(t, err)
	assert.Equal(t, given, b, "what is given is not modified")
	assert.Equal(t, int32(3), got.Status.ExpectedPods)
	now(t, snapshots, snap)
	assert.Equal(t, int32(3), shown(t, snap.Budgets, "b").Status.ExpectedPods)
	assert.Equal(t, int64(1), kates.FindCondition(shown(t, snap.Budgets, "b"), "Ready").ObservedGeneration)
	assert.Empty(t, shown(t, snap.Budgets, "b").Labels)
	assert.NotNil(t, shown(t, snap.Budgets, "b").Spec.MinAvailable)
	again, err := kates.ModifyStatus(e.ctx, e.client, b, set)
	require.NoError(t, err)
	assert.Equal(t, got.ResourceVersion, again.ResourceVersion)
	unchanged(t, snapshots, snap)
	_, err = kates.ModifyStatus(e.ctx, e.client, e.budget("none", 1), set)
	assert.True(t, kates.IsNotFound(err), "%v", err)
}

func modifyStatusNothing(t *testing.T, e *env) {
	e.foreignCreate(e.budget("b", 1))
	snapshots, snap := e.watchBudgets()
	got, err := kates.ModifyStatus(e.ctx, e.client, e.budget("b", 1), func(b *policyv1.PodDisruptionBudget) error {
		b.Status.ExpectedPods = shown(t, snap.Budgets, "b").Status.ExpectedPods
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, shown(t, snap.Budgets, "b").ResourceVersion, got.ResourceVersion)
	unchanged(t, snapshots, snap)
}

// statusDropped writes a status that has more than the kind knows. A ResourceQuota has no
// conditions.
func statusDropped(t *testing.T, e *env) {
	e.foreignCreate(e.quota("q", "9"))
	snapshots, snap := e.watchQuotas()
	for range 2 {
		err := e.client.SetConditions(e.ctx, e.quota("q", "9"), []kates.Condition{condition("Ready", "True", "Good")})
		require.ErrorIs(t, err, kates.ErrDropped)
		assert.ErrorContains(t, err, e.ns+"/q")
		assert.ErrorContains(t, err, "status: status.conditions")
	}
	unchanged(t, snapshots, snap)

	given := func(pods string) *kates.Unstructured {
		u := kates.NewUnstructured("ResourceQuota", "v1")
		u.SetNamespace(e.ns)
		u.SetName("q")
		hard := map[string]any{"pods": pods}
		u.Object["spec"] = map[string]any{"hard": hard}
		u.Object["status"] = map[string]any{"hard": hard, "none": map[string]any{"a": "b"}, "empty": ""}
		return u
	}
	var target *kates.Unstructured
	for pods, write := range map[string]func() error{
		"2": func() error { return e.client.UpdateStatus(e.ctx, given("2"), &target) },
		"4": func() error { return e.client.UpdateSubresource(e.ctx, given("4"), "status", nil, &target) },
		"5": func() error {
			data := []byte(`{"status":{"hard":{"pods":"5"},"none":{"a":"b"},"empty":""}}`)
			return e.client.PatchSubresource(e.ctx, e.quota("q", "9"), "status", kates.MergePatchType, data, &target)
		},
		"3": func() error {
			_, err := kates.ModifyStatus(e.ctx, e.client, e.quota("q", "9"), func(u *kates.Unstructured) error {
				u.Object["status"] = given("3").Object["status"]
				return nil
			})
			return err
		},
	} {
		err := write()
		require.ErrorIs(t, err, kates.ErrDropped)
		assert.ErrorContains(t, err, "status: status.none")
		assert.NotContains(t, err.Error(), "empty")
		now(t, snapshots, snap)
		assert.Equal(t, pods, shown(t, snap.ResourceQuotas, "q").Status.Hard.Pods().String())
	}
	assert.Nil(t, target, "it is untouched")

	_, err := kates.ModifyStatus(e.ctx, e.client, e.quota("q", "9"), func(u *kates.Unstructured) error {
		u.Object["status"] = map[string]any{"hard": map[string]any{"pods": "1000m"}, "empty": map[string]any{"a": ""}}
		return nil
	})
	require.NoError(t, err, "what is altered, or says nothing, is not dropped")
}
