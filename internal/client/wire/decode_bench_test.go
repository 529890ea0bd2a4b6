package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/internal/client/wire/frames"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/realistic"
)

func podDecoder() *decoder {
	r := objects.Resource{Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Namespaced: true}
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
		for _, mode := range []string{"kept", "dropped", "interned", "shared"} {
			b.Run(string(e)+"/"+mode, func(b *testing.B) {
				b.ReportAllocs()
				var before, after runtime.MemStats
				for b.Loop() {
					b.StopTimer()
					d := podDecoder()
					if d.keep = mode == "kept"; mode == "shared" {
						d = sharingDecoder()
					}
					held := make([]objects.Object, n)
					scratch := make([]byte, 0, 64<<10)
					runtime.GC()
					runtime.ReadMemStats(&before)
					b.StartTimer()
					for i := range raw {
						held[i], _ = d.decode(append(scratch, raw[i]...), e)
						if mode == "interned" {
							d.Compact(held[i], nil, true)
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

// BenchmarkCompact lets so many realistic pods share what they have in common, each just decoded
// from protobuf: at first, as a list brings them, and then next versions of each in turn, as
// events bring them. What is reported is the median without the decoding, which the scheduler has
// no part in. Few pods stay in the processor's caches until their next version comes, many do not.
func BenchmarkCompact(b *testing.B) {
	const most = 10_000
	var versions [most][3][]byte
	for i := range versions {
		p := realistic.Pod(i)
		for version := range versions[i] {
			if version > 0 {
				p = realistic.Restarted(p, 2*i+version)
			}
			versions[i][version] = encoded(b, p, frames.Protobuf)
		}
	}
	scratch := make([]byte, 0, 64<<10)
	for _, n := range []int{10, 1_000, most} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var first, next []time.Duration
			for b.Loop() {
				d, held := podDecoder(), make([]objects.Object, n)
				for k := range 2 * most {
					i := k % n
					version, took := 1+k/n%2, &next
					if held[i] == nil {
						version, took = 0, &first
					}
					o, err := d.decode(append(scratch, versions[i][version]...), frames.Protobuf)
					require.NoError(b, err)
					start := time.Now()
					d.Compact(o, held[i], true)
					*took = append(*took, time.Since(start))
					held[i] = o
				}
			}
			for unit, took := range map[string][]time.Duration{"ns/first": first, "ns/next": next} {
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), unit)
			}
		})
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
