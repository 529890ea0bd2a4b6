package kates_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var errImages = errors.New("it has too many images")

// runs is true of pods that have a container of an image: no selector can say that.
func runs(image string) kates.Where {
	return kates.WhereOf(func(p *kates.Pod) (bool, error) {
		if len(p.Spec.Containers) > 2 {
			return false, errImages
		}
		return slices.ContainsFunc(p.Spec.Containers, func(c kates.Container) bool { return c.Image == image }), nil
	})
}

// podOfImages has a container for each image.
func podOfImages(name string, images ...string) *kates.Pod {
	pod := fullPod(name, "n1")
	pod.Spec.Containers = nil
	for i, image := range images {
		pod.Spec.Containers = append(pod.Spec.Containers, kates.Container{Name: fmt.Sprint("c", i), Image: image})
	}
	return pod
}

func podNames(pods []*kates.Pod) string {
	var all []string
	for _, p := range pods {
		all = append(all, p.Name)
	}
	return strings.Join(all, " ")
}

// TestG4G8AWhereChoosesByWhatNoSelectorCan: on a fake and on a server, whole, projected, and in a
// struct of the program.
func TestG4G8AWhereChoosesByWhatNoSelectorCan(t *testing.T) {
	type images struct {
		Spec struct {
			Containers []struct {
				Image string `json:"image"`
			} `json:"containers"`
		} `json:"spec"`
	}
	ofStruct := kates.WhereOf(func(i *images) (bool, error) {
		if len(i.Spec.Containers) > 2 {
			return false, errImages
		}
		return len(i.Spec.Containers) > 0 && i.Spec.Containers[0].Image == "x", nil
	})
	for how, q := range map[string]kates.Query{
		"whole":     {Where: runs("x")},
		"projected": {Where: ofStruct, Projection: kates.Keep("spec.nodeName")},
	} {
		for name, c := range keepClients(t, podOfImages("in", "x", "y"), podOfImages("out", "y"), podOfImages("bad", "x", "y", "z")) {
			t.Run(how+" "+name, func(t *testing.T) {
				type pods struct {
					Pods    []*kates.Pod
					Invalid []kates.Invalid
				}
				q.Name = "Pods"
				s, err := kates.Watch[pods](t.Context(), c, q)
				require.NoError(t, err)
				defer s.Close()
				var snap pods
				next(t, s, &snap, func() bool { return true })
				assert.Equal(t, "in", podNames(snap.Pods))
				require.Len(t, snap.Invalid, 1)
				assert.ErrorIs(t, snap.Invalid[0].Err, errImages)
				assert.Equal(t, "bad", snap.Invalid[0].Object.GetName())
				require.NoError(t, c.Create(t.Context(), podOfImages("own", "x"), nil))
				require.NoError(t, c.Create(t.Context(), podOfImages("other", "z"), nil))
				_, err = s.Update(t.Context(), &snap)
				require.NoError(t, err)
				assert.Equal(t, "in own", podNames(snap.Pods), "the own write is judged, too")
			})
		}
	}
	type own struct {
		Pods []*images `kates:"pods"`
	}
	c := keepClients(t, podOfImages("in", "x"), podOfImages("out", "y"))["server"]
	s, err := kates.Watch[own](t.Context(), c, kates.Query{Name: "Pods", Where: ofStruct})
	require.NoError(t, err)
	defer s.Close()
	var snap own
	next(t, s, &snap, func() bool { return len(snap.Pods) == 1 })
	assert.Equal(t, "fields from protobuf", s.Status().Queries[0].Form)
}

func TestAWhereNarrowsListsListersPartitionsAndRefs(t *testing.T) {
	for name, c := range keepClients(t, podOfImages("in", "x"), podOfImages("out", "y")) {
		t.Run(name, func(t *testing.T) {
			q := kates.Query{Name: "Pods", Kind: "pods", Where: runs("x")}
			var list []*kates.Pod
			require.NoError(t, c.List(t.Context(), q, &list))
			assert.Equal(t, "in", podNames(list))

			lister, err := kates.NewLister[*kates.Pod](t.Context(), c, q)
			require.NoError(t, err)
			defer lister.Close()
			list, err = lister.List("", nil)
			require.NoError(t, err)
			assert.Equal(t, "in", podNames(list))
			_, err = lister.Get("default", "out")
			assert.True(t, kates.IsNotFound(err), "%v", err)

			type pods struct{ Pods []*kates.Pod }
			q.Key = kates.ByName
			p, err := kates.WatchEach[pods](t.Context(), c, q)
			require.NoError(t, err)
			defer p.Close()
			turn, err := p.Next(soon(t))
			require.NoError(t, err)
			assert.Equal(t, "in", turn.Key)
			turn.Done(nil)
			assert.Equal(t, []string{"in"}, p.Keys())

			type named struct {
				Pods  []*kates.Pod
				Named []*kates.Pod `kates:"pods"`
			}
			s, err := kates.Watch[named](t.Context(), c, kates.Query{Name: "Named", Where: runs("x"), Refs: []kates.Ref{
				kates.RefsOf("Pods", func(*kates.Pod) []types.NamespacedName { return []types.NamespacedName{{Name: "in"}, {Name: "out"}} }),
			}})
			require.NoError(t, err)
			defer s.Close()
			var snap named
			next(t, s, &snap, func() bool { return true })
			assert.Equal(t, "in out / in", podNames(snap.Pods)+" / "+podNames(snap.Named))
		})
	}
}

