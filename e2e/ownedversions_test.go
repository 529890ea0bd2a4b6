package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/e2e/internal/secrecy"
	"github.com/kates-go/kates/kates"
)

var autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

func (o *ownedTest) scalerV1(name string, most int32) *autoscalingv1.HorizontalPodAutoscaler {
	return &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: named(o.ns, name), Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "x"}, MaxReplicas: most,
	}}
}

func (o *ownedTest) scalerV2(name string, most int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named(o.ns, name), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "x"}, MaxReplicas: most,
	}}
}

// A set moves from one version of a kind to another when its program is upgraded, and back when
// it is rolled back.
func TestApplyOwnedPrunesNothingThatIsWantedInAnotherVersionOfItsKind(t *testing.T) {
	for how, watch := range map[string]func(*ownedTest) error{
		"not watched":            func(*ownedTest) error { return nil },
		"watched in the one":     func(o *ownedTest) error { return open[*autoscalingv1.HorizontalPodAutoscaler](o.T, o.client, o.ns) },
		"watched in the other":   func(o *ownedTest) error { return open[*autoscalingv2.HorizontalPodAutoscaler](o.T, o.client, o.ns) },
		"watched whole in both":  func(o *ownedTest) error { return o.wholeScalers("v1", "v2") },
		"watched whole in v1":    func(o *ownedTest) error { return o.wholeScalers("v1") },
		"watched, metadata only": func(o *ownedTest) error { return open[*metav1.PartialObjectMetadata](o.T, o.client, o.ns) },
	} {
		t.Run(how, func(t *testing.T) {
			o := newOwnedTest(t)
			o.others = foreign(t).Resource(autoscalers).Namespace(o.ns)
			if how == "watched, metadata only" {
				watch = func(o *ownedTest) error {
					r, err := kates.NewLister[*metav1.PartialObjectMetadata](t.Context(), o.client, kates.Query{Kind: "hpa", Namespace: o.ns})
					if err == nil {
						t.Cleanup(r.Close)
					}
					return err
				}
			}
			require.NoError(t, watch(o))
			one := kates.OwnedSet{Owner: o.root, SetName: "e2e", Kinds: []string{"horizontalpodautoscalers.v1.autoscaling", "hpa"}, Objects: []kates.Object{o.scalerV1("a", 2), o.scalerV1("b", 2)}}
			two := one
			two.Objects = []kates.Object{o.scalerV2("a", 2), o.scalerV2("c", 3)}
			o.apply(one)
			uid := o.stored("a").GetUID()
			for round := range 2 {
				result := o.apply(two)
				assert.Equal(t, []string{"a", "c"}, append(referred(result.Applied), referred(result.Unchanged)...), "round %d", round)
				assert.Equal(t, []string{"b"}, referred(result.Pruned))
				assert.Equal(t, []string{"a", "c"}, referred(o.apply(two).Unchanged))
				require.NoError(t, o.client.Sync(t.Context()))
				again := o.apply(two)
				assert.Equal(t, []string{"a", "c"}, referred(again.Unchanged))
				assert.Empty(t, again.Pruned)

				result = o.apply(one)
				assert.Equal(t, []string{"a", "b"}, append(referred(result.Applied), referred(result.Unchanged)...))
				assert.Equal(t, []string{"c"}, referred(result.Pruned))
				require.NoError(t, o.client.Sync(t.Context()))
				assert.Equal(t, []string{"a", "b"}, referred(o.apply(one).Unchanged))
			}
			assert.Equal(t, uid, o.stored("a").GetUID(), "it is the same one still")
			assert.NotNil(t, o.stored("b"))
			assert.Nil(t, o.stored("c"))
		})
	}
}

func (o *ownedTest) wholeScalers(versions ...string) error {
	for _, v := range versions {
		r, err := kates.NewLister[*kates.Unstructured](o.Context(), o.client, kates.Query{Kind: "horizontalpodautoscalers." + v + ".autoscaling", Namespace: o.ns})
		if err != nil {
			return err
		}
		o.Cleanup(r.Close)
	}
	return nil
}

