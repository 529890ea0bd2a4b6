package derived

import (
	"fmt"
	"runtime"
	"testing"
)

// BenchmarkFirst makes the first results of a routing table, to work with.
func BenchmarkFirst(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		for _, name := range Names(Routes) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				c, err := newContender(name, Command{Workload: Routes, Objects: n})
				if err != nil {
					b.Fatal(err)
				}
				var cpu float64
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					runtime.GC()
					b.StartTimer()
					took, err := seconds(c.first)
					if err != nil {
						b.Fatal(err)
					}
					cpu += took
				}
				b.ReportMetric(1000*cpu/float64(b.N), "cpu-ms/op")
			})
		}
	}
}
