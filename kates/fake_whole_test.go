package kates_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// Programs test with the fake, and compare whole objects. It has neither UIDs nor versions, unless
// a fixture sets them, and it keeps those whatever is written.

// budgetOf is a PodDisruptionBudget as a test writes it. Its fixture is its UID and version.
func budgetOf(name, fixture string) *kates.Unstructured {
	u := kates.NewUnstructured("PodDisruptionBudget", "policy/v1")
	u.SetNamespace("default")
	u.SetName(name)
	if fixture != "" {
		u.SetUID(types.UID("uid-" + fixture))
		u.SetResourceVersion(fixture)
	}
	return u
}

func budgetWith(u *kates.Unstructured, value any, path ...string) *kates.Unstructured {
	u = u.DeepCopy()
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		panic(err)
	}
	return u
}

// wholeForms has a field of each form that a snapshot takes.
type wholeForms struct {
	Typed    []*policyv1.PodDisruptionBudget
	Values   []policyv1.PodDisruptionBudget
	ByName   map[string]*policyv1.PodDisruptionBudget
	ByKey    map[types.NamespacedName]policyv1.PodDisruptionBudget
	Untyped  []*kates.Unstructured                   `kates:"poddisruptionbudgets"`
	Content  []map[string]any                        `kates:"poddisruptionbudgets"`
	Metadata map[string]metav1.PartialObjectMetadata `kates:"poddisruptionbudgets"`
	Own      []ownBudget                             `kates:"poddisruptionbudgets"`
	Lookup   kates.Lookup[*policyv1.PodDisruptionBudget]
	Deltas   []*kates.Delta
}

// into decodes an object.
func into(t *testing.T, u *kates.Unstructured, target any) {
	t.Helper()
	text, err := json.Marshal(u)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, target))
}

// shows compares every field with the objects that there are, whole.
func shows(t *testing.T, what string, snap *wholeForms, want ...*kates.Unstructured) {
	t.Helper()
	is := wholeForms{
		ByName: map[string]*policyv1.PodDisruptionBudget{}, ByKey: map[types.NamespacedName]policyv1.PodDisruptionBudget{},
		Metadata: map[string]metav1.PartialObjectMetadata{},
	}
	for _, u := range want {
		var typed policyv1.PodDisruptionBudget
		into(t, u, &typed)
		is.Typed, is.Values = append(is.Typed, &typed), append(is.Values, typed)
		is.ByName["default/"+u.GetName()] = &typed
		is.ByKey[types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}] = typed
		is.Untyped, is.Content = append(is.Untyped, u), append(is.Content, u.Object)
		is.Metadata["default/"+u.GetName()] = metav1.PartialObjectMetadata{TypeMeta: typed.TypeMeta, ObjectMeta: typed.ObjectMeta}
		var own ownBudget
		into(t, u, &own)
		is.Own = append(is.Own, own)
	}
	for field, pair := range map[string][2]any{
		"Typed": {is.Typed, snap.Typed}, "Values": {is.Values, snap.Values}, "ByName": {is.ByName, snap.ByName},
		"ByKey": {is.ByKey, snap.ByKey}, "Untyped": {is.Untyped, snap.Untyped}, "Content": {is.Content, snap.Content},
		"Metadata": {is.Metadata, snap.Metadata}, "Own": {is.Own, snap.Own},
	} {
		if diff := cmp.Diff(pair[0], pair[1], cmp.Transformer("JSON", func(time metav1.Time) string { return time.String() })); diff != "" {
			t.Errorf("%s: %s differs (-want +got):\n%s", what, field, diff)
		}
	}
	for _, u := range want {
		for _, d := range snap.Deltas {
			if d.Name == u.GetName() && (d.UID != u.GetUID() || d.ResourceVersion != u.GetResourceVersion()) {
				t.Errorf("%s: the delta %v has UID %q and version %q", what, d, d.UID, d.ResourceVersion)
			}
		}
	}
}

