package kates_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func secret(namespace, name, value string, kv ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"v": []byte(value)}}
	if kv != nil {
		s.Labels = map[string]string{kv[0]: kv[1]}
	}
	return s
}

func TestALookupIsAFieldOfAnyElementForm(t *testing.T) {
	type spec struct {
		Metadata struct{ Name string }
		Data     map[string]string
	}
	type snapshot struct {
		Typed   kates.Lookup[*corev1.Secret]
		Values  kates.Lookup[corev1.Secret]
		Untyped kates.Lookup[*kates.Unstructured] `kates:"secrets"`
		JSON    kates.Lookup[map[string]any]      `kates:"Secret"`
		Plain   kates.Lookup[spec]                `kates:"secrets"`
		Meta    kates.Lookup[*kates.PartialObjectMetadata]
		Widgets kates.Lookup[*kates.Unstructured] `kates:"gadgets.example.com,optional"`
	}
	c := katestest.NewClient(t, secret("a", "x", "1"), secret("b", "x", "2", "l", "v"))
	_, snap := first[snapshot](t, c, kates.Query{Name: "Meta", Kind: "secrets"})
	typed, ok := snap.Typed.Get("b", "x")
	assert.True(t, ok)
	assert.Equal(t, "2", string(typed.Data["v"]))
	value, _ := snap.Values.Get("b", "x")
	assert.Equal(t, typed.Data, value.Data)
	untyped, _ := snap.Untyped.Get("b", "x")
	assert.Equal(t, "b", untyped.GetNamespace())
	content, _ := snap.JSON.Get("b", "x")
	assert.Equal(t, untyped.Object, content)
	plain, _ := snap.Plain.Get("b", "x")
	assert.Equal(t, "Mg==", plain.Data["v"])
	meta, _ := snap.Meta.Get("b", "x")
	assert.Equal(t, map[string]string{"l": "v"}, meta.Labels)
	_, ok = snap.Typed.Get("b", "y")
	assert.False(t, ok)
	assert.Len(t, snap.Typed.Select("", nil), 2)
	assert.Equal(t, []*corev1.Secret{typed}, snap.Typed.Select("", labels.SelectorFromSet(labels.Set{"l": "v"})))
	assert.Empty(t, snap.Typed.Select("a", labels.SelectorFromSet(labels.Set{"l": "v"})))
	assert.True(t, snap.Typed.Available())
	assert.False(t, snap.Widgets.Available(), "there is no such kind")
}

func TestG4G7G10AWholeSnapshotsLookupIsAFieldLikeAnyOther(t *testing.T) {
	type snapshot struct {
		Secrets kates.Lookup[*corev1.Secret]
		Deltas  []*kates.Delta
	}
	c := katestest.NewClient(t, secret("a", "x", "1"), secret("a", "y", "1"))
	s, before := first[snapshot](t, c)
	require.NoError(t, c.Create(t.Context(), secret("a", "z", "1"), nil))
	after := new(snapshot)
	changed, err := s.Update(t.Context(), after)
	require.NoError(t, err)
	assert.True(t, changed)
	_, ok := after.Secrets.Get("a", "z")
	assert.True(t, ok, "the own write")
	_, ok = before.Secrets.Get("a", "z")
	assert.False(t, ok, "what was delivered stays as it was")
	x, _ := before.Secrets.Get("a", "x")
	same, _ := after.Secrets.Get("a", "x")
	assert.Same(t, x, same)
	require.Len(t, after.Deltas, 1)
	assert.Equal(t, kates.ObjectAdd, after.Deltas[0].DeltaType)
	assert.False(t, before.Secrets == after.Secrets)
	again := new(snapshot)
	changed, err = s.Update(t.Context(), again)
	require.NoError(t, err)
	assert.False(t, changed)
	assert.True(t, again.Secrets == after.Secrets)
	assert.ErrorIs(t, c.Get(t.Context(), x, x), kates.ErrShared)
}

func TestALookupThatCannotBeMeantIsAnErrorThatNamesItsField(t *testing.T) {
	c := katestest.NewClient(t)
	type unsaid struct {
		Odd kates.Lookup[map[string]any]
	}
	_, err := kates.Watch[unsaid](context.Background(), c)
	assert.ErrorContains(t, err, `field Odd: its type kates.Lookup[map[string]interface {}] says no kind`)
	type strange struct {
		Odd kates.Lookup[string] `kates:"secrets"`
	}
	_, err = kates.Watch[strange](context.Background(), c)
	assert.ErrorContains(t, err, `string cannot hold an object; want []T, map[K]T, Lookup[T] or a list`)
	type keyed struct {
		Secrets kates.Lookup[*corev1.Secret]
		Maps    []*corev1.ConfigMap
	}
	_, err = kates.WatchEach[keyed](context.Background(), c, kates.Query{Name: "Secrets", Key: kates.ByNamespace})
	assert.ErrorContains(t, err, `field Secrets: its query has a Key, but what is looked up belongs to no partition`)
	type contradicted struct {
		Secrets kates.Lookup[*corev1.Secret] `kates:"services"`
	}
	_, err = kates.Watch[contradicted](context.Background(), c)
	assert.ErrorContains(t, err, `is /v1, Kind=Secret, but "services" is`)
	assert.Empty(t, c.Status().Queries)
}

func TestAPartitionsLookupIsRecordedAndItsChangesAreDeltasOfTheKey(t *testing.T) {
	type snapshot struct {
		ConfigMaps []*corev1.ConfigMap
		Secrets    kates.Lookup[*corev1.Secret]
		Deltas     []*kates.Delta
	}
	c := katestest.NewClient(t, secret("a", "x", "1"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "m"}, Data: map[string]string{"secret": "y"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "m"}})
	p, err := kates.WatchEach[snapshot](t.Context(), c, kates.Query{Name: "ConfigMaps", Key: kates.ByNamespace})
	require.NoError(t, err)
	defer p.Close()
	next := func() *kates.Turn[snapshot] {
		turn, err := p.Next(t.Context())
		require.NoError(t, err)
		return turn
	}
	first, other := next(), next()
	require.Equal(t, "ab", first.Key+other.Key)
	other.Done(nil)
	_, found := first.Snapshot.Secrets.Get("a", first.Snapshot.ConfigMaps[0].Data["secret"])
	assert.False(t, found)
	assert.Len(t, first.Snapshot.Deltas, 1, "nothing of the key's has been read before")
	require.NoError(t, c.Create(t.Context(), secret("a", "y", "1"), nil))
	first.Done(nil)
	again := next()
	assert.Equal(t, "a", again.Key)
	y, found := again.Snapshot.Secrets.Get("a", "y")
	require.True(t, found)
	require.Len(t, again.Snapshot.Deltas, 1)
	assert.Equal(t, "Secrets", again.Snapshot.Deltas[0].Query)
	assert.ErrorIs(t, c.Get(t.Context(), y, y), kates.ErrShared)
	again.Done(nil)
	require.NoError(t, p.Status().Err())
}
