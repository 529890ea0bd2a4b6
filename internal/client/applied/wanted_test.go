package applied

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/client/owners"
	"github.com/kates-go/kates/internal/object"
)

// wantedBy is an object as a set of the owner applies it, with its digest.
func wantedBy(t *testing.T, s *Set, given Object) *Wanted {
	t.Helper()
	s.Scheme, s.Annotate = scheme.Scheme, true
	s.BuiltIn = func(kind schema.GroupVersionKind) bool { return kind.Group != "example.com" }
	kind := owners.KindOf(given)
	w := &Wanted{
		Given: given, Key: object.Key{Namespace: "ns", Name: given.GetName()},
		Resource: object.Resource{Kind: kind, Storage: kind.Kind},
	}
	require.NoError(t, s.Refer(w))
	require.NoError(t, s.Summarize(w))
	require.NoError(t, s.Make(w))
	return w
}

func givenMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: "x", Labels: map[string]string{"mine": "l"}, Annotations: map[string]string{"mine": "a"},
			OwnerReferences: []metav1.OwnerReference{ownerNamed("given", false)},
		},
		Data: map[string]string{"k": "v"},
	}
}

func TestWhatIsAppliedIsWhatWasGivenWithTheMarksOfTheSet(t *testing.T) {
	controls := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "name": "root", "uid": "root", "controller": true, "blockOwnerDeletion": true,
	}
	plain := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "root", "uid": "root"}
	theirs := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "given", "uid": "given"}
	for what, test := range map[string]struct {
		set    func(*Set)
		owners []any
		marked bool
	}{
		"an owner that controls": {nil, []any{theirs, controls}, false},
		"a plain owner":          {func(s *Set) { s.Plain = true }, []any{theirs, plain}, false},
		"an owner elsewhere":     {elsewhere, []any{theirs}, true},
	} {
		given := givenMap()
		w := wantedBy(t, setOf(t, test.set), given)
		marks, notes := map[string]any{"mine": "l", "example.com/set": "unit.root"}, map[string]any{"mine": "a", "example.com/applied": w.Sum}
		if test.marked {
			marks[OwnerLabel], notes[OwnerAnnotation] = "root", "ConfigMap ns/root"
		}
		assert.Equal(t, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "v"},
			"metadata": map[string]any{"name": "x", "namespace": "ns", "labels": marks, "annotations": notes, "ownerReferences": test.owners},
		}, w.Object.Object, what)
		assert.Equal(t, givenMap(), given, "nobody writes to it")
	}
	s := setOf(t, nil)
	w := &Wanted{Given: givenMap(), Key: object.Key{Namespace: "ns", Name: "x"}, Resource: object.Resource{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap")}}
	s.Scheme, s.BuiltIn = scheme.Scheme, func(schema.GroupVersionKind) bool { return true }
	require.NoError(t, s.Refer(w))
	require.NoError(t, s.Make(w))
	assert.NotContains(t, w.Object.GetAnnotations(), s.Annotation, "a fake gets none")
	w.Key.Namespace = "other"
	assert.ErrorIs(t, s.Refer(w), owners.ErrOwnerScope)
}

// TestFieldsThatOnlyTheServerWritesAreNotApplied: an object may have been read, and applied before.
func TestFieldsThatOnlyTheServerWritesAreNotApplied(t *testing.T) {
	s := setOf(t, nil)
	fresh := func() *appsv1.Deployment { return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "x"}} }
	want := wantedBy(t, s, fresh())
	now := metav1.NewTime(time.Unix(1, 0))
	for what, change := range map[string]func(*appsv1.Deployment){
		"UID":        func(d *appsv1.Deployment) { d.UID = "u" },
		"version":    func(d *appsv1.Deployment) { d.ResourceVersion = "5" },
		"generation": func(d *appsv1.Deployment) { d.Generation = 2 },
		"created":    func(d *appsv1.Deployment) { d.CreationTimestamp = now },
		"deleted":    func(d *appsv1.Deployment) { d.DeletionTimestamp = &now },
		"managers":   func(d *appsv1.Deployment) { d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}} },
		"link":       func(d *appsv1.Deployment) { d.SelfLink = "/x" }, //lint:ignore SA1019 old objects have it
		"digest":     func(d *appsv1.Deployment) { d.Annotations = map[string]string{s.Annotation: "former"} },
		"status": func(d *appsv1.Deployment) {
			d.UID, d.Status.Replicas = "u", 3
		},
	} {
		given := fresh()
		change(given)
		w := wantedBy(t, s, given)
		require.NotEmpty(t, w.Sum)
		w.Object.SetAnnotations(nil) // the digest is that of another way to it
		same := want.Object.DeepCopy()
		same.SetAnnotations(nil)
		assert.Equal(t, same.Object["metadata"], w.Object.Object["metadata"], what)
		assert.NotContains(t, w.Object.Object, "status", what)
		again := wantedBy(t, s, given)
		assert.Equal(t, w.Sum, again.Sum, what)
	}
	read := fresh()
	read.UID, read.ResourceVersion = "u", "5"
	first := wantedBy(t, s, read)
	read.ResourceVersion, read.Status.Replicas = "6", 1
	assert.Equal(t, first.Sum, wantedBy(t, s, read).Sum, "what is not sent is not in the digest")
	read.Annotations = map[string]string{s.Annotation: first.Sum}
	second := wantedBy(t, s, read)
	read.Annotations[s.Annotation] = "another"
	assert.Equal(t, second.Sum, wantedBy(t, s, read).Sum, "nor is the digest of an earlier apply")
}