// wholeWrite is a write method, with what is there after it, and the actions that it takes.
type wholeWrite struct {
	name    string
	do      func(c *kates.Client, u *kates.Unstructured, target any) error
	before  bool // there is the object
	changes func(u *kates.Unstructured) *kates.Unstructured
	actions string
	// versioned are the actions if the fixture has a version, "" for the same.
	versioned string
}

func wholeWrites() []wholeWrite {
	ctx := context.Background() // of no bubble
	min := func(n int64) func(*kates.Unstructured) *kates.Unstructured {
		return func(u *kates.Unstructured) *kates.Unstructured { return budgetWith(u, n, "spec", "minAvailable") }
	}
	same := func(u *kates.Unstructured) *kates.Unstructured { return u }
	status := func(u *kates.Unstructured) *kates.Unstructured {
		return budgetWith(u, int64(3), "status", "currentHealthy")
	}
	fill := func(target any, u *kates.Unstructured, err error) error {
		if err == nil && target != nil {
			*target.(*kates.Unstructured) = *u.DeepCopy()
		}
		return err
	}
	return []wholeWrite{
		{"Create", func(c *kates.Client, u *kates.Unstructured, target any) error { return c.Create(ctx, u, target) }, false, same, "create", ""},
		{"Update", func(c *kates.Client, u *kates.Unstructured, target any) error {
			return c.Update(ctx, min(2)(u), target)
		}, true, min(2), "update", ""},
		{"UpdateStatus", func(c *kates.Client, u *kates.Unstructured, target any) error {
			return c.UpdateStatus(ctx, status(u), target)
		}, true, status, "update", ""},
		{"Patch", func(c *kates.Client, u *kates.Unstructured, target any) error {
			return c.Patch(ctx, u, kates.MergePatchType, []byte(`{"spec":{"minAvailable":2}}`), target)
		}, true, min(2), "patch", ""},
		{"a JSON patch", func(c *kates.Client, u *kates.Unstructured, target any) error {
			return c.Patch(ctx, u, kates.JSONPatchType, []byte(`[{"op":"add","path":"/spec","value":{"minAvailable":2}}]`), target)
		}, true, min(2), "patch", ""},
		{"Upsert of none", func(c *kates.Client, u *kates.Unstructured, target any) error {
			return c.Upsert(ctx, u, budgetOf(u.GetName(), ""), target)
		}, false, func(u *kates.Unstructured) *kates.Unstructured { return budgetOf(u.GetName(), "") }, "get create", "update get create"},
		{"Upsert", func(c *kates.Client, u *kates.Unstructured, target any) error {
			return c.Upsert(ctx, u, min(2)(u), target)
		}, true, min(2), "get update", "update"},
		{"Modify", func(c *kates.Client, u *kates.Unstructured, target any) error {
			got, err := kates.Modify(ctx, c, u, func(u *kates.Unstructured) error {
				return unstructured.SetNestedField(u.Object, int64(2), "spec", "minAvailable")
			})
			return fill(target, got, err)
		}, true, min(2), "get patch", ""},
		{"ModifyStatus", func(c *kates.Client, u *kates.Unstructured, _ any) error {
			_, err := kates.ModifyStatus(ctx, c, u, func(b *policyv1.PodDisruptionBudget) error {
				b.Status.CurrentHealthy = 3
				return nil
			})
			return err
		}, true, status, "get patch", ""},
		{"AddFinalizer", func(c *kates.Client, u *kates.Unstructured, _ any) error {
			return c.AddFinalizer(ctx, u, "example.com/x")
		}, true, func(u *kates.Unstructured) *kates.Unstructured {
			return budgetWith(u, []any{"example.com/x"}, "metadata", "finalizers")
		}, "get patch", ""},
		{"Delete", func(c *kates.Client, u *kates.Unstructured, target any) error { return c.Delete(ctx, u, target) }, true, nil, "delete", ""},
		{"DeleteAll", func(c *kates.Client, u *kates.Unstructured, _ any) error {
			return c.DeleteAll(ctx, kates.Query{Kind: "pdb", FieldSelector: "metadata.name=" + u.GetName()})
		}, true, nil, "list delete", ""},
	}
}

