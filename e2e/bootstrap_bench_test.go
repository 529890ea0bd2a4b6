package e2e

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/test/suite/realistic"
	"github.com/kates-go/kates/kates"
)

var benchPods = flag.Int("bench-pods", 10_000, "pods of the benchmark of first lists")

// plainPod is a pod as a Go type that does not decode from protobuf.
type plainPod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              corev1.PodSpec   `json:"spec"`
	Status            corev1.PodStatus `json:"status"`
}

func (p *plainPod) DeepCopyObject() kruntime.Object {
	c := &plainPod{TypeMeta: p.TypeMeta, ObjectMeta: *p.ObjectMeta.DeepCopy(), Spec: *p.Spec.DeepCopy(), Status: *p.Status.DeepCopy()}
	return c
}

// plainPods returns a scheme with plainPod.
func plainPods() *kruntime.Scheme {
	s := kruntime.NewScheme()
	s.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("Pod"), &plainPod{})
	return s
}

// BenchmarkFirstList measures what this process needs for the first snapshot of many pods: CPU
// time of all threads, the highest heap on the way, and the heap that stays.
func BenchmarkFirstList(b *testing.B) {
	ns := manyPods(b, *benchPods)
	for _, lists := range []string{"paged", "streamed"} {
		options := []kates.Option{map[string]kates.Option{"paged": kates.Tuning{Lists: kates.PagedLists}, "streamed": kates.Tuning{Lists: kates.StreamedLists}}[lists]}
		b.Run("protobuf/"+lists, func(b *testing.B) { firstList[*corev1.Pod](b, ns, options) })
		b.Run("json/"+lists, func(b *testing.B) { firstList[*plainPod](b, ns, append(options, kates.WithScheme(plainPods()))) })
		b.Run("untyped/"+lists, func(b *testing.B) { firstList[*corev1.Pod](b, ns, append(options, kates.Tuning{UntypedStreams: true})) })
	}
}

func firstList[T any](b *testing.B, ns string, options []kates.Option) {
	type pods struct{ Pods []T }
	var cpu time.Duration
	var peak, live uint64
	for b.Loop() {
		b.StopTimer()
		before := heap()
		start := cpuTime(b)
		high := highest()
		b.StartTimer()
		c, err := kates.NewClientFromRESTConfig(rest.CopyConfig(testCluster.Config), options...)
		require.NoError(b, err)
		s, err := kates.Watch[pods](b.Context(), c, kates.Query{Name: "Pods", Namespace: ns})
		require.NoError(b, err)
		var snap pods
		for len(snap.Pods) == 0 {
			<-s.Changed()
			_, err := s.Update(b.Context(), &snap)
			require.NoError(b, err)
		}
		b.StopTimer()
		cpu += cpuTime(b) - start
		peak += high() - before
		require.Len(b, snap.Pods, *benchPods)
		live += heap() - before
		runtime.KeepAlive(snap)
		c.Close()
		b.StartTimer()
	}
	n := float64(b.N)
	b.ReportMetric(cpu.Seconds()/n, "cpu-s")
	b.ReportMetric(float64(peak)/n/1e6, "peak-MB")
	b.ReportMetric(float64(live)/n/float64(*benchPods), "B/pod")
}

// manyPods makes n pods in a new namespace.
func manyPods(b *testing.B, n int) (ns string) {
	b.Helper()
	ns = namespace(b)
	quiet := rest.CopyConfig(testCluster.Config)
	quiet.WarningHandler = rest.NoWarnings{}
	c, err := kubernetes.NewForConfig(quiet)
	require.NoError(b, err)
	_, err = c.CoreV1().ServiceAccounts(ns).Create(b.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(b, err)
	var writers sync.WaitGroup
	todo := make(chan int)
	for range 16 {
		writers.Go(func() {
			for i := range todo {
				p := realistic.Pod(i)
				p.Namespace, p.UID, p.ResourceVersion, p.ManagedFields, p.OwnerReferences = ns, "", "", nil, nil
				p.Spec.ServiceAccountName, p.Spec.DeprecatedServiceAccount, p.Spec.Priority, p.Spec.PreemptionPolicy = "default", "", nil, nil
				status := p.Status
				got, err := c.CoreV1().Pods(ns).Create(context.Background(), p, metav1.CreateOptions{})
				if err == nil {
					got.Status = status
					_, err = c.CoreV1().Pods(ns).UpdateStatus(context.Background(), got, metav1.UpdateOptions{})
				}
				if err != nil {
					b.Error(fmt.Errorf("make a pod: %w", err))
				}
			}
		})
	}
	for i := range n {
		todo <- i
	}
	close(todo)
	writers.Wait()
	return ns
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap returns the size of the heap after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	return onHeap()
}

func onHeap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// highest measures the heap until its result is called. That returns the highest size.
func highest() func() uint64 {
	done, result := make(chan struct{}), make(chan uint64)
	go func() {
		var high uint64
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				high = max(high, onHeap())
			case <-done:
				result <- max(high, onHeap())
				return
			}
		}
	}()
	return func() uint64 { close(done); return <-result }
}
