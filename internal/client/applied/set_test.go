package applied

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kates-go/kates/internal/client/owners"
)

// setOf is the set "unit" of an owner, which change may change.
func setOf(t *testing.T, change func(*Set)) *Set {
	t.Helper()
	s := &Set{
		Owner: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "root", UID: "root"}},
		Label: "example.com/set", Annotation: "example.com/applied",
	}
	if change != nil {
		change(s)
	}
	require.NoError(t, s.Name("unit", ""))
	return s
}

func elsewhere(s *Set)   { s.Remote = true }
func clusterWide(s *Set) { s.Owner.SetNamespace("") }

// ownerNamed is a reference to an owner whose name is its UID.
func ownerNamed(uid string, controls bool) metav1.OwnerReference {
	r := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: uid, UID: types.UID(uid)}
	if controls {
		r.Controller = ptr.To(true)
	}
	return r
}

// memberOf is an object of that set.
func memberOf(s *Set, change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "x", UID: "x", Labels: map[string]string{"example.com/set": "unit.root", "theirs": "l"},
		Annotations: map[string]string{"example.com/applied": "sum", "theirs": "a"},
	}}
	if s.Remote {
		m.Labels[OwnerLabel], m.Annotations[OwnerAnnotation] = "root", "ConfigMap ns/root"
	} else {
		m.OwnerReferences = []metav1.OwnerReference{ownerNamed("root", true)}
	}
	if change != nil {
		change(m)
	}
	return m
}

// TestAnObjectIsPrunedOnEachOfTheseConditionsOnly: none of them may be missing.
func TestAnObjectIsPrunedOnEachOfTheseConditionsOnly(t *testing.T) {
	now := metav1.Now()
	for _, test := range []struct {
		what  string
		set   func(*Set)
		other func(*corev1.ConfigMap)
		want  bool
	}{
		{"a member", nil, nil, true},
		{"no label", nil, func(m *corev1.ConfigMap) { delete(m.Labels, "example.com/set") }, false},
		{"another set of the owner", nil, func(m *corev1.ConfigMap) { m.Labels["example.com/set"] = "others.root" }, false},
		{"the set of another owner", nil, func(m *corev1.ConfigMap) { m.Labels["example.com/set"] = "unit.other" }, false},
		{"no owner", nil, func(m *corev1.ConfigMap) { m.OwnerReferences = nil }, false},
		{"another owner alone", nil, func(m *corev1.ConfigMap) { m.OwnerReferences = []metav1.OwnerReference{ownerNamed("other", true)} }, false},
		{"an owner of that name and another UID", nil, func(m *corev1.ConfigMap) { m.OwnerReferences[0].UID = "former" }, false},
		{"a plain reference", nil, func(m *corev1.ConfigMap) { m.OwnerReferences = []metav1.OwnerReference{ownerNamed("root", false)} }, true},
		{"another owner, too", nil, func(m *corev1.ConfigMap) { m.OwnerReferences = append(m.OwnerReferences, ownerNamed("other", false)) }, true},
		{"another namespace", nil, func(m *corev1.ConfigMap) { m.Namespace = "other" }, false},
		{"being deleted", nil, func(m *corev1.ConfigMap) { m.DeletionTimestamp = &now }, false},
		{"an owner without a namespace", clusterWide, func(m *corev1.ConfigMap) { m.Namespace = "other" }, true},
		{"an owner elsewhere", elsewhere, nil, true},
		{"an owner elsewhere, any namespace", elsewhere, func(m *corev1.ConfigMap) { m.Namespace = "other" }, true},
		{"another owner elsewhere", elsewhere, func(m *corev1.ConfigMap) { m.Labels[OwnerLabel] = "other" }, false},
		{"released by hand", elsewhere, func(m *corev1.ConfigMap) { delete(m.Labels, OwnerLabel) }, false},
		{"a reference does not stand for the label", elsewhere, func(m *corev1.ConfigMap) {
			delete(m.Labels, OwnerLabel)
			m.OwnerReferences = []metav1.OwnerReference{ownerNamed("root", true)}
		}, false},
		{"an owner elsewhere, no label of the set", elsewhere, func(m *corev1.ConfigMap) { delete(m.Labels, "example.com/set") }, false},
		{"an owner elsewhere, being deleted", elsewhere, func(m *corev1.ConfigMap) { m.DeletionTimestamp = &now }, false},
	} {
		s := setOf(t, test.set)
		m := memberOf(s, test.other)
		assert.Equal(t, test.want, s.Prunable(m), test.what)
		assert.Equal(t, test.want || m.DeletionTimestamp != nil, s.Ours(m), test.what)
	}
}

func TestAnObjectThatOthersOwnTooIsReleasedAndKeepsWhatIsTheirs(t *testing.T) {
	other := func(m *corev1.ConfigMap) { m.OwnerReferences = append(m.OwnerReferences, ownerNamed("other", false)) }
	for what, change := range map[string]func(*Set){"here": nil, "elsewhere": elsewhere} {
		s := setOf(t, change)
		assert.False(t, s.HasOtherOwners(memberOf(s, nil)), what)
		m := memberOf(s, other)
		require.True(t, s.HasOtherOwners(m), what)
		s.Release(m)
		assert.Equal(t, map[string]string{"theirs": "l"}, m.Labels, what)
		assert.Equal(t, map[string]string{"theirs": "a"}, m.Annotations, what)
		assert.Equal(t, []metav1.OwnerReference{ownerNamed("other", false)}, m.OwnerReferences, what)
		assert.False(t, s.Ours(m), what)
	}
}

