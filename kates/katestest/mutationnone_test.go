package katestest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// remembering fills a field of its own when it is read.
type remembering struct {
	Data  map[string]string `json:"data"`
	total int
}

func (r *remembering) size() int {
	if r.total == 0 {
		r.total = len(r.Data)
	}
	return r.total
}

func TestTheDetectorFindsNothingInAProgramThatWritesToItsOwn(t *testing.T) {
	type snap struct {
		ConfigMaps []*corev1.ConfigMap
		Pods       []*corev1.Pod
		Own        []*remembering   `kates:"configmaps"`
		Untyped    []map[string]any `kates:"configmaps"`
		Deltas     []*kates.Delta
	}
	replace := kates.TransformOf(func(o metav1.Object) error { // it may write to it
		o.SetLabels(map[string]string{"transformed": o.GetName()})
		return nil
	})
	errors := doors(t, func(t *testing.T, fake *katestest.Fake) {
		require.NoError(t, fake.Client.Create(t.Context(), podOf("a", "1500m"), nil))
		update := watched[snap](t, fake.Client, kates.Query{Name: "Untyped", Transform: replace})
		lister, err := kates.NewLister[*kates.Unstructured](t.Context(), fake.Client, kates.Query{Kind: "cm"})
		require.NoError(t, err)
		for i := range 5 {
			s := update()
			s.ConfigMaps[0].DeepCopy().Data["a"] = "x"
			sorted := slices.Clone(s.ConfigMaps)
			slices.Reverse(sorted)
			s.ConfigMaps = append(s.ConfigMaps, configMap("mine"))
			s.ConfigMaps[0] = nil // append has made another slice
			s.Pods, s.Untyped = s.Pods[:0], nil
			for _, d := range s.Deltas {
				d.Name, d.Labels = "x", map[string]string{}
			}
			s.Own[0].size()
			_, err := kates.Modify(t.Context(), fake.Client, sorted[1], func(c *corev1.ConfigMap) error {
				c.Data["a"] = fmt.Sprint(i)
				return nil
			})
			require.NoError(t, err)
			require.NoError(t, fake.Client.Upsert(t.Context(), nil, podOf("a", fmt.Sprintf("%dm", i+1)), nil))
			require.NoError(t, fake.Client.Delete(t.Context(), sorted[0], nil))
			require.NoError(t, fake.Client.Create(t.Context(), configMap(sorted[0].Name), nil))
			all, err := lister.List("prod", nil)
			require.NoError(t, err)
			all[0] = all[0].DeepCopy()
			all[0].SetLabels(nil)
		}
	})
	assert.Empty(t, errors)
}

func podOf(name, cpu string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = "prod", name
	pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}}}
	return pod
}

// TestTheDetectorRacesWithNobodyWhoReads is for the race detector.
func TestTheDetectorRacesWithNobodyWhoReads(t *testing.T) {
	errors := doors(t, func(t *testing.T, fake *katestest.Fake) {
		ctx, cancel := context.WithCancel(t.Context())
		read := func(values ...any) {
			_, err := json.Marshal(values)
			assert.NoError(t, err)
		}
		var readers sync.WaitGroup
		for range 2 {
			snapshots, err := kates.Watch[cmSnap](ctx, fake.Client)
			require.NoError(t, err)
			lister, err := kates.NewLister[*corev1.ConfigMap](ctx, fake.Client, kates.Query{})
			require.NoError(t, err)
			readers.Go(func() {
				var behind sync.WaitGroup
				for s, err := range snapshots.All(ctx) {
					assert.NoError(t, err)
					behind.Go(func() { read(s) }) // while the next snapshot is made
					all, err := lister.List("", nil)
					assert.NoError(t, err)
					read(all)
				}
				behind.Wait()
			})
			readers.Go(func() {
				assert.NoError(t, kates.RunEach(ctx, fake.Client, func(_ context.Context, _ string, s *cmSnap) error {
					read(s)
					return nil
				}, kates.Query{Name: "ConfigMaps", Key: kates.ByName}, kates.WithWorkers(2)))
			})
		}
		for i := range 20 {
			touch(t, fake, "a", fmt.Sprint(i))
		}
		synctest.Wait()
		cancel()
		readers.Wait()
	})
	assert.Empty(t, errors)
}
