package accumulator

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// benchObject is a version of an object as a server sends it.
func benchObject(i, version int) *unstructured.Unstructured {
	u := thing(strconv.Itoa(i), "app", "bench")
	u.SetUID(types.UID("uid-" + u.GetName()))
	u.SetResourceVersion(strconv.Itoa(version))
	return u
}

// benchReader is a reader of a stream that holds so many objects. No watch runs: the benchmark
// plays its part.
func benchReader(b *testing.B, objects int) (*stream, *Accumulator) {
	b.Helper()
	streams := NewStreams(Config{Source: newSim().source})
	b.Cleanup(streams.Close)
	a, err := streams.New(context.Background(), []Query{simQuery("A", "as")}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	<-a.Changed()
	st := a.fields[0].parts[0].sub.stream
	for i := range objects {
		_ = st.event(benchObject(i, 1000+i), false)
	}
	var snap one
	if _, err := a.Update(context.Background(), &snap, nil); err != nil || len(snap.A) != objects {
		b.Fatal(len(snap.A), err)
	}
	return st, a
}

// BenchmarkUpdateAfterOneChange: an Update costs what changed, but for the copy of one
// slice of pointers.
func BenchmarkUpdateAfterOneChange(b *testing.B) {
	for _, objects := range []int{1_000, 10_000, 50_000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			st, a := benchReader(b, objects)
			var snap one
			version := 1_000_000
			b.ReportAllocs()
			for b.Loop() {
				version++
				_ = st.event(benchObject(version%objects, version), false)
				if r, err := a.Update(context.Background(), &snap, nil); err != nil || len(r.Differences) != 1 {
					b.Fatal(r, err)
				}
			}
		})
	}
}

// BenchmarkEventUnderSlowReader: an event costs the same however long nobody has read.
func BenchmarkEventUnderSlowReader(b *testing.B) {
	for _, readers := range []int{1, 10} {
		b.Run(fmt.Sprint(readers, " readers"), func(b *testing.B) {
			st, a := benchReader(b, 10_000)
			for range readers - 1 {
				other, err := a.streams.New(context.Background(), []Query{simQuery("A", "as")}, Options{})
				if err != nil {
					b.Fatal(err)
				}
				_, _ = other.Update(context.Background(), &one{}, nil)
			}
			version := 1_000_000
			b.ReportAllocs()
			for b.Loop() {
				version++
				_ = st.event(benchObject(version%10_000, version), false)
			}
		})
	}
}
