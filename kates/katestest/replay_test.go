package katestest_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// recorded is a recording from a real API server: see e2e/cmd/recordings.
func recorded(name string) string {
	return filepath.Join("..", "..", "testdata", "recordings", name+".recording")
}

type workload struct {
	Deployments []*appsv1.Deployment
	ReplicaSets []*appsv1.ReplicaSet
	Pods        []*corev1.Pod
	Nodes       []*corev1.Node
	Deltas      []*kates.Delta
}

// follow watches a workload of a namespace.
func follow[S any](t *testing.T, config *rest.Config, namespace string) *kates.Snapshots[S] {
	t.Helper()
	client, err := kates.NewClientFromRESTConfig(config)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	s, err := kates.Watch[S](t.Context(), client,
		kates.Query{Name: "Deployments", Namespace: namespace}, kates.Query{Name: "ReplicaSets", Namespace: namespace},
		kates.Query{Name: "Pods", Namespace: namespace}, kates.Query{Name: "Nodes", LabelSelector: "rollouts=" + namespace})
	require.NoError(t, err)
	return s
}

// next is the next snapshot as JSON, with its deltas, once everything that came is taken in. It is
// "" if nothing has changed.
func next[S any](t *testing.T, from *kates.Snapshots[S]) (string, *S) {
	t.Helper()
	synctest.Wait()
	s := new(S)
	changed, err := from.Update(t.Context(), s)
	require.NoError(t, err)
	if !changed {
		return "", s
	}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	return string(text), s
}

func TestG7G9AReplayGivesTheSameSnapshotsAndDeltasAtEverySpeed(t *testing.T) {
	for name, moments := range map[string]int{"rollout": 300, "drain": 50} {
		steps := map[string]func(*katestest.Player, time.Duration){
			"step by step": func(p *katestest.Player, _ time.Duration) { p.Step() },
			"by positions": func(p *katestest.Player, at time.Duration) { p.To(at) },
			"at its pace":  func(p *katestest.Player, at time.Duration) { time.Sleep(at - p.At()) },
			"half as fast": func(p *katestest.Player, at time.Duration) { time.Sleep(2 * (at - p.At())) },
		}
		speeds := map[string]float64{"at its pace": 1, "half as fast": 0.5}
		if name == "rollout" { // it is long
			delete(steps, "by positions")
			delete(steps, "half as fast")
		}
		runs := map[string][][sha256.Size]byte{}
		for how, step := range steps {
			synctest.Test(t, func(t *testing.T) {
				p := katestest.Replay(t, recorded(name), katestest.Speed(speeds[how]))
				s := follow[workload](t, p.Config(), name)
				first, _ := next(t, s)
				run := [][sha256.Size]byte{sha256.Sum256([]byte(first))}
				for _, at := range p.Moments() {
					step(p, at)
					require.Equal(t, at, p.At())
					text, _ := next(t, s)
					run = append(run, sha256.Sum256([]byte(text)))
				}
				assert.False(t, p.Step())
				runs[how] = run
			})
		}
		require.Greater(t, len(runs["at its pace"]), moments)
		for how := range steps {
			require.Len(t, runs[how], len(runs["at its pace"]))
			for n := range runs[how] {
				require.Equal(t, runs["at its pace"][n], runs[how][n], "snapshot %d of %s, %s", n, name, how)
			}
		}
	}
}

func TestG7G9TheFastestReplayEndsWithTheSameSnapshotAndDeltas(t *testing.T) {
	ends := map[float64]string{}
	for _, speed := range []float64{1, 1000, katestest.Fastest, katestest.Stopped} {
		synctest.Test(t, func(t *testing.T) {
			p := katestest.Replay(t, recorded("rollout"), katestest.Speed(katestest.Stopped))
			s := follow[workload](t, p.Config(), "rollout")
			first, _ := next(t, s)
			require.NotEmpty(t, first)
			p.SetSpeed(speed)
			if speed == katestest.Stopped {
				p.To(time.Hour)
			}
			require.NoError(t, p.Wait(t.Context()))
			ends[speed], _ = next(t, s)
			require.NotEmpty(t, ends[speed])
		})
	}
	for speed, end := range ends {
		assert.Equal(t, ends[1], end, "speed %v", speed)
	}
}