func TestG7AUserSeesWhatTheFakeHasAndNothingElse(t *testing.T) {
	for _, w := range wholeWrites() {
		for _, fixture := range []string{"", "7"} {
			t.Run(fmt.Sprint(w.name, " ", fixture), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testWholeWrite(t, w, fixture) })
			})
		}
	}
}

func testWholeWrite(t *testing.T, w wholeWrite, fixture string) {
	other, u := budgetOf("a-other", ""), budgetOf("x", fixture)
	objects := []kates.Object{other}
	there := []*kates.Unstructured{other}
	if w.before {
		objects, there = append(objects, u), append(there, u)
	}
	f := katestest.New(t, katestest.WithObjects(objects...))
	snapshots, err := kates.Watch[wholeForms](t.Context(), f.Client)
	require.NoError(t, err)
	synctest.Wait()
	time.Sleep(time.Minute)
	var snap wholeForms
	_, err = snapshots.Update(t.Context(), &snap)
	require.NoError(t, err)
	shows(t, "the first snapshot", &snap, there...)

	begun := verbs(f)
	var target kates.Unstructured
	require.NoError(t, w.do(f.Client, u, &target))
	actions := w.actions
	if fixture != "" && w.versioned != "" {
		actions = w.versioned
	}
	assert.Equal(t, actions, strings.Join(verbs(f)[len(begun):], " "))
	after := []*kates.Unstructured{other}
	if w.changes != nil {
		after = append(after, w.changes(u))
		if target.Object != nil {
			assert.Empty(t, cmp.Diff(w.changes(u).Object, target.Object), "the target")
		}
	}
	for what, wait := range []func(){func() {}, synctest.Wait, func() { time.Sleep(time.Hour) }} {
		wait()
		changed, err := snapshots.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.Equal(t, what == 0, changed, "the write is shown at once, and its event is nothing new")
		shows(t, fmt.Sprint("look ", what), &snap, after...)
	}
	var listed []*kates.Unstructured
	require.NoError(t, f.Client.List(t.Context(), kates.Query{Kind: "pdb"}, &listed))
	assert.Empty(t, cmp.Diff(after, listed))
	noStamps(t, f, fixture)
}

// verbs are the requests that the fake got.
func verbs(f *katestest.Fake) (all []string) {
	for _, a := range f.Dynamic.Actions() {
		all = append(all, a.GetVerb())
	}
	return all
}

// noStamps looks for UIDs and versions that no fixture has set in what the fake was sent, and in
// what it holds.
func noStamps(t *testing.T, f *katestest.Fake, fixture string) {
	t.Helper()
	for _, a := range f.Dynamic.Actions() {
		var sent any
		switch a := a.(type) {
		case clienttesting.CreateAction:
			sent = a.GetObject()
		case clienttesting.PatchAction:
			sent = json.RawMessage(a.GetPatch())
		case clienttesting.DeleteActionImpl:
			sent = a.DeleteOptions
		}
		text, err := json.Marshal(sent)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "kates-fake")
		if fixture == "" {
			assert.NotContains(t, string(text), "resourceVersion", a.GetVerb())
			assert.NotContains(t, string(text), `"uid"`, a.GetVerb())
		}
	}
	all, err := f.Dynamic.Resource(budgets).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, u := range all.Items {
		assert.Contains(t, []string{"", fixture}, u.GetResourceVersion())
	}
}

var budgets = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}

