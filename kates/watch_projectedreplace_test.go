package kates_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// TestG7AnotherFunctionBesideAStructChangesNoObject: what is held beside the struct is another part
// of the metadata then, and whoever reads the snapshot does not see that.
func TestG7AnotherFunctionBesideAStructChangesNoObject(t *testing.T) {
	type lites struct {
		Pods   []*podLite `kates:"pods"`
		Deltas []*kates.Delta
	}
	synctest.Test(t, func(t *testing.T) {
		c := katestest.NewServer(t, katestest.WithObjects(fullPod("a", "n1"), fullPod("b", "n1"))).Client(t)
		w, err := kates.Watch[lites](t.Context(), c, kates.Query{Name: "Pods", Signal: kates.GenerationChanged})
		require.NoError(t, err)
		var snap lites
		next(t, w, &snap, func() bool { return len(snap.Pods) == 2 })
		before := snap.Pods
		require.NoError(t, w.Replace(t.Context(), kates.Query{Name: "Pods", Signal: kates.AnnotationsChanged}))
		time.Sleep(time.Minute)
		synctest.Wait()
		changed, err := w.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.False(t, changed)
		assert.False(t, w.Status().Queries[0].Changing)
		assert.Empty(t, snap.Deltas)
		assert.Same(t, before[0], snap.Pods[0])
	})
}

// TestAnotherKeyBesideAStructReadsWhatItNeeds: of objects that stay as they are, too.
func TestAnotherKeyBesideAStructReadsWhatItNeeds(t *testing.T) {
	type lites struct {
		Pods []*podLite `kates:"pods"`
	}
	synctest.Test(t, func(t *testing.T) {
		c := katestest.NewServer(t, katestest.WithObjects(fullPod("a", "n1"), fullPod("b", "n1"))).Client(t)
		p, err := kates.WatchEach[lites](t.Context(), c, kates.Query{Name: "Pods", Key: kates.ByName})
		require.NoError(t, err)
		defer p.Close()
		turns := func() (keys []string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for {
				turn, err := p.Next(ctx)
				if err != nil {
					return keys
				}
				keys = append(keys, fmt.Sprint(turn.Key, " ", len(turn.Snapshot.Pods)))
				turn.Done(nil)
			}
		}
		assert.ElementsMatch(t, []string{"a 1", "b 1"}, turns())
		require.NoError(t, p.Replace(t.Context(), kates.Query{Name: "Pods", Key: kates.ByName, Signal: kates.AnnotationsChanged}))
		assert.Empty(t, turns(), "nothing has changed")
		require.NoError(t, p.Replace(t.Context(), kates.Query{Name: "Pods", Key: kates.ByAnnotation("other")}))
		assert.ElementsMatch(t, []string{"a 0", "b 2"}, turns(), "both have the annotation")
	})
}

// TestAnObjectLeavesItsPartitionWithItsLastAnnotationOrOwner: the struct has neither.
func TestAnObjectLeavesItsPartitionWithItsLastAnnotationOrOwner(t *testing.T) {
	type lites struct {
		Pods []*podLite `kates:"pods"`
	}
	for name, of := range map[string]struct {
		key                 kates.Key
		at, gone, again, to string
	}{
		"annotation": {kates.ByAnnotation("other"), "b", `{"metadata":{"annotations":null}}`, `{"metadata":{"annotations":{"other":"c"}}}`, "c"},
		"owner": {
			kates.ByOwner("ReplicaSet"), "default/rs", `{"metadata":{"ownerReferences":null}}`,
			`{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"other","uid":"o","controller":true}]}}`, "default/other",
		},
		"label": {kates.ByLabel("app"), "web", `{"metadata":{"labels":null}}`, `{"metadata":{"labels":{"app":"c"}}}`, "c"},
	} {
		synctest.Test(t, func(t *testing.T) {
			pod := fullPod("a", "n1")
			pod.Annotations = map[string]string{"other": "b"}
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "u", Controller: new(true)}}
			c := katestest.NewServer(t, katestest.WithoutControllers(), katestest.WithObjects(pod)).Client(t)
			p, err := kates.WatchEach[lites](t.Context(), c, kates.Query{Name: "Pods", Key: of.key})
			require.NoError(t, err)
			defer p.Close()
			take := func() string {
				turn, err := p.Next(t.Context())
				require.NoError(t, err)
				defer turn.Done(nil)
				return fmt.Sprint(turn.Key, " ", len(turn.Snapshot.Pods))
			}
			assert.Equal(t, of.at+" 1", take(), name)
			require.Equal(t, "fields from protobuf", p.Status().Queries[0].Form)
			require.NoError(t, c.Patch(t.Context(), pod, kates.MergePatchType, []byte(of.gone), nil))
			assert.Equal(t, of.at+" 0", take(), "it has left: %s", name)
			require.NoError(t, c.Patch(t.Context(), pod, kates.MergePatchType, []byte(of.again), nil))
			assert.Equal(t, of.to+" 1", take(), name)
		})
	}
}

// picky does not decode from one text.
type picky string

