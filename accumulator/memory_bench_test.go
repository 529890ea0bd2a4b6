package accumulator

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// heapInUse returns the size of the live heap.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkMemory: the memory of a stream and its readers for each object, without the object
// itself.
func BenchmarkMemory(b *testing.B) {
	const objects = 50_000
	for name, form := range map[string]struct {
		make   func(i, version int) object.Object
		target func() any
	}{
		"typed":             {typedObject, func() any { return &typedSlice{} }},
		"untyped":           {untypedObject, func() any { return &one{} }},
		"typed, by name":    {typedObject, func() any { return &mapByName{} }},
		"typed, key string": {typedObject, func() any { return &mapByString{} }},
	} {
		for _, readers := range []int{0, 1, 3} {
			b.Run(fmt.Sprintf("%s/readers=%d", name, readers), func(b *testing.B) {
				for b.Loop() {
					all := make([]object.Object, objects)
					for i := range all {
						all[i] = form.make(i, 1001+i)
					}
					before := heapInUse()
					streams := streamset.New(stream.Config{Source: sim.Plain(sim.New().Source)})
					var open []*Accumulator
					snaps := []any{}
					for range max(readers, 1) {
						a, err := New(context.Background(), streams, []query.Query{sim.Query("A", "as")}, collect.Options{})
						if err != nil {
							b.Fatal(err)
						}
						open = append(open, a)
						<-a.Changed()
					}
					for _, o := range all {
						_ = listener(open[0], 0).Stage().Event(o, false)
					}
					for _, a := range open[:readers] {
						snap := form.target()
						if r, err := a.Update(context.Background(), snap, nil); err != nil || len(r.Differences) != objects {
							b.Fatal(err)
						}
						snaps = append(snaps, snap)
					}
					b.ReportMetric(float64(heapInUse()-before)/objects, "B/object")
					streams.Close()
					runtime.KeepAlive(snaps)
					runtime.KeepAlive(all)
				}
			})
		}
	}
}
