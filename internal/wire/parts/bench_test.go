package parts_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/internal/suite/realistic"
	"github.com/kates-go/kates/internal/wire/parts"
)

// BenchmarkDecode decodes versions of realistic pods as events bring them.
func BenchmarkDecode(b *testing.B) {
	const n = 1000
	var versions [n][2][]byte
	for i := range versions {
		p := realistic.Pod(i)
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
			table.Decode(p.UnsafePointer(), versions[i%n][i/n%2])
		}
	})
}
