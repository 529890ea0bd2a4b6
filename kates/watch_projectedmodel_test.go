package kates_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// podLite has what a program may want of a pod.
type podLite struct {
	Metadata struct {
		Name    string            `json:"name"`
		UID     string            `json:"uid"`
		Version string            `json:"resourceVersion"`
		Labels  map[string]string `json:"labels"`
		Deleted *metav1.Time      `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		NodeName   string `json:"nodeName"`
		Containers []struct {
			Image     string `json:"image"`
			Resources struct {
				Limits map[string]string `json:"limits"`
			} `json:"resources"`
		} `json:"containers"`
		Grace *int64 `json:"terminationGracePeriodSeconds"`
	} `json:"spec"`
	Status struct {
		Phase corev1.PodPhase `json:"phase"`
		PodIP string          `json:"podIP"`
	} `json:"status"`
}

type projectedPods struct {
	Lite   []*podLite `kates:"pods"`
	Values []podLite  `kates:"pods"`
	Some   []*podLite `kates:"pods"`
	Either []*podLite `kates:"pods"`
	Web    []*podLite `kates:"pods"`
	ByName map[string]*podLite
	Lookup kates.Lookup[*podLite] `kates:"pods"`
	Whole  []*kates.Pod
	Deltas []*kates.Delta
}

var byPhase = kates.KeyOf(func(p *podLite) []string { return []string{string(p.Status.Phase)} })

// picked is what a struct has of whole objects.
func picked(t *testing.T, whole []*kates.Pod, selected func(*kates.Pod) bool) []*podLite {
	t.Helper()
	all := []*podLite{}
	for _, p := range whole {
		if !selected(p) {
			continue
		}
		text, err := json.Marshal(p)
		require.NoError(t, err)
		var lite podLite
		require.NoError(t, json.Unmarshal(text, &lite))
		all = append(all, &lite)
	}
	return all
}

func randomPod(r *rand.Rand, name string) *kates.Pod {
	p := &kates.Pod{TypeMeta: kates.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: kates.ObjectMeta{Namespace: "default", Name: name}}
	p.Labels = map[string]string{"app": []string{"web", "db"}[r.IntN(2)], "v": fmt.Sprint(r.IntN(3))}
	p.Spec.NodeName = []string{"", "node-1", "node-2"}[r.IntN(3)]
	for range 1 + r.IntN(2) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "c", Image: []string{"a:1", "b:2"}[r.IntN(2)]})
	}
	return p
}

// projectedStep changes one pod, by a client, or restarts the watches.
func projectedStep(t *testing.T, r *rand.Rand, c *kates.Client, s *katestest.Server, whole []*kates.Pod) {
	t.Helper()
	ctx, n := t.Context(), r.IntN(10)
	if len(whole) == 0 || n < 3 {
		_ = c.Create(ctx, randomPod(r, fmt.Sprintf("pod-%d", r.IntN(12))), nil) // it may be there
		return
	}
	o := &kates.Pod{TypeMeta: kates.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: kates.ObjectMeta{Namespace: "default", Name: whole[r.IntN(len(whole))].Name}}
	patch := func(text string) { require.NoError(t, c.Patch(ctx, o, kates.MergePatchType, []byte(text), nil)) }
	switch n {
	case 3, 4:
		patch(fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, r.IntN(100))) // nothing of it is held
	case 5:
		patch(fmt.Sprintf(`{"metadata":{"labels":{"app":"%s"}}}`, []string{"web", "db"}[r.IntN(2)]))
	case 6, 7:
		_, err := kates.ModifyStatus(ctx, c, o, func(p *kates.Pod) error {
			p.Status.Phase, p.Status.PodIP = []corev1.PodPhase{"Pending", "Running", "Failed"}[r.IntN(3)], "10.0.0.1"
			return nil
		})
		require.NoError(t, err)
	case 8:
		require.NoError(t, c.Delete(ctx, o, nil))
	case 9:
		s.Compact()
		time.Sleep(time.Minute) // of the bubble: watches end, and streams list again
		synctest.Wait()
	}
}

// TestG4G5G7AProjectionIsWhatAStructHasOfTheWholeObject: after each of many random steps. Own
// writes are in the very next snapshot, those of others when their events are there.
func TestG4G5G7AProjectionIsWhatAStructHasOfTheWholeObject(t *testing.T) {
	for _, seed := range rounds.Some([]uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			s := katestest.NewServer(t)
			mine, theirs := s.Client(t, kates.WithInterval(0)), s.Client(t)
			w, err := kates.Watch[projectedPods](t.Context(), mine, kates.Query{Name: "Some", LabelSelector: "app=web"}, kates.Query{Name: "ByName", Kind: "pods", Namespace: "default"},
				kates.Query{Name: "Either", AnyOf: []kates.Selection{{LabelSelector: "app=web"}, {LabelSelector: "v=1"}}},
				kates.Query{Name: "Web", NamespaceSelector: "kubernetes.io/metadata.name=default", LabelSelector: "app in (web)", Key: byPhase})
			require.NoError(t, err)
			synctest.Wait()
			var snap projectedPods
			shown := map[string]string{}
			for range 60 {
				who := mine
				if r.IntN(2) == 0 {
					who = theirs
				}
				if projectedStep(t, r, who, s, snap.Whole); who == theirs {
					synctest.Wait()
				}
				_, err := w.Update(t.Context(), &snap)
				require.NoError(t, err)
				checkProjected(t, &snap)
				follow(t, shown, &snap)
			}
			for _, q := range w.Status().Queries {
				switch q.Name {
				case "Whole":
				case "Either":
					assert.Empty(t, q.Form, "a union judges by all of its selectors")
				default:
					assert.Equal(t, "fields from protobuf", q.Form, q.Name)
				}
			}
		})
	}
}

// checkProjected compares each form of a field with the whole objects.
func checkProjected(t *testing.T, snap *projectedPods) {
	t.Helper()
	all := picked(t, snap.Whole, func(*kates.Pod) bool { return true })
	require.Equal(t, all, snap.Lite)
	require.Len(t, snap.Values, len(all))
	require.Len(t, snap.ByName, len(all))
	for i, want := range all {
		require.Equal(t, *want, snap.Values[i])
		require.Equal(t, want, snap.ByName[want.Metadata.Name])
		got, err := snap.Lookup.Get("default", want.Metadata.Name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	web := picked(t, snap.Whole, func(p *kates.Pod) bool { return p.Labels["app"] == "web" })
	require.Equal(t, web, snap.Some)
	require.Equal(t, web, snap.Web)
}

// follow applies the deltas of a query to what was shown before: that is what is shown now.
func follow(t *testing.T, shown map[string]string, snap *projectedPods) {
	t.Helper()
	for _, d := range snap.Deltas {
		switch {
		case d.Query != "Lite":
		case d.DeltaType == kates.ObjectDelete:
			delete(shown, d.Name)
		default:
			require.Equal(t, "v1/Pod", d.APIVersion+"/"+d.Kind)
			require.False(t, d.CreationTimestamp.IsZero())
			shown[d.Name] = string(d.UID) + "@" + d.ResourceVersion
		}
	}
	now := map[string]string{}
	for _, o := range snap.Lite {
		now[o.Metadata.Name] = o.Metadata.UID + "@" + o.Metadata.Version
	}
	require.Equal(t, now, shown)
}
