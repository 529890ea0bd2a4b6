package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/kates-go/kates/kates"
)

// phase has a MarshalText that writes something for its zero value.
type phase string

func (p phase) MarshalText() ([]byte, error) {
	if p == "" {
		return []byte("Unknown"), nil
	}
	return []byte(p), nil
}

// statusGadget is a Go type that knows a part of a gadget.
type statusGadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
		Parts      []oldPart          `json:"parts,omitempty"`
		Worker     struct {
			Phase phase `json:"phase"`
			Count int   `json:"count,omitempty"`
		} `json:"worker"`
	} `json:"status"`
}

func (g *statusGadget) DeepCopyObject() runtime.Object {
	c := *g
	c.ObjectMeta = *g.ObjectMeta.DeepCopy()
	c.Status.Conditions, c.Status.Parts = slices.Clone(g.Status.Conditions), slices.Clone(g.Status.Parts)
	return &c
}

type statusGadgets struct{ Gadgets []*statusGadget }

// statusTest is a gadget with a status, of which typed watches know only a part.
type statusTest struct {
	*testing.T
	g        *gadget
	ns       string
	stored   dynamic.ResourceInterface
	named    *kates.Unstructured
	w        *wire
	c        *kates.Client
	requests func() map[string]int
	watched  *kates.Snapshots[statusGadgets]
}

func newStatusTest(t *testing.T, status map[string]any) *statusTest {
	t.Helper()
	ns := namespace(t)
	s := &statusTest{T: t, ns: ns, g: newGadget(t, ns)}
	s.g.install("v1")
	s.g.edit("/spec/versions/0/subresources", map[string]any{"status": map[string]any{}})
	s.stored = foreign(t).Resource(s.g.resource("v1")).Namespace(ns)
	s.g.make("v1", ns, "x")
	s.named = s.g.object("v1", ns, "x", "red")
	require.Eventually(t, func() bool {
		_, err := s.stored.Get(t.Context(), "x", metav1.GetOptions{}, "status")
		return err == nil
	}, patience, 50*time.Millisecond)
	if status != nil {
		u, err := s.stored.Get(t.Context(), "x", metav1.GetOptions{})
		require.NoError(t, err)
		u.Object["status"] = status
		_, err = s.stored.UpdateStatus(t.Context(), u, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	s.w, s.c, s.watched = s.client()
	s.w.set("gadgets", late)
	s.requests = countRequests(s.w, "gadgets")
	return s
}

// client returns a client that watches the gadget only in the Go type.
func (s *statusTest) client() (*wire, *kates.Client, *kates.Snapshots[statusGadgets]) {
	s.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: s.g.group, Version: "v1", Kind: "Gadget"}, &statusGadget{})
	w := newWire(s.T)
	c := w.client(s.T, kates.WithScheme(scheme))
	watched, err := kates.Watch[statusGadgets](s.Context(), c, kates.Query{Name: "Gadgets", Namespace: s.ns})
	require.NoError(s, err)
	var snap statusGadgets
	awaitSnap(s.T, watched, &snap, func(*statusGadgets) bool { return len(snap.Gadgets) == 1 })
	require.Equal(s, "typed from json", watched.Status().Queries[0].Form)
	return w, c, watched
}

// modify changes the status and checks that this is shown at once.
func (s *statusTest) modify(change func(*statusGadget)) {
	s.Helper()
	got, err := kates.ModifyStatus(s.Context(), s.c, s.named, func(g *statusGadget) error { change(g); return nil })
	require.NoError(s, err)
	assert.Equal(s, got.Status, s.shown().Status)
}

func (s *statusTest) shown() *statusGadget {
	s.Helper()
	var snap statusGadgets
	_, err := s.watched.Update(s.Context(), &snap)
	require.NoError(s, err)
	return snap.Gadgets[0]
}

// status returns the status on the server.
func (s *statusTest) status() map[string]any {
	s.Helper()
	u, err := s.stored.Get(s.Context(), "x", metav1.GetOptions{})
	require.NoError(s, err)
	status, _ := u.Object["status"].(map[string]any)
	return status
}

func stated(kind string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "R", ObservedGeneration: 1}
}

// hidden returns a condition with a field that no Go type knows.
func hidden(kind, status string) map[string]any {
	return map[string]any{
		"type": kind, "status": status, "reason": "R", "message": "", "observedGeneration": int64(1),
		"lastTransitionTime": "2020-01-01T00:00:00Z", "hidden": "of " + kind,
	}
}

