package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/kates-go/kates/kates"
)

func TestApplyOwnedLeavesAnObjectAsItWasThatComesIntoBeingAtTheLastMoment(t *testing.T) {
	for name, data := range map[string]map[string]any{
		"that differs in what is applied": {"k": "theirs"}, "that has something else": {"other": "theirs"}, "that has the same": {"k": "ours"}, "that is empty": nil,
	} {
		for _, watched := range []bool{false, true} {
			for _, force := range [][]kates.WriteOption{nil, {kates.ForceOwnership()}} {
				t.Run(name, func(t *testing.T) {
					o := newOwnedTest(t)
					if watched {
						o.watch()
					}
					var was *kates.Unstructured
					o.spy.before("PATCH", func() {
						o.make("a", data)
						was = o.stored("a")
					})
					_, err := o.client.ApplyOwned(t.Context(), o.set(o.configMap("a", "k", "ours")), force...)
					require.ErrorIs(t, err, kates.ErrNotOwned)
					require.NotNil(t, was)
					o.same(was, o.stored("a"))
					_, err = o.client.ApplyOwned(t.Context(), o.set(o.configMap("a", "k", "ours")), force...)
					require.ErrorIs(t, err, kates.ErrNotOwned)
				})
			}
		}
	}
}

func TestApplyOwnedLeavesAnObjectOfAnotherControllerThatComesIntoBeingAtTheLastMoment(t *testing.T) {
	o := newOwnedTest(t)
	other := o.owner("other")
	var was *kates.Unstructured
	o.spy.before("PATCH", func() {
		o.make("a", map[string]any{"x": "y"}, other)
		was = o.stored("a")
	})
	_, err := o.client.ApplyOwned(t.Context(), o.set(o.configMap("a", "k", "ours")))
	require.ErrorIs(t, err, kates.ErrControlled)
	assert.ErrorContains(t, err, `Host "other"`)
	o.same(was, o.stored("a"))
}

func TestApplyOwnedLeavesAnObjectThatReplacedItsOwnAtTheLastMoment(t *testing.T) {
	o := newOwnedTest(t)
	o.watch()
	o.apply(o.set(o.configMap("a", "k", "1")))
	var was *kates.Unstructured
	o.spy.before("PATCH", func() {
		o.remove("a")
		o.make("a", map[string]any{"x": "y"})
		was = o.stored("a")
	})
	_, err := o.client.ApplyOwned(t.Context(), o.set(o.configMap("a", "k", "2")), kates.ForceOwnership())
	require.ErrorIs(t, err, kates.ErrNotOwned)
	o.same(was, o.stored("a"))
}

func TestApplyOwnedMakesAnewWhatOthersDelete(t *testing.T) {
	o := newOwnedTest(t)
	o.watch()
	a := o.set(o.configMap("a", "k", "1"))
	o.apply(a)
	o.spy.before("PATCH", func() { o.remove("a") })
	o.apply(o.set(o.configMap("a", "k", "2")))
	assert.NotNil(t, o.stored("a"), "at the last moment")
	o.remove("a")
	require.NoError(t, o.client.Sync(t.Context()))
	assert.Len(t, o.apply(a).Applied, 1)
	assert.NotNil(t, o.stored("a"))
}

func TestApplyOwnedDoesNotApplyToWhatIsBeingDeletedAndMakesItAnewAfterwards(t *testing.T) {
	o := newOwnedTest(t)
	held := o.configMap("a")
	held.Finalizers = []string{"example.com/f"}
	o.apply(o.set(held))
	assert.Len(t, o.apply(o.set()).Pruned, 1)
	assert.Empty(t, o.apply(o.set()).Pruned, "it is on its way")
	assert.NotNil(t, o.stored("a").GetDeletionTimestamp())
	_, err := o.client.ApplyOwned(t.Context(), o.set(o.configMap("a", "k", "new")))
	require.ErrorIs(t, err, kates.ErrDeleting)
	assert.ErrorContains(t, err, o.ns+"/a")
	require.NoError(t, o.client.RemoveFinalizer(t.Context(), held, "example.com/f"))
	o.apply(o.set(o.configMap("a", "k", "new")))
	assert.Nil(t, o.stored("a").GetDeletionTimestamp())
}