func TestApplyOwnedKnowsExistingObjectsInWhateverVersionTheyAreShown(t *testing.T) {
	o := newOwnedTest(t)
	o.others = foreign(t).Resource(autoscalers).Namespace(o.ns)
	set := o.set(o.scalerV1("a", 2), o.scalerV1("b", 2))
	set.Kinds = nil
	o.apply(set)
	var ones []*autoscalingv1.HorizontalPodAutoscaler
	require.NoError(t, o.client.List(t.Context(), kates.Query{Kind: "horizontalpodautoscalers.v1.autoscaling", Namespace: o.ns}, &ones))
	var twos []*autoscalingv2.HorizontalPodAutoscaler
	require.NoError(t, o.client.List(t.Context(), kates.Query{Kind: "horizontalpodautoscalers.v2.autoscaling", Namespace: o.ns}, &twos))
	require.Len(t, ones, 2)
	require.Len(t, twos, 2)
	set.Objects, set.Existing = []kates.Object{o.scalerV2("a", 2)}, []kates.Object{ones[0], ones[1], twos[0], twos[1]}
	result := o.apply(set)
	assert.Equal(t, []string{"b"}, referred(result.Pruned), "once")
	assert.NotNil(t, o.stored("a"))
	assert.Nil(t, o.stored("b"))
}

func TestApplyOwnedOfOneObjectInTwoVersionsIsAnErrorAndPrunesNothing(t *testing.T) {
	o := newOwnedTest(t)
	o.apply(o.set(o.configMap("a")))
	result, err := o.client.ApplyOwned(t.Context(), o.set(o.scalerV1("x", 2), o.scalerV2("x", 2)))
	assert.ErrorContains(t, err, "object 1: ")
	assert.ErrorContains(t, err, "is there twice")
	assert.Empty(t, result)
	assert.NotNil(t, o.stored("a"))
}

// versioned is a test with objects of a custom kind in two versions.
func (o *ownedTest) versioned() (*gadget, func(version, name, color string) *kates.Unstructured) {
	g := newGadget(o.T, o.ns)
	g.install("v1", "v2")
	require.NoError(o, o.client.WaitFor(o.Context(), g.kind))
	o.others = foreign(o.T).Resource(g.resource("v2")).Namespace(o.ns)
	return g, func(version, name, color string) *kates.Unstructured {
		u := g.object(version, o.ns, name, color)
		u.SetLabels(nil)
		return u
	}
}

func TestApplyOwnedOfAnOwnerInAnotherVersionGoesOnWithItsSet(t *testing.T) {
	o := newOwnedTest(t)
	g, gadget := o.versioned()
	var one, two *kates.Unstructured
	require.NoError(t, o.client.Create(t.Context(), gadget("v1", "owner", "red"), &one))
	require.NoError(t, o.client.Get(t.Context(), gadget("v2", "owner", ""), &two))
	require.Equal(t, one.GetUID(), two.GetUID())
	set := o.set(o.configMap("a"), o.configMap("b"))
	o.others = foreign(t).Resource(configMaps).Namespace(o.ns)
	set.Owner = one
	o.apply(set)
	set.Owner, set.Objects = two, set.Objects[:1]
	result := o.apply(set)
	assert.Equal(t, []string{"a"}, referred(result.Applied))
	assert.Equal(t, []string{"b"}, referred(result.Pruned))
	owners := o.stored("a").GetOwnerReferences()
	require.Len(t, owners, 1, "one reference, and not one for each version")
	assert.Equal(t, g.group+"/v2", owners[0].APIVersion)
	assert.Len(t, o.apply(set).Unchanged, 1)
}