func TestG4AStatusWithConditionsIsWrittenWithOneRequestFromATypedWatchAndLosesNothing(t *testing.T) {
	t.Parallel()
	s := newStatusTest(t, map[string]any{
		"hidden": "beside", "worker": map[string]any{"phase": "Busy", "hidden": "of worker"},
		"conditions": []any{hidden("A", "True"), hidden("B", "True"), hidden("C", "True")},
		"parts":      []any{map[string]any{"name": "a", "size": int64(1), "hidden": "of a"}, map[string]any{"name": "b", "hidden": "of b"}},
	})
	once := map[string]int{"PATCH": 1}
	s.modify(func(g *statusGadget) {
		meta.SetStatusCondition(&g.Status.Conditions, stated("B", "False"))
		g.Status.Worker.Count++
	})
	assert.Equal(t, once, s.requests())
	given := s.shown().DeepCopyObject().(*statusGadget)
	given.Status.Conditions = append(given.Status.Conditions[1:], stated("D", "True"))
	given.Status.Parts[1].Size = 2
	_, err := kates.ModifyStatus(t.Context(), s.c, given, func(g *statusGadget) error {
		g.Status = given.Status
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, once, s.requests())
	require.NoError(t, s.c.SetConditions(t.Context(), given, []kates.Condition{stated("C", "False"), stated("E", "True")}))
	assert.Equal(t, once, s.requests())
	s.modify(func(g *statusGadget) {
		slices.Reverse(g.Status.Parts)
		g.Status.Parts = slices.Insert(g.Status.Parts, 1, oldPart{Name: "new"})
	})
	assert.Equal(t, once, s.requests())
	s.modify(func(*statusGadget) {})
	require.NoError(t, s.c.SetConditions(t.Context(), given, []kates.Condition{stated("E", "True")}))
	assert.Empty(t, s.requests(), "nothing is sent where nothing changes")

	_, err = s.stored.Patch(t.Context(), "x", kates.JSONPatchType, []byte(`[{"op":"remove","path":"/status/conditions/0"}]`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	s.modify(func(g *statusGadget) { meta.SetStatusCondition(&g.Status.Conditions, stated("D", "False")) })
	assert.Equal(t, map[string]int{"PATCH": 2, "GET": 1}, s.requests(), "its first place is another one's by now")

	var conditions []string
	status := s.status()
	for _, c := range status["conditions"].([]any) {
		c := c.(map[string]any)
		conditions = append(conditions, fmt.Sprint(c["type"], c["status"], c["hidden"]))
	}
	assert.Equal(t, []string{"CFalseof C", "DFalse<nil>", "ETrue<nil>"}, conditions)
	delete(status, "conditions")
	assert.Equal(t, map[string]any{
		"hidden": "beside", "worker": map[string]any{"phase": "Busy", "hidden": "of worker", "count": int64(1)},
		"parts": []any{
			map[string]any{"name": "b", "size": int64(2), "hidden": "of b"}, map[string]any{"name": "new"},
			map[string]any{"name": "a", "size": int64(1), "hidden": "of a"},
		},
	}, status)
	s.w.set("gadgets", 0)
	require.NoError(t, s.c.Sync(t.Context()))
	assert.Len(t, s.shown().Status.Parts, 3)
}

func TestG4TheFirstConditionsOfAnObjectWithoutAStatusAreOneRequest(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(s *statusTest) error{
		"ModifyStatus": func(s *statusTest) error {
			s.modify(func(g *statusGadget) { meta.SetStatusCondition(&g.Status.Conditions, stated("A", "True")) })
			return nil
		},
		"SetConditions": func(s *statusTest) error {
			return s.c.SetConditions(s.Context(), s.named, []kates.Condition{stated("A", "True")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStatusTest(t, nil)
			require.NoError(t, set(s))
			assert.Equal(t, map[string]int{"PATCH": 1}, s.requests())
			assert.Equal(t, "A", s.shown().Status.Conditions[0].Type)
			assert.Equal(t, []string{"conditions"}, keysOf(s.status()))
		})
	}
}

func TestG4ConditionsOfABuiltInKindAreOneRequestFromATypedWatch(t *testing.T) {
	o := newOwnedTest(t)
	b := &policyv1.PodDisruptionBudget{ObjectMeta: named(o.ns, "b")}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	require.NoError(t, o.client.Create(t.Context(), b, b))
	type view struct {
		Budgets []*policyv1.PodDisruptionBudget
	}
	watched, err := kates.Watch[view](t.Context(), o.client, kates.Query{Name: "Budgets", Namespace: o.ns})
	require.NoError(t, err)
	var snap view
	awaitSnap(t, watched, &snap, func(v *view) bool { return len(v.Budgets) == 1 })
	requests := countRequests(o.w, "poddisruptionbudgets")
	for n, status := range []metav1.ConditionStatus{"True", "False", "Unknown"} {
		require.NoError(t, o.client.SetConditions(t.Context(), b, []kates.Condition{stated("A", status), stated(fmt.Sprint("B", n), status)}))
		assert.Equal(t, map[string]int{"PATCH": 1}, requests())
	}
	got, err := kates.ModifyStatus(t.Context(), o.client, b, func(b *policyv1.PodDisruptionBudget) error {
		meta.RemoveStatusCondition(&b.Status.Conditions, "B1")
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"PATCH": 1}, requests())
	require.Len(t, got.Status.Conditions, 3)
	assert.Equal(t, metav1.ConditionUnknown, got.Status.Conditions[0].Status)
	assert.Equal(t, "typed from protobuf", watched.Status().Queries[0].Form)
}

func keysOf(m map[string]any) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func TestModifyReadsWhatAGoTypeMakesUpWhereTheServerRefusesItsPatch(t *testing.T) {
	t.Parallel()
	s := newStatusTest(t, map[string]any{"conditions": []any{hidden("A", "True")}})
	change := func(g *statusGadget) {
		meta.SetStatusCondition(&g.Status.Conditions, stated("A", "False"))
		g.Status.Worker.Count = 3 // of a worker that does not exist
	}
	s.modify(change)
	assert.Equal(t, map[string]int{"PATCH": 2, "GET": 1}, s.requests())
	status := s.status()
	assert.Equal(t, map[string]any{"count": int64(3)}, status["worker"])
	assert.Equal(t, "of A", status["conditions"].([]any)[0].(map[string]any)["hidden"])
	s.modify(func(g *statusGadget) { g.Status.Worker.Phase, g.Status.Conditions[0].Reason = "Busy", "S" })
	assert.Equal(t, map[string]int{"PATCH": 1}, s.requests())
}

// passing inserts an element before all others, or removes it, as another program.
func (s *statusTest) passing(comes bool) error {
	u, err := s.stored.Get(s.Context(), "x", metav1.GetOptions{})
	if err != nil {
		return err
	}
	parts, _, _ := unstructured.NestedSlice(u.Object, "status", "parts")
	if comes {
		parts = append([]any{map[string]any{"name": "passing", "hidden": "p"}}, parts...)
	} else {
		parts = slices.DeleteFunc(parts, func(p any) bool { return p.(map[string]any)["name"] == "passing" })
	}
	_ = unstructured.SetNestedSlice(u.Object, parts, "status", "parts")
	_, err = s.stored.UpdateStatus(s.Context(), u, metav1.UpdateOptions{})
	return err
}

// Meanwhile others insert elements into the lists and remove them.
func TestG4StatusesOfEightWritersFromTypedWatchesLoseNothing(t *testing.T) {
	t.Parallel()
	s := newStatusTest(t, map[string]any{"parts": []any{map[string]any{"name": "all", "size": int64(1), "hidden": "of all"}}})
	const each = 12
	patient := retry.DefaultBackoff
	patient.Steps, patient.Factor = 200, 1.1
	clients := []*kates.Client{s.c}
	for range 2 {
		_, c, _ := s.client()
		clients = append(clients, c)
	}
	var writers sync.WaitGroup
	for i := range 8 {
		c, name := clients[i%len(clients)], fmt.Sprintf("W%d", i)
		writers.Go(func() {
			for n := range each {
				assert.NoError(t, retry.RetryOnConflict(patient, func() error {
					_, err := kates.ModifyStatus(t.Context(), c, s.named, func(g *statusGadget) error {
						at := slices.IndexFunc(g.Status.Parts, func(p oldPart) bool { return p.Name == "all" })
						g.Status.Parts[at].Size++
						if n == 0 {
							g.Status.Parts = append(g.Status.Parts, oldPart{Name: name})
						}
						return nil
					})
					return err
				}))
				assert.NoError(t, retry.RetryOnConflict(patient, func() error {
					return c.SetConditions(t.Context(), s.named, []kates.Condition{{Type: name, Status: "True", Reason: fmt.Sprint("R", n+1)}})
				}))
			}
		})
	}
	writers.Go(func() {
		for n := range each {
			assert.NoError(t, retry.RetryOnConflict(patient, func() error { return s.passing(n%2 == 0) }))
		}
	})
	writers.Wait()
	status := s.status()
	parts := status["parts"].([]any)
	assert.Equal(t, map[string]any{"name": "all", "size": int64(1 + 8*each), "hidden": "of all"}, parts[0])
	assert.Len(t, parts, 1+8)
	assert.Len(t, status["conditions"], 8)
	for _, c := range status["conditions"].([]any) {
		assert.Equal(t, fmt.Sprint("R", each), c.(map[string]any)["reason"])
	}
}