func TestTheDigestIsOfEverythingThatIsApplied(t *testing.T) {
	was := wantedBy(t, setOf(t, nil), givenMap()).Sum
	assert.Equal(t, was, wantedBy(t, setOf(t, nil), givenMap()).Sum)
	seen := map[string]string{was: "nothing"}
	for what, change := range map[string]func(*Set, *corev1.ConfigMap){
		"data":        func(_ *Set, m *corev1.ConfigMap) { m.Data["k"] = "w" },
		"labels":      func(_ *Set, m *corev1.ConfigMap) { m.Labels["mine"] = "m" },
		"name":        func(_ *Set, m *corev1.ConfigMap) { m.Name = "y" },
		"owners":      func(_ *Set, m *corev1.ConfigMap) { m.OwnerReferences = nil },
		"plain":       func(s *Set, _ *corev1.ConfigMap) { s.Plain = true },
		"owner":       func(s *Set, _ *corev1.ConfigMap) { s.Owner.SetUID("another") },
		"elsewhere":   func(s *Set, _ *corev1.ConfigMap) { s.Remote = true },
		"the label":   func(s *Set, _ *corev1.ConfigMap) { s.Label = "example.com/other" },
		"the owner's": func(s *Set, _ *corev1.ConfigMap) { s.Owner.SetName("renamed") },
	} {
		m := givenMap()
		sum := wantedBy(t, setOf(t, func(s *Set) { change(s, m) }), m).Sum
		assert.NotContains(t, seen, sum, "%s, and %s", what, seen[sum])
		seen[sum] = what
	}
}

func TestAnObjectSaysWhatWasAppliedUnlessItIsLeaving(t *testing.T) {
	s := setOf(t, nil)
	w := wantedBy(t, s, givenMap())
	live := w.Object.DeepCopy()
	assert.True(t, s.Says(w, live))
	now := metav1.Now()
	live.SetDeletionTimestamp(&now)
	assert.False(t, s.Says(w, live))
	other := givenMap()
	other.Data["k"] = "w"
	assert.False(t, s.Says(wantedBy(t, s, other), w.Object))
}

func TestTheNameOfASetIsInItsLabelWithItsOwner(t *testing.T) {
	s := setOf(t, nil)
	assert.Equal(t, "unit.root", s.Value)
	assert.True(t, s.Selector().Matches(labels.Set{"example.com/set": "unit.root"}))
	for _, other := range []labels.Set{nil, {"example.com/set": "unit.other"}, {"example.com/set": "other.root"}} {
		assert.False(t, s.Selector().Matches(other), "%v", other)
	}
	mine, theirs := setOf(t, nil), setOf(t, nil)
	require.NoError(t, mine.Name("unit", "example.com/mine"))
	require.NoError(t, theirs.Name("unit", "example.com/theirs"))
	assert.Equal(t, "example.com/mine", mine.Label)
	assert.NotEqual(t, s.Annotation, mine.Annotation, "sets of other labels may share an object")
	assert.NotEqual(t, mine.Annotation, theirs.Annotation)
	require.NoError(t, s.Name("unit", s.Label))
	assert.Equal(t, "example.com/applied", s.Annotation, "it is the default")
	for _, name := range []string{"", "a name", "this-name-is-longer-than-the-value-of-a-label-may-ever-be-at-all"} {
		assert.Error(t, setOf(t, nil).Name(name, ""), name)
	}
	assert.Error(t, setOf(t, nil).Name("unit", "no label"))
	s.Owner.SetUID("") // on a fake
	assert.Error(t, s.Name("", ""))
	assert.NoError(t, s.Name("unit", ""))
}