func TestPruningIsBoundToTheObjectAndVersionThatWasJudged(t *testing.T) {
	for name, test := range map[string]struct {
		change func(o *ownedTest)
		stays  bool
	}{
		"it was changed, and is still the set's": {func(o *ownedTest) { o.patch("a", `{"data":{"x":"y"}}`) }, false},
		"it was taken out of the set": {func(o *ownedTest) {
			o.patch("a", `{"metadata":{"labels":{"`+kates.OwnedSetLabel+`":null}}}`)
		}, true},
		"it was orphaned": {func(o *ownedTest) { o.patch("a", `{"metadata":{"ownerReferences":null}}`) }, true},
		"it was replaced": {func(o *ownedTest) {
			o.remove("a")
			o.make("a", nil)
		}, true},
		"it is gone": {func(o *ownedTest) { o.remove("a") }, false},
	} {
		for _, watched := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				o := newOwnedTest(t)
				o.apply(o.set(o.configMap("a")))
				if watched {
					o.watch()
					o.w.set("configmaps", late)
				}
				o.spy.before("DELETE", func() { test.change(o) })
				o.apply(o.set())
				assert.Equal(t, test.stays, o.stored("a") != nil)
				_, err := kates.GetCached[corev1.ConfigMap](t.Context(), o.client, o.ns, "a")
				if !test.stays {
					assert.True(t, kates.IsNotFound(err), "G4: %v", err)
				}
			})
		}
	}
}

func TestTwoReplicasThatApplyTheSameSetAgree(t *testing.T) {
	o := newOwnedTest(t)
	second := newWire(t).client(t)
	set := o.set(o.configMap("a", "k", "v"), o.configMap("b", "k", "v"))
	for range 3 {
		done := make(chan error)
		for _, c := range []*kates.Client{o.client, second} {
			go func() {
				_, err := c.ApplyOwned(t.Context(), set)
				done <- err
			}()
		}
		assert.NoError(t, <-done)
		assert.NoError(t, <-done)
		assert.Len(t, o.stored("a").GetOwnerReferences(), 1)
		o.apply(o.set())
		assert.Nil(t, o.stored("a"))
	}
}

func TestApplyOwnedOfANewLeaderWhoseWatchIsBehindKeepsWhatTheOldOneMade(t *testing.T) {
	o := newOwnedTest(t)
	o.watch()
	o.w.set("configmaps", late)
	old := newWire(t).client(t)
	_, err := old.ApplyOwned(t.Context(), o.set(o.configMap("a", "k", "v"), o.configMap("b", "k", "old")))
	require.NoError(t, err)
	o.patch("a", `{"metadata":{"annotations":{"others":"too"}}}`)
	o.patch("b", `{"metadata":{"annotations":{"others":"too"}}}`)
	for range 2 {
		o.apply(o.set(o.configMap("a", "k", "v"), o.configMap("b", "k", "new")))
		for _, name := range []string{"a", "b"} {
			assert.True(t, kates.HasOwnerReference(o.root, o.stored(name)), name)
		}
		assert.Equal(t, map[string]any{"k": "new"}, o.stored("b").Object["data"])
	}
	assert.Len(t, o.apply(o.set()).Pruned, 2)
}

func TestApplyOwnedThroughABareDynamicClientKeepsToTheSameRules(t *testing.T) {
	o := newOwnedTest(t)
	dyn, err := dynamic.NewForConfig(o.w.config())
	require.NoError(t, err)
	disco, err := discovery.NewDiscoveryClientForConfig(serverOf(t))
	require.NoError(t, err)
	o.client, err = tapped(kates.NewClientFromDynamic(dyn, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))))
	require.NoError(t, err)
	t.Cleanup(o.client.Close)
	o.spy = newSpy(o.w, "configmaps")
	assert.Len(t, o.apply(o.set(o.configMap("mine", "k", "v"))).Applied, 1)
	var was *kates.Unstructured
	o.spy.before("PATCH", func() {
		o.make("a", nil)
		was = o.stored("a")
	})
	_, err = o.client.ApplyOwned(t.Context(), o.set(o.configMap("mine", "k", "v"), o.configMap("a", "k", "ours")))
	require.ErrorIs(t, err, kates.ErrNotOwned)
	o.same(was, o.stored("a"))
	assert.Equal(t, []string{"mine"}, referred(o.apply(o.set()).Pruned))
	assert.Nil(t, o.stored("mine"))
}
