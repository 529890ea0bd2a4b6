package kates_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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
	typed, err := snap.Typed.Get("b", "x")
	require.NoError(t, err)
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
	_, err = snap.Typed.Get("b", "y")
	assert.True(t, kates.IsNotFound(err), err)
	require.EqualError(t, err, `Typed: "b/y" not found`)
	labelled := labels.SelectorFromSet(labels.Set{"l": "v"})
	for want, in := range map[int]struct {
		namespace string
		selector  labels.Selector
	}{2: {"", nil}, 1: {"", labelled}, 0: {"a", labelled}} {
		all, err := snap.Typed.List(in.namespace, in.selector)
		require.NoError(t, err)
		assert.Len(t, all, want)
	}
	assert.True(t, snap.Typed.Available())
	assert.False(t, snap.Widgets.Available(), "there is no such kind")
	_, err = snap.Widgets.Get("a", "x")
	assert.True(t, kates.IsNotFound(err), err)
	none, err := snap.Widgets.List("", nil)
	require.NoError(t, err)
	assert.Empty(t, none)
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
	_, err = after.Secrets.Get("a", "z")
	require.NoError(t, err, "the own write")
	_, err = before.Secrets.Get("a", "z")
	assert.True(t, kates.IsNotFound(err), "what was delivered stays as it was")
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
	_, err = first.Snapshot.Secrets.Get("a", first.Snapshot.ConfigMaps[0].Data["secret"])
	assert.True(t, kates.IsNotFound(err))
	assert.Len(t, first.Snapshot.Deltas, 1, "nothing of the key's has been read before")
	require.NoError(t, c.Create(t.Context(), secret("a", "y", "1"), nil))
	first.Done(nil)
	again := next()
	assert.Equal(t, "a", again.Key)
	y, err := again.Snapshot.Secrets.Get("a", "y")
	require.NoError(t, err)
	require.Len(t, again.Snapshot.Deltas, 1)
	assert.Equal(t, "Secrets", again.Snapshot.Deltas[0].Query)
	assert.ErrorIs(t, c.Get(t.Context(), y, y), kates.ErrShared)
	again.Done(nil)
	require.NoError(t, p.Status().Err())
}

// refusing is a transform that fails for secrets with this value.
var refusing = kates.TransformOf(func(s *corev1.Secret) error {
	if string(s.Data["v"]) == "bad" {
		return errors.New("it is bad")
	}
	return nil
})

func TestALookupAndAListerSayWhyAnObjectIsInvalidAndThatThereIsNoSnapshot(t *testing.T) {
	type snapshot struct{ Secrets kates.Lookup[*corev1.Secret] }
	c := katestest.NewClient(t, secret("a", "x", "1"), secret("a", "y", "bad"), secret("b", "z", "bad"))
	s, snap := first[snapshot](t, c, kates.Query{Name: "Secrets", Transform: refusing})
	lister, err := kates.NewLister[*corev1.Secret](t.Context(), c, kates.Query{Transform: refusing})
	require.NoError(t, err)
	check := func(what string, look interface {
		Get(namespace, name string) (*corev1.Secret, error)
		List(namespace string, selector labels.Selector) ([]*corev1.Secret, error)
	}) {
		t.Helper()
		x, err := look.Get("a", "x")
		require.NoError(t, err, what)
		assert.Equal(t, "x", x.Name, what)
		_, err = look.Get("a", "y")
		require.ErrorContains(t, err, "it is bad", what)
		assert.False(t, kates.IsNotFound(err), what)
		_, err = look.Get("a", "none")
		assert.True(t, kates.IsNotFound(err), what)
		all, err := look.List("", nil)
		require.ErrorContains(t, err, `"a/y": `, what)
		require.ErrorContains(t, err, `"b/z": `, what)
		assert.Len(t, all, 1, what)
		all, err = look.List("a", nil)
		require.ErrorContains(t, err, "it is bad", what)
		require.NotContains(t, err.Error(), "b/z", what)
		assert.Len(t, all, 1, what)
		all, err = look.List("c", nil)
		require.NoError(t, err, what)
		assert.Empty(t, all, what)
	}
	check("lookup", snap.Secrets)
	check("lister", lister)

	now := new(snapshot)
	require.NoError(t, c.Delete(t.Context(), secret("b", "z", ""), nil))
	_, err = s.Update(t.Context(), now)
	require.NoError(t, err)
	_, err = now.Secrets.Get("b", "z")
	assert.True(t, kates.IsNotFound(err), "what is not shown has changed")
	require.NoError(t, c.Update(t.Context(), secret("a", "y", "good"), nil))
	_, err = s.Update(t.Context(), now)
	require.NoError(t, err)
	for what, list := range map[string]func(string, labels.Selector) ([]*corev1.Secret, error){
		"lookup": now.Secrets.List, "lister": lister.List,
	} {
		all, err := list("", nil)
		require.NoError(t, err, what)
		assert.Len(t, all, 2, what)
	}
	check("what was delivered", snap.Secrets)

	lister.Close()
	for what, look := range map[string]interface {
		Get(namespace, name string) (*corev1.Secret, error)
		List(namespace string, selector labels.Selector) ([]*corev1.Secret, error)
	}{"an ended lister": lister, "the zero Lookup": kates.Lookup[*corev1.Secret]{}} {
		for _, name := range []string{"x", "none"} {
			_, err = look.Get("a", name)
			require.Error(t, err, what)
			assert.False(t, kates.IsNotFound(err), what)
		}
		_, err = look.List("", nil)
		require.Error(t, err, what)
	}
	_, err = lister.List("", nil)
	assert.ErrorIs(t, err, kates.ErrClosed)
}

func TestAKeyHasAnotherTurnWhenWhatItLookedUpBecomesInvalidOrIsMended(t *testing.T) {
	type snapshot struct {
		ConfigMaps []*corev1.ConfigMap
		Secrets    kates.Lookup[*corev1.Secret]
		Deltas     []*kates.Delta
	}
	synctest.Test(t, func(t *testing.T) {
		c := katestest.New(t, katestest.WithClientOptions(kates.WithInterval(0))).Client
		require.NoError(t, c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "m"}}, nil))
		p, err := kates.WatchEach[snapshot](t.Context(), c,
			kates.Query{Name: "ConfigMaps", Key: kates.ByNamespace}, kates.Query{Name: "Secrets", Transform: refusing})
		require.NoError(t, err)
		var said string
		var deltas int
		turn := func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			turn, err := p.Next(ctx)
			if said = "no turn"; err != nil {
				return
			}
			s, err := turn.Snapshot.Secrets.Get("a", "x")
			switch {
			case kates.IsNotFound(err):
				said = "none"
			case err != nil:
				said = "invalid"
			default:
				said = string(s.Data["v"])
			}
			deltas = len(turn.Snapshot.Deltas)
			turn.Done(nil)
		}
		turn()
		assert.Equal(t, "none", said)
		for i, next := range []struct {
			value, says string
			deltas      int
		}{{"bad", "invalid", 0}, {"1", "1", 1}, {"2", "2", 1}, {"bad", "invalid", 1}} {
			require.NoError(t, c.Upsert(t.Context(), secret("a", "x", next.value), secret("a", "x", next.value), nil))
			turn()
			assert.Equal(t, next.says, said, i)
			assert.Equal(t, next.deltas, deltas, i)
		}
		require.NoError(t, c.Delete(t.Context(), secret("a", "x", ""), nil))
		turn()
		assert.Equal(t, "none", said)
		assert.Zero(t, deltas)
		turn()
		assert.Equal(t, "no turn", said)
		c.Close()
	})
}
