package footprint

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/test/suite/realistic"
)

// heap returns how many bytes the values that make returns take, by the allocator.
func heap[T any](n int, make1 func(i int) T) (per, estimated int64) {
	var before, after runtime.MemStats
	all := make([]T, n)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range all {
		all[i] = make1(i)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	per = int64(after.HeapAlloc-before.HeapAlloc) / int64(n)
	estimated = Of(all...) / int64(n)
	runtime.KeepAlive(all)
	return per, estimated
}

func TestAnEstimateIsNearWhatTheAllocatorSays(t *testing.T) {
	near := func(t *testing.T, per, estimated int64) {
		t.Helper()
		t.Logf("%d bytes by the allocator, %d estimated", per, estimated)
		if estimated < per*8/10 || estimated > per*12/10 {
			t.Errorf("the estimate is %d bytes; the allocator says %d", estimated, per)
		}
	}
	t.Run("pods", func(t *testing.T) {
		per, estimated := heap(2000, func(i int) *corev1.Pod { return realistic.Pod(i) })
		near(t, per, estimated)
	})
	t.Run("untyped objects", func(t *testing.T) {
		per, estimated := heap(2000, func(i int) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": fmt.Sprintf("name-%d", i), "labels": map[string]any{"app": fmt.Sprint(i)}},
				"spec":     map[string]any{"list": []any{int64(i), float64(i), fmt.Sprint("text ", i), map[string]any{"a": true}}},
			}}
		})
		near(t, per, estimated)
	})
}

func TestTheZoneOfATimeIsNoPartOfIt(t *testing.T) {
	if n := Of(time.Now(), time.Now().In(time.FixedZone("x", 60))); n != 0 {
		t.Errorf("two times refer to %d bytes of their own", n)
	}
}

func TestWhatValuesShareCountsOnce(t *testing.T) {
	shared := make([]byte, 1<<20)
	if n := Of(shared, shared, shared); n < 1<<20 || n > 1<<20+1<<17 {
		t.Errorf("one slice in three values is %d bytes", n)
	}
	type ring struct{ next *ring }
	r := &ring{}
	r.next = r
	if n := Of(r); n > 64 {
		t.Errorf("a ring is %d bytes", n)
	}
}
