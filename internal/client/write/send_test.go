package write

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
	objects "github.com/kates-go/kates/internal/object"
)

// answered returns an object with which a server answers a write.
func answered(apiVersion, kind string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace("ns")
	u.SetName("x")
	u.SetUID("uid")
	u.SetResourceVersion("7")
	for _, f := range change {
		f(u)
	}
	return u
}

func deleted(u *unstructured.Unstructured) {
	now := metav1.Now()
	u.SetDeletionTimestamp(&now)
}

func finalizer(u *unstructured.Unstructured) { u.SetFinalizers([]string{"test/kept"}) }

func grace(seconds int64) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.SetDeletionGracePeriodSeconds(&seconds) }
}

func specFinalizer(u *unstructured.Unstructured) {
	_ = unstructured.SetNestedStringSlice(u.Object, []string{"kubernetes"}, "spec", "finalizers")
}

func TestG4EveryAnswerIsReadForWhatBecameOfTheObject(t *testing.T) {
	const gone, there = false, true
	for name, c := range map[string]struct {
		op      Operation
		answer  *unstructured.Unstructured
		there   bool
		version string
	}{
		"created":                                  {OpCreate, answered("v1", "ConfigMap"), there, "7"},
		"updated while terminating":                {OpUpdate, answered("v1", "ConfigMap", deleted, finalizer), there, "7"},
		"a Service, as it was before":              {OpDelete, answered("v1", "Service"), gone, ""},
		"a Pod of no grace, with its deletion":     {OpDelete, answered("v1", "Pod", deleted, grace(0)), gone, "7"},
		"a Pod with a grace period":                {OpDelete, answered("v1", "Pod", deleted, grace(30)), there, "7"},
		"deleted, and kept by a finalizer":         {OpDelete, answered("v1", "ConfigMap", deleted, finalizer), there, "7"},
		"the last finalizer removed, old version":  {OpPatch, answered("v1", "ConfigMap", deleted), gone, ""},
		"the last finalizer of a namespace":        {OpUpdate, answered("v1", "Namespace", deleted), gone, ""},
		"a namespace with finalizers of its own":   {OpUpdate, answered("v1", "Namespace", deleted, specFinalizer), there, "7"},
		"a custom Namespace that has such a field": {OpUpdate, answered("example.com/v1", "Namespace", deleted, specFinalizer), gone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := coherence.Write{Key: objects.Key{Namespace: "ns", Name: "x"}, UID: types.UID("uid"), Version: c.version}
			if c.there {
				want.Object = c.answer
			}
			assert.Equal(t, want, written(c.op, c.answer))
		})
	}
}
