package snapshot_test

import (
	"fmt"
	"testing"

	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/snapshot"
)

// BenchmarkApply measures a batch of changes and the making of the slice, without conversion.
func BenchmarkApply(b *testing.B) {
	binding := compile[services](b, "Services")
	for _, n := range []int{1000, 10_000, 100_000} {
		for _, k := range []int{1, 100, n} {
			b.Run(fmt.Sprintf("objects=%d/replaced=%d", n, k), func(b *testing.B) {
				benchmarkBatches(b, tableOf(binding, n), [2][]tables.Change{
					spread(binding, n, k, numbered), spread(binding, n, k, numbered),
				})
			})
			b.Run(fmt.Sprintf("objects=%d/inserted,deleted=%d", n, k), func(b *testing.B) {
				inserted := spread(binding, n, k, func(i int) string { return numbered(i) + "-new" })
				deleted := make([]tables.Change, k)
				for i, c := range inserted {
					deleted[i].Key = c.Key
				}
				benchmarkBatches(b, tableOf(binding, n), [2][]tables.Change{inserted, deleted})
			})
		}
	}
}

// spread changes k of n objects, at even distances.
func spread(binding *snapshot.Binding, n, k int, name func(int) string) []tables.Change {
	changes := make([]tables.Change, k)
	for i := range changes {
		changes[i] = changeOf(binding, 0, typed("ns", name(i*(n/k)), 81))
	}
	return changes
}

// benchmarkBatches applies two batches by turns. Each undoes the other.
func benchmarkBatches(b *testing.B, table *tables.Table, batches [2][]tables.Change) {
	b.ReportAllocs()
	turn := 0
	for b.Loop() {
		table.Apply(batches[turn%2])
		table.Value()
		turn++
	}
}

// BenchmarkConvert measures the conversion of one object, as a dynamic client delivers it, to
// each kind of element.
func BenchmarkConvert(b *testing.B) {
	fields := []string{"Pointers", "Values", "Unstructured", "Metadata", "Contents", "Plain"}
	binding := compile[everyForm](b, fields...)
	u := untyped("prod", "web", 80)
	for query, name := range fields {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := binding.Convert(query, u); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