func TestASetWritesToItsOwnObjectsOnly(t *testing.T) {
	now := metav1.Now()
	plain := func(s *Set) { s.Plain = true }
	adopt := func(s *Set) { s.Adopt = true }
	adoptPlain := func(s *Set) { s.Adopt, s.Plain = true, true }
	adoptElsewhere := func(s *Set) { s.Adopt, s.Remote = true, true }
	unlabelled := func(m *corev1.ConfigMap) { m.Labels = nil }
	free := func(m *corev1.ConfigMap) { m.Labels, m.OwnerReferences = nil, nil }
	controlled := func(m *corev1.ConfigMap) { m.OwnerReferences = []metav1.OwnerReference{ownerNamed("other", true)} }
	shared := func(m *corev1.ConfigMap) { m.OwnerReferences = append(m.OwnerReferences, ownerNamed("other", false)) }
	both := func(m *corev1.ConfigMap) {
		m.OwnerReferences = []metav1.OwnerReference{ownerNamed("root", false), ownerNamed("other", true)}
	}
	remote := func(m *corev1.ConfigMap) { m.Labels, m.OwnerReferences = map[string]string{OwnerLabel: "other"}, nil }
	for _, test := range []struct {
		what  string
		set   func(*Set)
		other func(*corev1.ConfigMap)
		want  error
	}{
		{"a member", nil, nil, nil},
		{"another owner, too", nil, shared, nil},
		{"owned, without the label", nil, unlabelled, nil},
		{"another set of the owner", nil, func(m *corev1.ConfigMap) { m.Labels["example.com/set"] = "others.root" }, ErrNotOwned},
		{"nobody's", nil, free, ErrNotOwned},
		{"nobody's, adopted", adopt, free, nil},
		{"another controls it", nil, controlled, owners.ErrControlled},
		{"another controls it, adopted", adopt, controlled, owners.ErrControlled},
		{"another controls it, and it is owned plainly", plain, both, nil},
		{"another controls it, and it is owned, not plainly", nil, both, owners.ErrControlled},
		{"another controls it, adopted plainly", adoptPlain, controlled, owners.ErrControlled},
		{"being deleted", nil, func(m *corev1.ConfigMap) { m.DeletionTimestamp = &now }, ErrDeleting},
		{"being deleted, adopted", adopt, func(m *corev1.ConfigMap) { free(m); m.DeletionTimestamp = &now }, ErrDeleting},
		{"an owner elsewhere has it", adopt, remote, owners.ErrControlled},
		{"another owner elsewhere has it", adoptElsewhere, remote, owners.ErrControlled},
		{"a member of an owner elsewhere", elsewhere, nil, nil},
		{"its own owner here is another one", elsewhere, func(m *corev1.ConfigMap) { m.OwnerReferences = []metav1.OwnerReference{ownerNamed("root", true)} }, owners.ErrControlled},
		{"nobody's, for an owner elsewhere", elsewhere, free, ErrNotOwned},
		{"nobody's, adopted by an owner elsewhere", adoptElsewhere, free, nil},
	} {
		s := setOf(t, test.set)
		assert.ErrorIs(t, s.MayApply(memberOf(s, test.other)), test.want, test.what)
	}
	assert.NoError(t, setOf(t, nil).MayApply(nil), "there is none")
}

func TestAnObjectIsCheckedAgainIfWhatDecidesHasChanged(t *testing.T) {
	now := metav1.Now()
	s := setOf(t, nil)
	assert.True(t, SameObject(nil, nil))
	assert.False(t, SameObject(nil, memberOf(s, nil)))
	assert.False(t, SameObject(memberOf(s, nil), nil))
	for what, change := range map[string]func(*corev1.ConfigMap){
		"UID":      func(m *corev1.ConfigMap) { m.UID = "other" },
		"deletion": func(m *corev1.ConfigMap) { m.DeletionTimestamp = &now },
		"owners":   func(m *corev1.ConfigMap) { m.OwnerReferences = nil },
		"labels":   func(m *corev1.ConfigMap) { m.Labels = nil },
	} {
		assert.False(t, SameObject(memberOf(s, nil), memberOf(s, change)), what)
	}
	assert.True(t, SameObject(memberOf(s, nil), memberOf(s, func(m *corev1.ConfigMap) {
		m.ResourceVersion, m.Annotations, m.Data = "9", nil, map[string]string{"k": "v"}
	})))
}

func TestTheNameOfASetIsALabelsValue(t *testing.T) {
	s := setOf(t, nil)
	require.ErrorContains(t, s.Name("", ""), "it has no Name")
	require.ErrorContains(t, s.Name("a b", ""), `the set's name "a b" makes no label example.com/set=a b.root`)
	require.NoError(t, s.Name("web", "example.com/other"))
	assert.Equal(t, "example.com/other", s.Label)
	assert.NotEqual(t, "example.com/applied", s.Annotation, "two sets of one object have annotations of their own")
	s.Owner.SetUID("")
	require.NoError(t, s.Name("web", ""))
	assert.Equal(t, "web", s.Value)
}