func TestApplyOwnedOfAVersionThatIsServedNoLongerIsAnErrorAndTheOtherGoesOn(t *testing.T) {
	o := newOwnedTest(t)
	g, gadget := o.versioned()
	set := o.set(gadget("v1", "a", "red"), gadget("v1", "b", "red"))
	set.Kinds = []string{strings.Replace(g.kind, ".", ".v1.", 1)}
	o.apply(set)
	uid := o.stored("a").GetUID()
	g.edit("/spec/versions/0/served", false)
	g.serving("v1", false)
	require.NoError(t, o.client.InvalidateCache())

	result, err := o.client.ApplyOwned(t.Context(), set)
	require.Error(t, err)
	assert.Empty(t, result.Applied)
	assert.Empty(t, result.Pruned)
	assert.NotNil(t, o.stored("a"))
	assert.NotNil(t, o.stored("b"))

	set.Objects = []kates.Object{gadget("v2", "a", "blue")}
	result, err = o.client.ApplyOwned(t.Context(), set)
	assert.ErrorContains(t, err, "v1", "a kind to prune that is not known any more")
	assert.Equal(t, []string{"a"}, referred(result.Applied))
	assert.Equal(t, []string{"b"}, referred(result.Pruned), "it is of a kind that is, in the other version")
	assert.Equal(t, uid, o.stored("a").GetUID())
	assert.Equal(t, "blue", o.stored("a").Object["spec"].(map[string]any)["color"])
	set.Kinds = []string{g.kind}
	assert.Len(t, o.apply(set).Unchanged, 1)
}

// An event is one object in two groups.
func TestApplyOwnedPrunesNothingThatItHasAppliedThroughAnotherGroup(t *testing.T) {
	o := newOwnedTest(t)
	o.others = foreign(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(o.ns)
	event := func(apiVersion, message, object, controller string) *kates.Unstructured {
		u := kates.NewUnstructured("Event", apiVersion)
		u.SetNamespace(o.ns)
		u.SetName("e")
		for key, value := range map[string]any{
			"type": "Normal", "reason": "Tested", "action": "Testing", "eventTime": "2026-01-01T00:00:00.000000Z",
			message: "m", object: map[string]any{"kind": "ConfigMap", "name": "x", "namespace": o.ns},
			controller: "kates.io/e2e", "reportingInstance": "i",
		} {
			u.Object[key] = value
		}
		return u
	}
	set := o.set(event("v1", "message", "involvedObject", "reportingComponent"))
	set.Kinds = []string{"events", "Event.v1.events.k8s.io"}
	first := set.Objects[0]
	o.apply(set)
	uid := o.stored("e").GetUID()
	for _, next := range []kates.Object{event("events.k8s.io/v1", "note", "regarding", "reportingController"), first} {
		set.Objects = []kates.Object{next}
		assert.Empty(t, o.apply(set).Pruned)
		require.NotNil(t, o.stored("e"))
		assert.Equal(t, uid, o.stored("e").GetUID())
	}
	set.Objects = nil
	assert.Len(t, o.apply(set).Pruned, 1)
	assert.Nil(t, o.stored("e"))
}

// A key of a Secret that is renamed must not leave a retired credential behind.
func TestApplyOwnedTakesAKeyOfStringDataAwayThatIsNoLongerWanted(t *testing.T) {
	o := newOwnedTest(t)
	o.others = foreign(t).Resource(secrets).Namespace(o.ns)
	apply := func(plain map[string]string) kates.OwnedResult {
		set := o.set(&corev1.Secret{ObjectMeta: named(o.ns, "login"), StringData: plain})
		set.Kinds = []string{"secrets"}
		return o.apply(set)
	}
	apply(map[string]string{"name": secrecy.Mark("a"), "password": secrecy.Mark("p")})
	assert.Len(t, apply(map[string]string{"name": secrecy.Mark("a"), "password": secrecy.Mark("p")}).Unchanged, 1)
	apply(map[string]string{"user": secrecy.Mark("a"), "password": secrecy.Mark("p")})
	data := o.stored("login").Object["data"].(map[string]any)
	assert.Equal(t, []string{"password", "user"}, slices.Sorted(maps.Keys(data)))
}
