package kates_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func service(namespace, name string) *kates.Service {
	return &kates.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func widget(name string, spec map[string]any) *kates.Unstructured {
	u := kates.NewUnstructured("Widget", "example.com/v1")
	u.SetNamespace("default")
	u.SetName(name)
	u.Object["spec"] = spec
	return u
}

// first waits for the first complete snapshot.
func first[S any](t *testing.T, c *kates.Client, queries ...kates.Query) (*kates.Snapshots[S], *S) {
	t.Helper()
	s, err := kates.Watch[S](t.Context(), c, queries...)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	<-s.Changed()
	snap := new(S)
	changed, err := s.Update(t.Context(), snap)
	require.NoError(t, err)
	require.True(t, changed)
	return s, snap
}

func TestEveryFieldFormIsFilled(t *testing.T) {
	type spec struct{ Spec struct{ Size int } }
	type snapshot struct {
		Pointers []*kates.Service
		Values   []kates.Service
		ByName   map[string]*kates.Service
		ByKey    map[types.NamespacedName]kates.Service
		Untyped  []*kates.Unstructured                                  `kates:"services"`
		Meta     map[types.NamespacedName]*metav1.PartialObjectMetadata `kates:"svc"`
		JSON     []map[string]any                                       `kates:"Service"`
		Own      map[string]spec                                        `kates:"widgets.example.com"`
		One      map[string]*kates.Service
		Any      []any                      `kates:"services"`
		Raw      map[string]json.RawMessage `kates:"widgets.example.com"`
		List     corev1.ServiceList
		Lists    *struct{ Items []spec } `kates:"widgets.example.com"`
	}
	c := katestest.NewClient(t, service("a", "x"), service("b", "x"), widget("w", map[string]any{"size": int64(3)}))
	_, snap := first[snapshot](t, c, kates.Query{Name: "One", Namespace: "a"})
	assert.Equal(t, "a", snap.Pointers[0].Namespace)
	assert.Equal(t, "b", snap.Values[1].Namespace)
	assert.Contains(t, snap.ByName, "a/x", "namespace and name where the query spans namespaces")
	assert.Contains(t, snap.One, "x", "the name alone where it does not")
	assert.Contains(t, snap.ByKey, types.NamespacedName{Namespace: "b", Name: "x"})
	assert.Equal(t, "Service", snap.Untyped[0].GetKind())
	assert.Equal(t, "x", snap.Meta[types.NamespacedName{Namespace: "a", Name: "x"}].Name)
	assert.Equal(t, "Service", snap.JSON[0]["kind"])
	assert.Equal(t, 3, snap.Own["default/w"].Spec.Size)
	assert.Equal(t, "Service", snap.Any[1].(map[string]any)["kind"])
	assert.Contains(t, string(snap.Raw["default/w"]), `"size":3`)
	assert.Len(t, snap.List.Items, 2)
	assert.Equal(t, "b", snap.List.Items[1].Namespace)
	assert.Equal(t, 3, snap.Lists.Items[0].Spec.Size)
}

func TestWhatIsWrongWithAStructIsAnErrorOfWatchThatNamesTheField(t *testing.T) {
	c := katestest.NewClient(t, widget("w", nil))
	check := func(err error, want ...string) {
		t.Helper()
		require.Error(t, err)
		for _, w := range want {
			assert.ErrorContains(t, err, w)
		}
	}
	_, err := kates.Watch[struct{ Odd []map[string]any }](t.Context(), c)
	check(err, "Odd", "says no kind")
	for _, err := range []error{
		second(kates.Watch[struct{ Odd int }](t.Context(), c)),
		second(kates.Watch[struct{ Odd map[int]string }](t.Context(), c)),
		second(kates.Watch[struct{ Odd []string }](t.Context(), c)),
	} {
		check(err, "field Odd: it has type ", "; want []T, map[K]T", "if it is no query, the tag `kates:\"-\"`")
		assert.NotContains(t, err.Error(), "KIND", "another tag would not help")
	}
	_, err = kates.Watch[struct {
		Odd int `kates:"services"`
	}](t.Context(), c)
	check(err, "Odd", "int")
	_, err = kates.Watch[struct {
		S []*kates.Service `kates:",optionl"`
	}](t.Context(), c)
	check(err, "S", `"optionl"`)
	_, err = kates.Watch[struct {
		S []*kates.Service `kates:"pods"`
	}](t.Context(), c)
	check(err, "S", `"pods"`, "Service")
	_, err = kates.Watch[struct{ S []*kates.Service }](t.Context(), c, kates.Query{Name: "S", Kind: "po"})
	check(err, "S", `"po"`)
	_, err = kates.Watch[struct {
		D []*kates.Deployment `kates:"deployments.v1beta1.apps"`
	}](t.Context(), c)
	check(err, "D", "v1beta1")
	_, err = kates.Watch[struct {
		W []map[string]any `kates:"widgets"`
	}](t.Context(), c, kates.Query{Name: "W", Kind: "services"})
	check(err, "W", "widgets", "services")
	_, err = kates.Watch[struct{ S []*kates.Service }](t.Context(), c, kates.Query{Name: "T"})
	check(err, `"T"`)
	_, err = kates.Watch[struct{ S []*kates.Service }](t.Context(), c, kates.Query{Name: "S"}, kates.Query{Name: "S"})
	check(err, `"S"`, "two")
	_, err = kates.Watch[struct{ S []*kates.Service }](t.Context(), c, kates.Query{})
	check(err, "no name")
	_, err = kates.Watch[struct{ s []*kates.Service }](t.Context(), c)
	check(err, "no field")
	_, err = kates.Watch[int](t.Context(), c)
	check(err, "int")
	type common struct{ Pods []*kates.Pod }
	_, err = kates.Watch[struct {
		*common
		S []*kates.Service
	}](t.Context(), c)
	check(err, "common", "embedded pointer")
	_, err = kates.Watch[struct {
		*common `kates:"-"`
		S       []*kates.Service
	}](t.Context(), c)
	require.NoError(t, err)
}

func TestTagsQueriesAndTypesTogetherSayWhatAFieldWatches(t *testing.T) {
	type Shared struct{ Services []*kates.Service }
	type snapshot struct {
		Shared
		Widgets  []map[string]any `kates:"widgets,optional"`
		Renamed  []*kates.Service `kates:"svc"`
		ByQuery  []map[string]any
		Missing  []map[string]any `kates:"nothing.example.com,optional"`
		NotOurs  string           `kates:"-"`
		internal int
	}
	c := katestest.NewClient(t, service("a", "x"), service("b", "y"), widget("w", nil))
	_, snap := first[snapshot](t, c,
		kates.Query{Name: "Services", Namespace: "a"},
		kates.Query{Name: "ByQuery", Kind: "services", FieldSelector: "metadata.name=y"})
	snap.internal = 1
	assert.Len(t, snap.Services, 1, "a query of its name refines a field")
	assert.Len(t, snap.Widgets, 1)
	assert.Len(t, snap.Renamed, 2)
	assert.Len(t, snap.ByQuery, 1)
	assert.Nil(t, snap.Missing, "an absent optional field is nil")
	assert.Empty(t, snap.NotOurs)
}

func TestG8DeltasAndInvalidFieldsSayWhatChangedAndWhatWasLeftOut(t *testing.T) {
	type sized struct{ Spec struct{ Size int } }
	type snapshot struct {
		Widgets []sized `kates:"widgets.example.com"`
		Deltas  []*kates.Delta
		Invalid []kates.Invalid
	}
	var told []kates.Invalid
	fake := katestest.New(t, katestest.WithObjects(
		widget("bad", map[string]any{"size": "large"}), widget("good", map[string]any{"size": int64(1)})),
		katestest.WithClientOptions(kates.WithInterval(0), kates.WithOnInvalid(func(i kates.Invalid) { told = append(told, i) })))
	s, snap := first[snapshot](t, fake.Client)
	assert.Len(t, snap.Widgets, 1, "the rest is delivered")
	require.Len(t, snap.Invalid, 1)
	assert.Equal(t, "bad", snap.Invalid[0].Object.GetName())
	assert.Equal(t, "Widgets", snap.Invalid[0].Query)
	assert.Error(t, snap.Invalid[0].Err)
	assert.Len(t, told, 1)
	assert.Equal(t, 1, s.Status().Queries[0].Invalid)
	require.Len(t, snap.Deltas, 1, "what was never shown gives no delta")
	assert.Equal(t, "Widgets", snap.Deltas[0].Query)

	require.NoError(t, fake.Client.Update(t.Context(), widget("good", map[string]any{"size": "huge"}), nil))
	changed, err := s.Update(t.Context(), snap)
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Empty(t, snap.Widgets)
	assert.Len(t, snap.Invalid, 2)
	require.Len(t, snap.Deltas, 1)
	assert.Equal(t, kates.ObjectDelete, snap.Deltas[0].DeltaType)

	require.NoError(t, fake.Client.Update(t.Context(), widget("bad", map[string]any{"size": false}), nil))
	changed, err = s.Update(t.Context(), snap)
	require.NoError(t, err)
	assert.True(t, changed, "a change in Invalid is a change of the snapshot")
	assert.Empty(t, snap.Deltas)

	require.NoError(t, fake.Client.Update(t.Context(), widget("bad", map[string]any{"size": int64(2)}), nil))
	_, err = s.Update(t.Context(), snap)
	require.NoError(t, err)
	require.Len(t, snap.Widgets, 1, "healed, it joins")
	assert.Equal(t, 2, snap.Widgets[0].Spec.Size)
	assert.Len(t, snap.Invalid, 1)
}

func TestTheUntypedWatchIgnoresFieldsThatNoQueryNamesAndWantsThoseThatOneDoes(t *testing.T) {
	c := katestest.NewClient(t, service("a", "x"))
	acc, err := c.Watch(t.Context(), kates.Query{Name: "Services", Kind: "SERVICES"})
	require.NoError(t, err)
	<-acc.Changed()
	var snap struct {
		Services []*kates.Service
		Other    int
		Pods     []*kates.Pod
	}
	changed, err := acc.Update(t.Context(), &snap)
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Len(t, snap.Services, 1)
	assert.Nil(t, snap.Pods)
	for _, target := range []any{
		nil, 1, snap, (*struct{ Services []*kates.Service })(nil),
		&struct{ Pods []*kates.Pod }{}, &struct{ Services chan int }{}, new(int),
	} {
		_, err := acc.Update(t.Context(), target)
		assert.Error(t, err, "%T", target)
	}
	_, err = acc.Update(t.Context(), &struct{ Pods []*kates.Pod }{})
	assert.ErrorContains(t, err, `query "Services"`)
}

func TestMistakesInQueriesAreErrorsOfWatchThatNameTheQuery(t *testing.T) {
	c := katestest.NewClient(t)
	for want, queries := range map[string][]kates.Query{
		"nothing to watch":   {},
		"has no name":        {{Kind: "pods"}},
		`query "A": there`:   {{Name: "A", Kind: "pods"}, {Name: "A", Kind: "services"}},
		`query "A" has no`:   {{Name: "A"}},
		`query "A": label`:   {{Name: "A", Kind: "pods", LabelSelector: "a in"}},
		`query "A": field`:   {{Name: "A", Kind: "pods", FieldSelector: "a"}},
		`query "B": not ser`: {{Name: "A", Kind: "pods"}, {Name: "B", Kind: "nonsense"}},
	} {
		_, err := c.Watch(t.Context(), queries...)
		assert.ErrorContains(t, err, want)
	}
	_, err := c.Watch(t.Context(), kates.Query{Name: "A", Kind: "nonsense"})
	var unknown *kates.UnknownKindError
	require.True(t, errors.As(err, &unknown))
	assert.Equal(t, "nonsense", unknown.Kind)
	assert.NoError(t, c.Ready(), "nothing is left running")
	assert.Empty(t, c.Status().Queries)
}

func TestG10ATargetThatASnapshotSharesIsRefused(t *testing.T) {
	type snapshot struct {
		Services []*corev1.Service
		Untyped  []*kates.Unstructured `kates:"services"`
	}
	c := katestest.NewClient(t, service("a", "x"))
	_, snap := first[snapshot](t, c)
	for name, shared := range map[string]kates.Object{"typed": snap.Services[0], "untyped": snap.Untyped[0]} {
		before := shared.DeepCopyObject()
		assert.ErrorIs(t, c.Update(t.Context(), shared, shared), kates.ErrShared, name)
		assert.ErrorIs(t, c.Get(t.Context(), shared, shared), kates.ErrShared, name)
		assert.ErrorIs(t, c.Delete(t.Context(), shared, shared), kates.ErrShared, name)
		assert.NoError(t, c.Update(t.Context(), shared, nil), "as the resource it may be given")
		assert.Equal(t, before, shared)
	}
}

func TestG10ATargetWithinADeliveredSliceIsRefused(t *testing.T) {
	type snapshot struct {
		Pointers []*corev1.Service
		Values   []corev1.Service
		Maps     []map[string]any `kates:"services"`
	}
	c := katestest.NewClient(t, service("a", "x"), service("b", "y"))
	_, snap := first[snapshot](t, c)
	for _, target := range []any{&snap.Pointers[1], &snap.Values[0], &snap.Values[1], &snap.Maps[0]} {
		assert.ErrorIs(t, c.Get(t.Context(), service("a", "x"), target), kates.ErrShared, "%T", target)
	}
	mine, alias := snap.Values[1], snap.Pointers[0]
	assert.NoError(t, c.Get(t.Context(), service("a", "x"), &mine), "a copy")
	assert.NoError(t, c.Get(t.Context(), service("a", "x"), &alias), "it gets another object")
	assert.NotSame(t, alias, snap.Pointers[0])
}