func (p *picky) UnmarshalText(text []byte) error {
	if *p = picky(text); *p == "bad" {
		return errors.New("bad")
	}
	return nil
}

// TestG8AnObjectThatDoesNotDecodeIsInvalidInThePartitionOfItsOwner: also when the owner changes.
func TestG8AnObjectThatDoesNotDecodeIsInvalidInThePartitionOfItsOwner(t *testing.T) {
	type maps struct {
		Maps    []*struct{ Data map[string]picky } `kates:"configmaps"`
		Invalid []kates.Invalid
	}
	owned := func(name, data, owner string) *kates.ConfigMap {
		return &kates.ConfigMap{
			ObjectMeta: kates.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Service", Name: owner, UID: "u", Controller: new(true)},
			}},
			Data: map[string]string{"k": data},
		}
	}
	for name, key := range map[string]kates.Key{"of the library": kates.ByOwner("Service"), "of one's own": kates.KeyOf(
		func(o metav1.Object) []string {
			return []string{o.GetNamespace() + "/" + metav1.GetControllerOf(o).Name}
		})} {
		inBubble(t, name, func(t *testing.T) {
			c := katestest.NewServer(t, katestest.WithoutControllers(),
				katestest.WithObjects(owned("a", "v", "x"), owned("born", "bad", "x"))).Client(t)
			p, err := kates.WatchEach[maps](t.Context(), c, kates.Query{Name: "Maps", Key: key})
			require.NoError(t, err)
			defer p.Close()
			invalid := map[string][]string{}
			take := func(n int) {
				for range n {
					turn, err := p.Next(soon(t))
					require.NoError(t, err, "nobody has a turn")
					var names []string
					for _, i := range turn.Snapshot.Invalid {
						names = append(names, i.Object.GetName())
					}
					invalid[turn.Key] = names
					turn.Done(nil)
				}
			}
			take(1)
			assert.Equal(t, map[string][]string{"default/x": {"born"}}, invalid)
			require.NoError(t, c.Upsert(t.Context(), owned("a", "bad", "y"), owned("a", "bad", "y"), nil))
			take(2)
			assert.Equal(t, map[string][]string{"default/x": {"born"}, "default/y": {"a"}}, invalid)
		})
	}
}

// TestAListThatIsNoLongerThereIsNil: one that is empty is not.
func TestAListThatIsNoLongerThereIsNil(t *testing.T) {
	type host struct {
		Spec struct {
			Names []string `json:"names"`
		} `json:"spec"`
	}
	type hosts struct {
		Hosts []*host `kates:"hosts.example.com"`
	}
	synctest.Test(t, func(t *testing.T) {
		c := katestest.NewServer(t, katestest.WithoutControllers(),
			katestest.WithKinds(katestest.Kind{APIVersion: "example.com/v1", Kind: "Host"})).Client(t)
		u := kates.NewUnstructured("Host", "example.com/v1")
		u.SetNamespace("default")
		u.SetName("h")
		u.Object["spec"] = map[string]any{"names": []any{}}
		require.NoError(t, c.Create(t.Context(), u, u))
		w, err := kates.Watch[hosts](t.Context(), c)
		require.NoError(t, err)
		var snap hosts
		next(t, w, &snap, func() bool { return len(snap.Hosts) == 1 })
		assert.NotNil(t, snap.Hosts[0].Spec.Names)
		u.Object["spec"] = map[string]any{}
		require.NoError(t, c.Update(t.Context(), u, u))
		_, err = w.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.Nil(t, snap.Hosts[0].Spec.Names)
	})
}

// TestATransformOfWholeObjectsIsThereWhereRefsNeedThese: of a query that is replaced, too.
func TestATransformOfWholeObjectsIsThereWhereRefsNeedThese(t *testing.T) {
	type two struct {
		Maps  []*brief `kates:"configmaps"`
		Named []*brief `kates:"configmaps"`
	}
	synctest.Test(t, func(t *testing.T) {
		c := katestest.NewServer(t).Client(t, kates.WithTransform(kates.DropManagedFields))
		cm := &kates.ConfigMap{Data: map[string]string{"k": "v"}}
		cm.Namespace, cm.Name = "default", "a"
		require.NoError(t, c.Create(t.Context(), cm, nil))
		managed := 0
		ref := kates.RefsOf("Maps", func(cm *kates.ConfigMap) []types.NamespacedName {
			managed += len(cm.ManagedFields)
			return nil
		})
		w, err := kates.Watch[two](t.Context(), c, kates.Query{Name: "Named", Refs: []kates.Ref{ref}})
		require.NoError(t, err)
		var snap two
		next(t, w, &snap, func() bool { return len(snap.Maps) >= 1 })
		require.NoError(t, w.Replace(t.Context(), kates.Query{Name: "Maps", LabelSelector: "!none"}))
		time.Sleep(time.Minute)
		synctest.Wait()
		_, err = w.Update(t.Context(), &snap)
		require.NoError(t, err)
		assert.False(t, w.Status().Queries[0].Changing)
		assert.Zero(t, managed)
	})
}
