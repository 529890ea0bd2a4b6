package kates

import (
	"encoding/json"
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/accumulator"
	"github.com/kates-go/kates/internal/frames"
	"github.com/kates-go/kates/internal/realistic"
)

func podDecoder() *decoder {
	r := accumulator.Resource{Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Namespaced: true}
	r.GroupVersionResource = corev1.SchemeGroupVersion.WithResource("pods")
	return newDecoder(r, reflect.TypeFor[corev1.Pod](), false)
}

// BenchmarkDecode decodes realistic pods; B/pod is what stays of each on the heap.
func BenchmarkDecode(b *testing.B) {
	const n = 10_000
	for _, e := range []frames.Encoding{frames.Protobuf, frames.JSON} {
		raw := make([][]byte, n)
		size := 0
		for i := range raw {
			raw[i] = encoded(b, realistic.Pod(i), e)
			size += len(raw[i])
		}
		for _, mode := range []string{"kept", "dropped", "interned"} {
			b.Run(string(e)+"/"+mode, func(b *testing.B) {
				b.ReportAllocs()
				var before, after runtime.MemStats
				for b.Loop() {
					b.StopTimer()
					d := podDecoder()
					d.keep = mode == "kept"
					held := make([]accumulator.Object, n)
					scratch := make([]byte, 0, 64<<10)
					runtime.GC()
					runtime.ReadMemStats(&before)
					b.StartTimer()
					for i := range raw {
						held[i], _ = d.decode(append(scratch, raw[i]...), e)
						if mode == "interned" {
							d.Compact(held[i], true)
						}
					}
					b.StopTimer()
					runtime.GC()
					runtime.GC()
					runtime.ReadMemStats(&after)
					b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/n, "B/pod")
					runtime.KeepAlive(held)
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/pod")
				b.ReportMetric(float64(size)/n, "wire-B/pod")
			})
		}
	}
}

func encoded(t testing.TB, p *corev1.Pod, e frames.Encoding) []byte {
	t.Helper()
	if e == frames.Protobuf {
		raw, err := p.Marshal()
		require.NoError(t, err)
		return raw
	}
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	return raw
}
