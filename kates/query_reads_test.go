package kates_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// TestAFunctionOnMetadataHasTheGenerationBesideAStruct: of the objects some fields are held.
func TestAFunctionOnMetadataHasTheGenerationBesideAStruct(t *testing.T) {
	pod := fullPod("a", "n1")
	pod.Finalizers = []string{"example.com/f"}
	c := katestest.NewServer(t, katestest.WithObjects(pod)).Client(t)
	type pods struct {
		Pods []*hosted `kates:"pods"`
	}
	seen := make(chan metav1.Object, 10)
	p, err := kates.WatchEach[pods](t.Context(), c, kates.Query{Name: "Pods", Key: kates.KeyOf(func(o metav1.Object) []string {
		seen <- o
		return []string{"all"}
	})})
	require.NoError(t, err)
	defer p.Close()
	turn, err := p.Next(soon(t))
	require.NoError(t, err)
	turn.Done(nil)
	assert.Equal(t, "fields from protobuf", p.Status().Queries[0].Form)
	o := <-seen
	assert.Equal(t, int64(1), o.GetGeneration())
	assert.Equal(t, []string{"example.com/f"}, o.GetFinalizers())
	assert.Equal(t, map[string]string{"app": "web"}, o.GetLabels())
}

// nodeOf has no JSON tags: encoding/json finds the fields whatever their letter case.
type nodeOf struct {
	Spec   struct{ NodeName string }
	Absent string
}

// TestAProjectionHoldsWhatAStructWithoutTagsReads: where the Go type of the kind says what its
// fields are called. A field that the kind lacks is not there, and no mistake of the Projection.
func TestAProjectionHoldsWhatAStructWithoutTagsReads(t *testing.T) {
	key := kates.KeyOf(func(n *nodeOf) []string { return []string{n.Spec.NodeName} })
	for name, c := range keepClients(t, fullPod("a", "n1")) {
		type pods struct{ Pods []*kates.Pod }
		p, err := kates.WatchEach[pods](t.Context(), c, kates.Query{Name: "Pods", Projection: kates.Keep("status.podIP"), Key: key})
		require.NoError(t, err, name)
		turn, err := p.Next(soon(t))
		require.NoError(t, err, name)
		assert.Equal(t, "n1", turn.Key, name)
		turn.Done(nil)
		p.Close()

		type untyped struct {
			Pods []*kates.Unstructured `kates:"pods"`
		}
		_, err = kates.WatchEach[untyped](t.Context(), c, kates.Query{Name: "Pods", Projection: kates.Keep("status.podIP"), Key: key})
		assert.ErrorContains(t, err, "its Key takes a *kates_test.nodeOf, whose field Spec.NodeName has no JSON tag", name)
	}
}

// TestAFunctionDoesNotMakeAPartOfAnObjectLookWhole: Update would take it, and lose the rest.
func TestAFunctionDoesNotMakeAPartOfAnObjectLookWhole(t *testing.T) {
	type created struct {
		Metadata struct {
			CreationTimestamp metav1.Time `json:"creationTimestamp"`
		} `json:"metadata"`
	}
	type pods struct{ Pods []*kates.Pod }
	c := katestest.NewClient(t, fullPod("a", "n1"))
	for _, key := range []kates.Key{
		kates.KeyOf(func(*created) []string { return nil }), kates.ByField("metadata.creationTimestamp"),
	} {
		q := kates.Query{Name: "Pods", Projection: kates.Keep("spec.nodeName"), Key: key}
		_, err := kates.WatchEach[pods](t.Context(), c, q)
		assert.ErrorContains(t, err, "reads metadata.creationTimestamp, which makes a part of an object look whole: name it in the Projection")
		q.Projection = kates.Keep("spec.nodeName", "metadata.creationTimestamp")
		p, err := kates.WatchEach[pods](t.Context(), c, q)
		require.NoError(t, err)
		p.Close()
	}
}

// TestAFunctionOfAnotherKindIsAnErrorWhereTheFieldDoesNotSayItsKind: the server does.
func TestAFunctionOfAnotherKindIsAnErrorWhereTheFieldDoesNotSayItsKind(t *testing.T) {
	type services struct {
		Services []map[string]any `kates:"services"`
	}
	ofPods := kates.TransformOf(func(*corev1.Pod) error { return nil })
	c := katestest.NewClient(t)
	_, err := kates.Watch[services](t.Context(), c.With(kates.WithTransform(ofPods)))
	assert.ErrorContains(t, err, `the function of WithTransform takes a *v1.Pod, but the objects of "Services" are of kind Service`)
	_, err = c.Watch(t.Context(), kates.Query{Name: "Services", Kind: "services", Transform: ofPods})
	assert.ErrorContains(t, err, "the function of its Transform takes a *v1.Pod")
}

func TestKeysAreThoseThatAWatchTakes(t *testing.T) {
	keys := func(all ...string) []string {
		got, err := kates.KeyOf(func(metav1.Object) []string { return all }).Keys(configMap("a"))
		require.NoError(t, err)
		return got
	}
	assert.Equal(t, []string{"a", "b"}, keys("b", "", "a", "b"))
	assert.Empty(t, keys(""))
	assert.Equal(t, []string{kates.EveryPartition}, keys("a", kates.EveryPartition))
	all, err := kates.Key{}.Keys(configMap("a"))
	require.NoError(t, err)
	assert.Equal(t, []string{kates.EveryPartition}, all, "in a query without a Key")
}

func TestZeroFunctionsAreNone(t *testing.T) {
	assert.True(t, kates.Key{}.IsZero() && kates.Signal{}.IsZero() && kates.Transform{}.IsZero() && kates.Where{}.IsZero())
	assert.False(t, kates.ByName.IsZero() || kates.LabelsChanged.IsZero() || kates.DropManagedFields.IsZero())
	cm := configMap("a")
	cm.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	require.NoError(t, kates.Transforms(kates.Transform{}, kates.DropManagedFields).Apply(cm))
	assert.Empty(t, cm.ManagedFields)
	require.NoError(t, kates.Transform{}.Apply(cm))
	for _, s := range []kates.Signal{{}, kates.AnySignal(kates.LabelsChanged, kates.Signal{})} {
		yes, err := s.Worth(cm, cm)
		require.NoError(t, err)
		assert.True(t, yes, "every change is")
	}
	in, err := kates.Where{}.Selects(cm)
	require.NoError(t, err)
	assert.True(t, in)
}

func TestATransformThatWouldLoseFieldsIsRefused(t *testing.T) {
	type named map[string]any
	type maps struct{ ConfigMaps []*kates.ConfigMap }
	c := katestest.NewClient(t)
	for text, transform := range map[string]kates.Transform{
		"takes a map[string]any, and not a kates_test.named": kates.TransformOf(func(named) error { return nil }),
		"and the others would be lost":                       kates.TransformOf(func(*hosted) error { return nil }),
		"is a copy":                                          kates.TransformOf(func(kates.ConfigMap) error { return nil }),
	} {
		_, err := kates.Watch[maps](t.Context(), c, kates.Query{Name: "ConfigMaps", Transform: transform})
		assert.ErrorContains(t, err, text)
	}
	_, err := kates.Watch[maps](t.Context(), c, kates.Query{Name: "ConfigMaps", Signal: kates.SignalOf(func(_, _ kates.ConfigMap) bool { return true })})
	assert.ErrorContains(t, err, "its argument can be nil: a pointer, a map or a metav1.Object; a v1.ConfigMap cannot")
}
