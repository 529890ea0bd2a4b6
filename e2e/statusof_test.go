package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/kates"
)

// statusOf reads an object from the server, typed and untyped, and returns its status, which has
// to be the same in both forms. The server has no controllers.
func statusOf(t *testing.T, c *kates.Client, o *kates.Unstructured) kates.ObjectStatus {
	t.Helper()
	var now *kates.Unstructured
	require.NoError(t, c.Get(t.Context(), o, &now))
	got := kates.StatusOf(now)
	typed, err := kates.NewObjectFromUnstructured(now)
	require.NoError(t, err)
	assert.Equal(t, got, kates.StatusOf(typed), "%T", typed)
	return got
}

func TestTheStatusOfBuiltInKindsFollowsTheServersObjects(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	c := newWire(t).client(t, kates.WithNamespace(ns))
	template := `{metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}`
	spec := `replicas: 2, selector: {matchLabels: {a: b}}, template: ` + template
	const unseen = "its controller has not seen it yet"
	for _, row := range []struct {
		manifest string // with the status that its controller writes when all is well
		before   string // what the new object says
	}{
		{`{apiVersion: apps/v1, kind: Deployment, spec: {` + spec + `},
			status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}}`, unseen},
		{`{apiVersion: apps/v1, kind: StatefulSet, spec: {` + spec + `},
			status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, currentReplicas: 2}}`, unseen},
		{`{apiVersion: apps/v1, kind: ReplicaSet, spec: {` + spec + `},
			status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, availableReplicas: 2}}`, unseen},
		{`{apiVersion: apps/v1, kind: DaemonSet, spec: {selector: {matchLabels: {a: b}}, template: ` + template + `},
			status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2,
				numberReady: 2, numberAvailable: 2, numberMisscheduled: 0}}`, unseen},
		{`{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 1},
			status: {observedGeneration: 1, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, disruptionsAllowed: 0}}`, unseen},
		{`{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, image: i}]},
			status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, "it is pending"},
		{`{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}},
			status: {startTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T00:00:01Z", succeeded: 1,
				conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}}`, "0 pods are active"},
		{`{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}},
			status: {phase: Bound}}`, "it is not bound"},
		{`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, ports: [{port: 80}]},
			status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`, "no address yet"},
	} {
		parsed, err := kates.ParseManifestsToUnstructured(row.manifest)
		require.NoError(t, err)
		o := parsed[0].(*kates.Unstructured)
		status := o.Object["status"]
		delete(o.Object, "status")
		o.SetName("x")
		o.SetNamespace(ns)
		o.SetFinalizers([]string{"example.org/held"})
		require.NoError(t, c.Create(t.Context(), o, &o), row.manifest)
		got := statusOf(t, c, o)
		assert.Equal(t, kates.PhaseInProgress, got.Phase, "%s: %s", o.GetKind(), got.Message)
		assert.Contains(t, got.Message, row.before, o.GetKind())
		assert.Equal(t, o.GetGeneration(), got.Generation)
		o.Object["status"] = status
		require.NoError(t, c.UpdateStatus(t.Context(), o, &o), o.GetKind())
		got = statusOf(t, c, o)
		assert.True(t, got.Ready(), "%s: %s", o.GetKind(), got.Message)

		if strings.HasPrefix(o.GetAPIVersion(), "apps/") { // a new template is a new generation
			label := []byte(`{"spec":{"template":{"metadata":{"labels":{"new":"yes"}}}}}`)
			require.NoError(t, c.Patch(t.Context(), o, kates.MergePatchType, label, nil))
			got = statusOf(t, c, o)
			assert.Equal(t, kates.ObjectStatus{
				Phase: kates.PhaseInProgress, Message: "its status is about generation 1, and it is at generation 2",
				Generation: 2, ObservedGeneration: 1,
			}, got, o.GetKind())
		}
		require.NoError(t, c.Delete(t.Context(), o, nil))
		assertLeaving(t, c, o)
	}
}

// assertLeaving checks the status of an object that only its finalizer keeps, and lets it go.
func assertLeaving(t *testing.T, c *kates.Client, o *kates.Unstructured) {
	t.Helper()
	got := statusOf(t, c, o)
	assert.Equal(t, kates.PhaseTerminating, got.Phase, o.GetKind())
	assert.Contains(t, got.Message, "example.org/held")
	require.NoError(t, c.Patch(t.Context(), o, kates.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil))
}

func TestTheStatusOfACustomObjectFollowsItsConditionsAndTheirGenerations(t *testing.T) {
	t.Parallel()
	s := newStatusTest(t, nil)
	got := statusOf(t, s.c, s.named)
	assert.Equal(t, kates.ObjectStatus{Phase: kates.PhaseCurrent, Message: "nothing in its status says that it is not ready", Generation: 1}, got)
	set := func(condition metav1.Condition) kates.ObjectStatus {
		t.Helper()
		var now *kates.Unstructured
		require.NoError(t, s.c.Get(t.Context(), s.named, &now))
		require.NoError(t, s.c.SetConditions(t.Context(), now, []kates.Condition{condition}))
		got := statusOf(t, s.c, s.named)
		assert.Equal(t, got, kates.StatusOf(s.shown()), "of the object in a snapshot")
		return got
	}
	ready := stated("Ready", "False")
	got = set(ready)
	assert.Equal(t, kates.PhaseInProgress, got.Phase, got.Message)
	ready.Status = "True"
	got = set(ready)
	assert.True(t, got.Ready(), got.Message)
	spec := []byte(`{"spec":{"color":"blue"}}`)
	require.NoError(t, s.c.Patch(t.Context(), s.named, kates.MergePatchType, spec, nil))
	got = statusOf(t, s.c, s.named)
	assert.Equal(t, kates.ObjectStatus{
		Phase: kates.PhaseInProgress, Message: "its condition Ready is about generation 1, and it is at generation 2", Generation: 2,
	}, got)
	ready.ObservedGeneration = 2
	got = set(ready)
	assert.True(t, got.Ready(), got.Message)
	stalled := stated("Stalled", "True")
	stalled.ObservedGeneration = 2
	got = set(stalled)
	assert.Equal(t, kates.PhaseFailed, got.Phase, got.Message)
}

func TestTheStatusOfADefinitionSaysWhetherItsKindIsServed(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	g := newGadget(t, ns)
	g.install("v1")
	d := foreign(t).Resource(definitions)
	read := func(name string) kates.ObjectStatus {
		u, err := d.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		typed := &apiextensionsv1.CustomResourceDefinition{}
		require.NoError(t, kates.ConvertObject(nil, u, typed))
		typed.TypeMeta = metav1.TypeMeta{} // client-go's scheme does not know the type
		got := kates.StatusOf(u)
		assert.Equal(t, got, kates.StatusOf(typed))
		return got
	}
	got := read(g.kind)
	assert.True(t, got.Ready(), got.Message)
	g.edit("/spec/versions/0/subresources", map[string]any{"status": map[string]any{}}) // changes no condition
	got = read(g.kind)
	assert.True(t, got.Ready(), got.Message)

	// Another definition wants the kind of the first.
	other := "gizmos." + g.group
	_, err := d.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": other},
		"spec": map[string]any{
			"group": g.group, "scope": "Namespaced", "versions": []any{gadgetVersion("v1", true)},
			"names": map[string]any{"kind": "Gadget", "listKind": "GadgetList", "plural": "gizmos", "singular": "gizmo"},
		},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return read(other).Phase == kates.PhaseFailed }, patience, 20*time.Millisecond)
	assert.Contains(t, read(other).Message, "its names are not accepted")
}