// The requests of watches are as many as the watches, with the options of each.
func TestEachWatchIsOneListAndOneWatchOfTheFake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := katestest.New(t, katestest.WithObjects(budgetOf("x", "")))
		var snap struct {
			A, B, C []*policyv1.PodDisruptionBudget
		}
		acc, err := f.Client.Watch(t.Context(),
			kates.Query{Name: "A", Kind: "pdb"}, kates.Query{Name: "B", Kind: "pdb", Namespace: "default"},
			kates.Query{Name: "C", Kind: "pdb", LabelSelector: "a=b"})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		_, err = acc.Update(t.Context(), &snap)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		var all []string
		for _, a := range f.Dynamic.Actions() {
			selector := ""
			switch a := a.(type) {
			case clienttesting.ListActionImpl:
				selector = a.ListOptions.LabelSelector
			case clienttesting.WatchActionImpl:
				selector = a.ListOptions.LabelSelector
			}
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %q %s", a.GetVerb(), a.GetNamespace(), selector)))
		}
		slices.Sort(all)
		assert.Equal(t, []string{
			`list ""`, `list "" a=b`, `list "default"`, `watch ""`, `watch "" a=b`, `watch "default"`,
		}, all)
		require.NoError(t, f.Client.Sync(t.Context()))
		assert.Len(t, f.Dynamic.Actions(), 9, "a list each")
	})
}

// A test may drive the watch itself.
func TestAWatcherThatATestDrivesReachesTheSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := katestest.New(t, katestest.WithClientOptions(kates.WithInterval(0)))
		test := watch.NewFake()
		f.Dynamic.PrependWatchReactor("poddisruptionbudgets", clienttesting.DefaultWatchReactor(test, nil))
		var snap struct{ Budgets []*kates.Unstructured }
		acc, err := f.Client.Watch(t.Context(), kates.Query{Name: "Budgets", Kind: "pdb"})
		require.NoError(t, err)
		synctest.Wait()
		second := budgetWith(budgetOf("x", ""), int64(2), "spec", "minAvailable")
		for _, step := range []struct {
			do   func(runtime.Object)
			u    *kates.Unstructured
			want []*kates.Unstructured
		}{
			{test.Add, budgetOf("x", ""), []*kates.Unstructured{budgetOf("x", "")}},
			{test.Modify, second, []*kates.Unstructured{second}},
			{test.Delete, second, nil},
			{test.Add, budgetOf("x", "7"), []*kates.Unstructured{budgetOf("x", "7")}},
		} {
			step.do(step.u)
			synctest.Wait()
			_, err = acc.Update(t.Context(), &snap)
			require.NoError(t, err)
			assert.Empty(t, cmp.Diff(step.want, snap.Budgets, cmpopts.EquateEmpty()))
		}
	})
}

// Tests that only count actions let reactors answer with nothing.
func TestAReactorMayAnswerWithNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := katestest.New(t, katestest.WithObjects(budgetOf("x", "")), katestest.WithClientOptions(kates.WithInterval(0)))
		acc, err := f.Client.Watch(t.Context(), kates.Query{Name: "Budgets", Kind: "pdb"})
		require.NoError(t, err)
		synctest.Wait()
		for _, verb := range []string{"create", "update", "patch", "delete"} {
			f.Dynamic.PrependReactor(verb, "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
		}
		second := budgetWith(budgetOf("x", ""), int64(2), "spec", "minAvailable")
		target := budgetOf("target", "")
		require.NoError(t, f.Client.Create(t.Context(), budgetOf("y", ""), target))
		require.NoError(t, f.Client.Update(t.Context(), second, target))
		require.NoError(t, f.Client.UpdateStatus(t.Context(), second, target))
		require.NoError(t, f.Client.Patch(t.Context(), second, types.MergePatchType, []byte(`{}`), target))
		_, err = kates.Modify(t.Context(), f.Client, budgetOf("x", ""), func(u *kates.Unstructured) error {
			u.SetLabels(map[string]string{"a": "b"})
			return nil
		})
		require.NoError(t, err)
		assert.Empty(t, target.Object, "nothing came")
		f.Dynamic.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
		assert.True(t, kates.IsNotFound(f.Client.Get(t.Context(), budgetOf("x", ""), target)))
		var snap struct{ Budgets []*kates.Unstructured }
		_, err = acc.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.Equal(t, []*kates.Unstructured{budgetOf("x", "")}, snap.Budgets)
	})
}
