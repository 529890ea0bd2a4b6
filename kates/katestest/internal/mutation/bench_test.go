package mutation

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/test/suite/realistic"
)

// BenchmarkSnapshot is what a detector adds to a snapshot of 10,000 pods of which one has changed.
func BenchmarkSnapshot(b *testing.B) {
	d := New(Default)
	w := d.Watching("snap")
	pods := make([]*corev1.Pod, 10_000)
	for i := range pods {
		pods[i] = realistic.Pod(i)
		w.Shown("Pods", pods[i], pods[i])
	}
	filled := func() collect.Delivery {
		return collect.Delivery{Moment: collect.NewSnapshot, Filled: []collect.Filled{{Query: "Pods", Value: reflect.ValueOf(pods)}}}
	}
	w.Delivered(filled())
	for b.Loop() {
		pods = append([]*corev1.Pod(nil), pods...)
		pods[0] = realistic.Restarted(pods[0], 1)
		w.Shown("Pods", pods[0], pods[0])
		w.Delivered(filled())
	}
}

// BenchmarkShown is what it adds to a conversion.
func BenchmarkShown(b *testing.B) {
	d := New(Default)
	w := d.Watching("snap")
	for i := 0; b.Loop(); i++ {
		pod := realistic.Pod(i % 1000)
		w.Shown("Pods", pod, pod)
	}
}