func TestThroughARecordedRolloutEachSnapshotIsCoherent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := katestest.Replay(t, recorded("rollout"), katestest.Speed(katestest.Stopped))
		s := follow[workload](t, p.Config(), "rollout")
		_, last := next(t, s)
		images := func(w *workload, image string) (n int) {
			for _, pod := range w.Pods {
				if pod.Spec.Containers[0].Image == image {
					n++
				}
			}
			return n
		}
		require.Equal(t, 50, images(last, "web:1"))
		for p.Step() {
			text, w := next(t, s)
			if text == "" {
				continue // a bookmark
			}
			require.Len(t, w.Deployments, 1)
			require.Len(t, w.Nodes, 3)
			owners, nodes := map[string]bool{}, map[string]bool{"": true}
			for _, r := range w.ReplicaSets {
				owners[r.Name] = true
			}
			for _, n := range w.Nodes {
				nodes[n.Name] = true
			}
			require.True(t, len(w.Pods) >= 50 && len(w.Pods) <= 63, "%d pods at %s", len(w.Pods), p.At())
			for _, pod := range w.Pods {
				require.True(t, owners[pod.OwnerReferences[0].Name], "the owner of %s is shown", pod.Name)
				require.True(t, nodes[pod.Spec.NodeName], "the node of %s is shown", pod.Name)
			}
			if d := w.Deployments[0]; d.Spec.Template.Spec.Containers[0].Image == "web:1" {
				require.Zero(t, images(w, "web:2"))
			} else if d.Status.UpdatedReplicas < 50 {
				require.LessOrEqual(t, int(d.Status.UpdatedReplicas), images(w, "web:2"))
			}
			last = w
		}
		assert.Equal(t, 50, images(last, "web:2"))
		assert.Equal(t, int32(50), last.Deployments[0].Status.UpdatedReplicas)
	})
}

func TestUntypedAndOtherClientsReadWhatATypedOneRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := katestest.Replay(t, recorded("drain"), katestest.Speed(katestest.Stopped))
		type untyped struct {
			Deployments []map[string]any             `kates:"deployments.apps"`
			ReplicaSets []map[string]any             `kates:"replicasets.apps"`
			Pods        []*unstructured.Unstructured `kates:"pods"`
			Nodes       []*corev1.Node
		}
		s := follow[untyped](t, p.Config(), "drain")
		_, first := next(t, s)
		require.Len(t, first.Pods, 12)

		api, err := kubernetes.NewForConfig(p.Config())
		require.NoError(t, err)
		factory := informers.NewSharedInformerFactoryWithOptions(api, 0, informers.WithNamespace("drain"))
		pods := factory.Core().V1().Pods()
		pods.Informer()
		ctx, cancel := context.WithCancel(t.Context())
		factory.StartWithContext(ctx)
		defer factory.Shutdown()
		defer cancel()
		factory.WaitForCacheSyncWithContext(ctx)
		p.To(time.Hour)
		_, last := next(t, s)
		d, err := dynamic.NewForConfig(p.Config())
		require.NoError(t, err)
		list, err := d.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace("drain").List(ctx, metav1.ListOptions{Limit: 3})
		require.NoError(t, err)
		require.Len(t, list.Items, 12)
		for n, item := range list.Items {
			assert.Equal(t, item.Object, last.Pods[n].Object)
			pod, err := pods.Lister().Pods("drain").Get(item.GetName())
			require.NoError(t, err)
			assert.Equal(t, item.GetResourceVersion(), pod.ResourceVersion)
			assert.Equal(t, "drain-node-3", pod.Spec.NodeName)
		}
	})
}

