package kates_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// requests returns the requests, except watches, that a fake has got since the last call: verb
// and resource.
func requests(fake *katestest.Fake) (all []string) {
	for _, a := range fake.Dynamic.Actions() {
		if a.GetVerb() != "watch" {
			all = append(all, a.GetVerb()+" "+a.GetResource().Resource)
		}
	}
	fake.Dynamic.ClearActions()
	return all
}

func TestG4GetOfAWatchedKindMakesNoRequestForWhatIsThereNorForWhatIsNot(t *testing.T) {
	fake := katestest.New(t, katestest.WithObjects(configMap("x", "a", "1")))
	get := func(name string) error {
		_, err := kates.GetCached[kates.ConfigMap](t.Context(), fake.Client, "default", name)
		return err
	}
	require.NoError(t, get("x"))
	require.True(t, kates.IsNotFound(get("y")))
	assert.Equal(t, []string{"get configmaps", "get configmaps"}, requests(fake))
	r, err := kates.NewLister[*kates.ConfigMap](t.Context(), fake.Client, kates.Query{})
	require.NoError(t, err)
	defer r.Close()
	requests(fake)
	require.NoError(t, get("x"))
	require.True(t, kates.IsNotFound(get("y")))
	require.NoError(t, fake.Client.Create(t.Context(), configMap("y"), nil))
	require.NoError(t, get("y"))
	require.NoError(t, fake.Client.Delete(t.Context(), configMap("y"), nil))
	require.True(t, kates.IsNotFound(get("y")))
	assert.Equal(t, []string{"create configmaps", "delete configmaps"}, requests(fake))
}

func TestAStatusConditionsAndFinalizersThatAreThereAreNotWritten(t *testing.T) {
	host := kates.NewUnstructured("Host", "getambassador.io/v3alpha1")
	host.SetNamespace("default")
	host.SetName("h")
	fake := katestest.New(t, katestest.WithKinds(katestest.Kind{APIVersion: "getambassador.io/v3alpha1", Kind: "Host"}), katestest.WithObjects(host))
	ready := []kates.Condition{{Type: "Ready", Status: "True", Reason: "Good"}}
	for _, write := range []func() error{
		func() error { return fake.Client.SetConditions(t.Context(), host, ready) },
		func() error { return fake.Client.AddFinalizer(t.Context(), host, "example.com/f") },
		func() error { return fake.Client.RemoveFinalizer(t.Context(), host, "example.com/f") },
		func() error {
			_, err := kates.ModifyStatus(t.Context(), fake.Client, host, func(h *map[string]any) error {
				(*h)["status"] = map[string]any{"state": "Other"}
				return nil
			})
			return err
		},
	} {
		require.NoError(t, write())
		assert.Equal(t, []string{"get hosts", "patch hosts"}, requests(fake))
		require.NoError(t, write())
		assert.Equal(t, []string{"get hosts"}, requests(fake))
	}
}

func TestApplyOwnedOfWhatIsThereWritesNothingAndAnErrorOnOneDoesNotStopTheRest(t *testing.T) {
	root := configMap("root")
	fake := katestest.New(t, katestest.WithObjects(root))
	root.Namespace = "default"
	refused := errors.New("refused")
	refuse := func(verb string) func() {
		on := true
		react(fake, verb, "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
			named, ok := a.(interface{ GetName() string })
			if c, is := a.(clienttesting.CreateAction); is {
				object, _ := c.GetObject().(metav1.Object)
				return on && object.GetName() == "b", nil, refused
			}
			return on && ok && named.GetName() == "b", nil, refused
		})
		return func() { on = false }
	}
	allow := refuse("create")
	set := kates.OwnedSet{Owner: root, SetName: "unit", Objects: []kates.Object{configMap("a"), configMap("b"), configMap("c")}}
	result, err := fake.Client.ApplyOwned(t.Context(), set)
	require.ErrorIs(t, err, refused)
	assert.ErrorContains(t, err, `apply configmaps "default/b"`)
	assert.Len(t, result.Applied, 2)
	allow()
	result, err = fake.Client.ApplyOwned(t.Context(), set)
	require.NoError(t, err)
	assert.Len(t, result.Applied, 1)
	requests(fake)
	result, err = fake.Client.ApplyOwned(t.Context(), set)
	require.NoError(t, err)
	assert.Len(t, result.Unchanged, 3)
	assert.NotContains(t, requests(fake), "update configmaps")

	allow = refuse("delete")
	set.Objects, set.Kinds = nil, []string{"cm"}
	result, err = fake.Client.ApplyOwned(t.Context(), set)
	require.ErrorIs(t, err, refused)
	assert.ErrorContains(t, err, `prune configmaps "default/b"`)
	assert.Len(t, result.Pruned, 2)
	allow()
	result, err = fake.Client.ApplyOwned(t.Context(), set)
	require.NoError(t, err)
	assert.Len(t, result.Pruned, 1)
}
