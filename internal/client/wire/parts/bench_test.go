//go:build !kates_safe

package parts_test

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/internal/client/wire/parts"
	"github.com/kates-go/kates/internal/test/suite/realistic"
)

// BenchmarkDecode decodes versions of realistic pods as events bring them: those of a few
// templates, and those with the volume for the token of a service account, which has the pod's own
// name.
func BenchmarkDecode(b *testing.B) {
	b.Run("template", func(b *testing.B) { benchmark(b, func(int, *corev1.Pod) {}) })
	b.Run("own volume", func(b *testing.B) {
		benchmark(b, func(i int, p *corev1.Pod) {
			p.Spec.Volumes[0].Name += fmt.Sprint("-", i)
			for c := range p.Spec.Containers {
				p.Spec.Containers[c].VolumeMounts[0].Name += fmt.Sprint("-", i)
			}
		})
	})
}

func benchmark(b *testing.B, own func(i int, p *corev1.Pod)) {
	const n = 10_000
	var versions [n][2][]byte
	for i := range versions {
		p := realistic.Pod(i)
		p.ManagedFields = nil
		own(i, p)
		for v := range versions[i] {
			versions[i][v] = encoded(b, realistic.Restarted(p, 2*i+v))
		}
	}
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			p := &corev1.Pod{}
			_ = p.Unmarshal(versions[i%n][i/n%2])
		}
	})
	b.Run("parts", func(b *testing.B) {
		b.ReportAllocs()
		table := parts.New(reflect.TypeFor[corev1.Pod](), true)
		for i := 0; b.Loop(); i++ {
			p := reflect.New(reflect.TypeFor[corev1.Pod]())
			table.Decode(p.Interface(), versions[i%n][i/n%2])
		}
	})
}
