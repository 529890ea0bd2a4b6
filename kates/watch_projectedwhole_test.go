package kates_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// piece is a part of a Pod in structs of which some have no JSON name of their own, or one that
// differs from the API's in letter case.
type piece struct {
	named `json:"metadata"`
	Spec  struct {
		Node       string `json:"nodename"`
		Containers []struct {
			Note string `json:"-"`
		} `json:"containers"`
	} `json:"spec"`
}

type named struct {
	Annotations map[string]string `json:"annotations"`
}

// TestAStructHasTheSameFieldsWhateverTheFunctionsBesideIt: what a function reads beside the
// struct's fields changes nothing of what the struct has.
func TestAStructHasTheSameFieldsWhateverTheFunctionsBesideIt(t *testing.T) {
	c := katestest.NewServer(t, katestest.WithObjects(fullPod("a", "n1"))).Client(t)
	for name, q := range map[string]kates.Query{
		"none":          {},
		"labels":        {Key: kates.ByLabel("app")},
		"a field":       {Key: kates.ByField("spec.nodeName")},
		"annotations":   {Key: kates.ByAnnotation("other")},
		"a generation":  {Signal: kates.GenerationChanged},
		"metadata":      {Signal: kates.SignalOf(func(_, _ metav1.Object) bool { return true })},
		"anything else": {Signal: kates.SignalOf(func(_, _ *kates.Pod) bool { return true })},
	} {
		t.Run(name, func(t *testing.T) {
			type pieces struct {
				Pods   []*piece `kates:"pods"`
				Deltas []*kates.Delta
			}
			q.Name = "Pods"
			if !q.Key.IsZero() { // only partitions take it
				p, err := kates.WatchEach[struct {
					Pods []*piece `kates:"pods"`
				}](t.Context(), c, q)
				require.NoError(t, err)
				defer p.Close()
				turn, err := p.Next(t.Context())
				require.NoError(t, err)
				defer turn.Done(nil)
				whole(t, turn.Snapshot.Pods)
				return
			}
			w, err := kates.Watch[pieces](t.Context(), c, q)
			require.NoError(t, err)
			defer w.Close()
			var snap pieces
			require.Eventually(t, func() bool {
				complete, err := w.Update(t.Context(), &snap)
				return err == nil && complete
			}, time.Minute, time.Millisecond)
			whole(t, snap.Pods)
			require.Len(t, snap.Deltas, 1)
			assert.False(t, snap.Deltas[0].CreationTimestamp.IsZero(), "of the delta")
		})
	}
}

func whole(t *testing.T, pods []*piece) {
	t.Helper()
	require.Len(t, pods, 1)
	assert.Equal(t, "b", pods[0].Annotations["other"])
	assert.Equal(t, "n1", pods[0].Spec.Node)
	assert.Len(t, pods[0].Spec.Containers, 2)
}

// TestAQueryThatIsReplacedHoldsWhatRefsRead: also where a function of the package comes with it.
func TestAQueryThatIsReplacedHoldsWhatRefsRead(t *testing.T) {
	type two struct {
		Maps  []*brief `kates:"configmaps"`
		Named []*brief `kates:"configmaps"`
	}
	named := &kates.ConfigMap{}
	named.Namespace, named.Name = "default", "b"
	naming := &kates.ConfigMap{}
	naming.Namespace, naming.Name, naming.Annotations = "default", "a", map[string]string{"names": "b"}
	c := katestest.NewServer(t, katestest.WithObjects(named, naming)).Client(t)
	ref := kates.RefsOf("Maps", func(cm *kates.ConfigMap) []types.NamespacedName {
		return []types.NamespacedName{{Name: cm.Annotations["names"]}}
	})
	w, err := kates.Watch[two](t.Context(), c, kates.Query{Name: "Named", Refs: []kates.Ref{ref}})
	require.NoError(t, err)
	defer w.Close()
	var snap two
	next(t, w, &snap, func() bool { return len(snap.Named) == 1 })
	require.NoError(t, w.Replace(t.Context(), kates.Query{Name: "Maps", LabelSelector: "!none", Signal: kates.GenerationChanged}))
	assert.Eventually(t, func() bool {
		_, err := w.Update(t.Context(), &snap)
		return err == nil && !w.Status().Queries[0].Changing
	}, time.Minute, time.Millisecond)
	require.Len(t, snap.Named, 1)
}

// recursive is a recursive type, as those of definitions are.
type recursive struct {
	Type  string      `json:"type"`
	AllOf []recursive `json:"allOf"`
	AnyOf []recursive `json:"anyOf"`
	OneOf []recursive `json:"oneOf"`
	Not   *recursive  `json:"not"`
}

func TestAStructOfARecursiveTypeIsWatched(t *testing.T) {
	type definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					Root recursive `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	c := katestest.NewServer(t).Client(t)
	for _, q := range []kates.Query{{Key: kates.ByLabel("x")}, {Key: kates.ByField("spec.group")}} {
		q.Name = "All"
		p, err := kates.WatchEach[struct {
			All []*definition `kates:"crd"`
		}](t.Context(), c, q)
		require.NoError(t, err)
		p.Close()
	}
}