// TestDeleteAllDeletesWhatAWhereLetsInAndNothingIfItFails: nobody can say whether that object was
// meant.
func TestDeleteAllDeletesWhatAWhereLetsInAndNothingIfItFails(t *testing.T) {
	c := katestest.NewClient(t, podOfImages("in", "x"), podOfImages("out", "y"), podOfImages("bad", "x", "y", "z"))
	left := func() string {
		var list []*kates.Pod
		require.NoError(t, c.List(t.Context(), kates.Query{Kind: "pods"}, &list))
		return podNames(list)
	}
	q := kates.Query{Kind: "pods", Where: runs("x")}
	err := c.DeleteAll(t.Context(), q)
	assert.ErrorIs(t, err, errImages)
	assert.ErrorContains(t, err, `Pod "default/bad": where: it has too many images`)
	assert.Equal(t, "bad in out", left())
	q.FieldSelector = "metadata.name!=bad"
	require.NoError(t, c.DeleteAll(t.Context(), q))
	assert.Equal(t, "bad out", left())
}

func TestAWhereThatMayReadAnyFieldIsAnErrorWithAProjection(t *testing.T) {
	type pods struct{ Pods []*kates.Pod }
	_, err := kates.Watch[pods](t.Context(), katestest.NewClient(t), kates.Query{Name: "Pods", Where: runs("x"), Projection: kates.Keep("status.podIP")})
	assert.ErrorContains(t, err, "its Where may read any field, and its Projection holds some")
}

// TestG8WhatAWhereRejectsIsInvalidInItsPartition: whatever form its objects have, and whoever
// wrote it.
func TestG8WhatAWhereRejectsIsInvalidInItsPartition(t *testing.T) {
	type slim struct {
		Spec struct {
			Hostname string `json:"hostname"`
		} `json:"spec"`
	}
	type slims struct {
		Pods    []*slim `kates:"pods"`
		Invalid []kates.Invalid
	}
	inBubble(t, "", func(t *testing.T) {
		c := katestest.NewServer(t, katestest.WithObjects(fullPod("a", "n1"))).Client(t)
		p, err := kates.WatchEach[slims](t.Context(), c, kates.Query{Name: "Pods", Key: kates.ByLabel("app"), Where: kates.WhereOf(func(s *slim) (bool, error) {
			return true, errImages
		})})
		require.NoError(t, err)
		defer p.Close()
		for want := 1; want <= 2; want++ {
			turn, err := p.Next(soon(t))
			require.NoError(t, err)
			assert.Equal(t, "web", turn.Key)
			assert.Len(t, turn.Snapshot.Invalid, want)
			turn.Done(nil)
			if want == 1 {
				require.NoError(t, c.Create(t.Context(), fullPod("own", "n1"), nil))
			}
		}
	})
}

func TestAWhereOfAnotherKindIsAnError(t *testing.T) {
	type ingresses struct{ Ingresses []*networkingv1.Ingress }
	c := katestest.NewClient(t)
	_, err := kates.Watch[ingresses](t.Context(), c, kates.Query{Name: "Ingresses", Where: runs("x")})
	assert.ErrorContains(t, err, "the function of its Where takes a *v1.Pod")
	err = c.List(t.Context(), kates.Query{Kind: "services", Where: runs("x")}, &[]*kates.Service{})
	assert.ErrorContains(t, err, "the function of its Where takes a *v1.Pod")
}

// TestARunWithAWhereIsWokenByWhatIsIn: what stays out wakes nobody.
func TestARunWithAWhereIsWokenByWhatIsIn(t *testing.T) {
	c := katestest.NewClient(t, podOfImages("in", "x"), podOfImages("out", "y"))
	type pods struct{ Pods []*kates.Pod }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := make(chan string, 8)
	done := make(chan error, 1)
	go func() {
		done <- kates.Run(ctx, c, func(_ context.Context, s *pods) error {
			calls <- podNames(s.Pods)
			return nil
		}, kates.Query{Name: "Pods", Where: runs("x")}, kates.WithInterval(0))
	}()
	assert.Equal(t, "in", <-calls)
	require.NoError(t, c.Create(t.Context(), podOfImages("far", "z"), nil))
	require.NoError(t, c.Create(t.Context(), podOfImages("more", "x"), nil))
	assert.Equal(t, "in more", <-calls)
	cancel()
	require.NoError(t, <-done)
}