func TestARecordedUpgradeOfACRDIsSeenAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := katestest.Replay(t, recorded("upgrade"))
		client, err := kates.NewClientFromRESTConfig(p.Config())
		require.NoError(t, err)
		defer client.Close()
		type gadgets struct {
			CRDs []map[string]any `kates:"customresourcedefinitions.apiextensions.k8s.io"`
			V1   []map[string]any `kates:"Gadget.v1.example.com"`
			V2   []map[string]any `kates:"Gadget.v2.example.com,optional"`
		}
		s, err := kates.Watch[gadgets](t.Context(), client, kates.Query{Name: "CRDs", FieldSelector: "metadata.name=gadgets.example.com"})
		require.NoError(t, err)
		first := true
		for g, err := range s.All(t.Context()) {
			require.NoError(t, err)
			if first {
				require.Nil(t, g.V2, "the version is not served yet")
			}
			first = false
			require.Len(t, g.V1, 10)
			if len(g.V2) < 10 || size(g.V1[9]) < 100 {
				continue
			}
			for n := range 10 {
				color, _, _ := unstructured.NestedString(g.V2[n], "spec", "color")
				assert.Equal(t, "red", color)
				assert.Equal(t, int64(100+n), size(g.V1[n]))
			}
			break
		}
	})
}

func size(of map[string]any) int64 {
	n, _, _ := unstructured.NestedInt64(of, "spec", "size")
	return n
}

func TestARecordingOfAReplayPlaysTheSame(t *testing.T) {
	again := filepath.Join(t.TempDir(), "again.recording")
	runs := make([]string, 2)
	for n, file := range []string{recorded("drain"), again} {
		synctest.Test(t, func(t *testing.T) {
			p := katestest.Replay(t, file, katestest.Speed(katestest.Stopped))
			config := p.Config()
			if n == 0 {
				recorder, err := katestest.Record(config, again)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, recorder.Close()) })
			}
			s := follow[workload](t, config, "drain")
			next(t, s)
			p.SetSpeed(1)
			require.NoError(t, p.Wait(t.Context()))
			runs[n], _ = next(t, s)
		})
	}
	assert.NotEmpty(t, runs[0])
	assert.Equal(t, runs[0], runs[1])
}

func TestWhatCannotBeRecordedOrPlayedIsAnError(t *testing.T) {
	_, err := katestest.Record(&rest.Config{}, filepath.Join(t.TempDir(), "no", "such", "folder"))
	require.Error(t, err)
	_, err = katestest.Record(nil, filepath.Join(t.TempDir(), "x"))
	require.ErrorContains(t, err, "nil")
	_, err = katestest.Record(&rest.Config{}, filepath.Join(t.TempDir(), "x"), nil)
	require.ErrorContains(t, err, "nil")
	_, err = katestest.NewPlayer("none")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = katestest.NewPlayer("replay_test.go")
	require.ErrorContains(t, err, "not a recording")
	_, err = katestest.NewPlayer(recorded("drain"), nil)
	require.ErrorContains(t, err, "nil")
	for _, speed := range []float64{-1, math.NaN(), math.Inf(1)} {
		_, err = katestest.NewPlayer(recorded("drain"), katestest.Speed(speed))
		require.ErrorContains(t, err, "speed")
	}
	p := katestest.Replay(t, recorded("drain"))
	assert.Panics(t, func() { p.SetSpeed(-1) })
}

func TestWhatAFunctionRedactsIsNotInTheReplay(t *testing.T) {
	again := filepath.Join(t.TempDir(), "again.recording")
	hide := func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "status", "podIP") }
	var ips []int
	for _, file := range []string{recorded("drain"), again} {
		synctest.Test(t, func(t *testing.T) {
			config := katestest.Replay(t, file, katestest.Speed(katestest.Stopped)).Config()
			if file != again {
				recorder, err := katestest.Record(config, again, katestest.Redact(hide), katestest.WithSecrets())
				require.NoError(t, err)
				t.Cleanup(func() {
					require.NoError(t, recorder.Close())
					require.Error(t, recorder.Close(), "it is closed")
				})
			}
			_, w := next(t, follow[workload](t, config, "drain"))
			require.Len(t, w.Pods, 12)
			n := 0
			for _, pod := range w.Pods {
				n += len(pod.Status.PodIP)
			}
			ips = append(ips, n)
		})
	}
	assert.Positive(t, ips[0])
	assert.Zero(t, ips[1])
}
