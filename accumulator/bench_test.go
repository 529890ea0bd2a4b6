package accumulator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// benchObject returns a version of an object as a server sends it.
func benchObject(i, version int) *unstructured.Unstructured {
	u := sim.Thing(strconv.Itoa(i), "app", "bench")
	u.SetUID(types.UID("uid-" + u.GetName()))
	u.SetResourceVersion(strconv.Itoa(version))
	return u
}

// untypedObject returns benchObject as an event brings it.
func untypedObject(i, version int) object.Object { return benchObject(i, version) }

// typedObject returns the same, decoded into its Go type: one allocation, and its strings.
func typedObject(i, version int) object.Object {
	s := &corev1.Service{}
	s.Namespace, s.Name = "ns", strconv.Itoa(i)
	s.UID, s.ResourceVersion = types.UID("uid-"+s.Name), strconv.Itoa(version)
	return s
}

type (
	typedSlice  struct{ A []*corev1.Service }
	valuesSlice struct{ A []corev1.Service }
	mapByName   struct {
		A map[types.NamespacedName]*corev1.Service
	}
	mapByUID    struct{ A map[types.UID]*corev1.Service }
	mapByString struct{ A map[string]*corev1.Service }
)

// workload is a reader of queries over streams whose watches do not run. The test plays their
// part.
type workload struct {
	streams *streamset.Set
	acc     *Accumulator
	stream  stream.Staging // the first stream of the first query
	make    func(i, version int) object.Object
	objects int
	version int
}

// worked sets up a reader of one query with many objects, and reads once.
func worked(tb testing.TB, objects int, make func(i, version int) object.Object, o collect.Options, target any, queries ...query.Query) *workload {
	tb.Helper()
	if len(queries) == 0 {
		queries = []query.Query{sim.Query("A", "as")}
	}
	streams := streamset.New(stream.Config{Source: sim.Plain(sim.New().Source)})
	tb.Cleanup(streams.Close)
	a, err := New(context.Background(), streams, queries, o)
	if err != nil {
		tb.Fatal(err)
	}
	<-a.Changed()
	w := &workload{streams: streams, acc: a, make: make, objects: objects, version: 1000}
	w.stream = listener(a, 0).Stage()
	w.change(objects)
	if r := w.update(tb, target, nil); len(r.Differences) != objects {
		tb.Fatal(len(r.Differences), r.Invalid)
	}
	return w
}

// benchReader returns a reader of a stream that holds many untyped objects.
func benchReader(b *testing.B, objects int) (stream.Staging, *Accumulator) {
	b.Helper()
	w := worked(b, objects, untypedObject, collect.Options{}, &one{})
	return w.stream, w.acc
}

// change brings new versions of count objects, evenly spread, like a watch.
func (w *workload) change(count int) {
	step := max(w.objects/count, 1)
	for i := range count {
		w.version++
		_ = w.stream.Event(w.make(i*step+w.version%step, w.version), false)
	}
}

func (w *workload) update(tb testing.TB, target any, j *Judgement) Result {
	tb.Helper()
	r, err := w.acc.Update(context.Background(), target, j)
	if err != nil || !r.Complete {
		tb.Fatal(r, err)
	}
	return r
}

// refreshed measures an Update after some changes, from the events to the struct.
func (w *workload) refreshed(b *testing.B, changes int, target any) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		w.change(changes)
		if r := w.update(b, target, nil); len(r.Differences) != changes {
			b.Fatal(len(r.Differences))
		}
	}
}

// refreshedAtLeisure measures the same for a reader that is busy for a moment between two
// snapshots.
func (w *workload) refreshedAtLeisure(b *testing.B, changes int, target any) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		w.change(changes)
		w.acc.leisure.Wait()
		b.StartTimer()
		if r := w.update(b, target, nil); len(r.Differences) != changes {
			b.Fatal(len(r.Differences))
		}
	}
}

// BenchmarkRefreshAtLeisure: the accumulator has already copied what it can copy before it knows
// the changes.
func BenchmarkRefreshAtLeisure(b *testing.B) {
	for _, objects := range []int{1_000, 10_000, 50_000, 100_000} {
		for _, changes := range []int{1, 100} {
			b.Run(fmt.Sprintf("slice/objects=%d/changed=%d", objects, changes), func(b *testing.B) {
				worked(b, objects, typedObject, collect.Options{}, &typedSlice{}).refreshedAtLeisure(b, changes, &typedSlice{})
			})
			b.Run(fmt.Sprintf("map/objects=%d/changed=%d", objects, changes), func(b *testing.B) {
				worked(b, objects, typedObject, collect.Options{}, &mapByName{}).refreshedAtLeisure(b, changes, &mapByName{})
			})
		}
	}
}

// BenchmarkRefresh: an Update costs what changed, and a copy of one slice of pointers. "clone" is
// that copy alone, beside the same objects: the garbage collection of the heap is a part of an
// allocation's cost.
func BenchmarkRefresh(b *testing.B) {
	for _, objects := range []int{1_000, 10_000, 50_000, 100_000} {
		for _, kind := range []string{"typed", "untyped"} {
			for _, changes := range []int{1, 100, objects} {
				b.Run(fmt.Sprintf("%s/objects=%d/changed=%d", kind, objects, changes), func(b *testing.B) {
					if kind == "typed" {
						worked(b, objects, typedObject, collect.Options{}, &typedSlice{}).refreshed(b, changes, &typedSlice{})
						return
					}
					worked(b, objects, untypedObject, collect.Options{}, &one{}).refreshed(b, changes, &one{})
				})
			}
		}
		b.Run(fmt.Sprintf("clone/objects=%d", objects), func(b *testing.B) {
			var snap typedSlice
			worked(b, objects, typedObject, collect.Options{}, &snap)
			b.ReportAllocs()
			for b.Loop() {
				snap.A = slices.Clone(snap.A)
			}
		})
		b.Run(fmt.Sprintf("nothing/objects=%d", objects), func(b *testing.B) {
			var snap typedSlice
			w := worked(b, objects, typedObject, collect.Options{}, &snap)
			b.ReportAllocs()
			for b.Loop() {
				w.update(b, &snap, nil)
			}
		})
	}
}

// BenchmarkRefreshForms: one change among 50,000 objects, in each form of a field.
func BenchmarkRefreshForms(b *testing.B) {
	const objects = 50_000
	for name, target := range map[string]any{
		"pointers": &typedSlice{}, "values": &valuesSlice{},
		"by name": &mapByName{}, "by UID": &mapByUID{}, "by string": &mapByString{},
	} {
		b.Run(name, func(b *testing.B) {
			worked(b, objects, typedObject, collect.Options{}, target).refreshed(b, 1, target)
		})
	}
}

// BenchmarkRefreshWith: one change among 50,000 objects, with each of the other options.
func BenchmarkRefreshWith(b *testing.B) {
	const objects = 50_000
	b.Run("predicate", func(b *testing.B) {
		judgement := Pass(func(u *unstructured.Unstructured) bool { return u.GetName() != "7" })
		var snap one
		w := worked(b, objects, untypedObject, collect.Options{}, &snap)
		w.update(b, &snap, judgement)
		w.refreshed(b, 1, &snap)
	})
	b.Run("signal", func(b *testing.B) {
		q := sim.Query("A", "as")
		q.Signal = func(old, current object.Object) bool { return current.GetName() != "7" }
		worked(b, objects, typedObject, collect.Options{}, &typedSlice{}, q).refreshed(b, 1, &typedSlice{})
	})
	b.Run("insert and delete", func(b *testing.B) {
		var snap typedSlice
		w := worked(b, objects, typedObject, collect.Options{}, &snap)
		b.ReportAllocs()
		for b.Loop() {
			w.version++
			o := w.make(objects/2*10, w.version)
			_ = w.stream.Event(o, w.version%2 == 0)
			w.update(b, &snap, nil)
		}
	})
	b.Run("union", func(b *testing.B) {
		q := sim.Query("A", "as")
		for _, app := range []string{"bench", "other"} {
			q.AnyOf = append(q.AnyOf, object.Selection{Labels: labels.SelectorFromSet(labels.Set{"app": app})})
		}
		var snap one
		w := worked(b, objects, untypedObject, collect.Options{}, &snap, q)
		w.refreshed(b, 1, &snap)
	})
	b.Run("namespaces", func(b *testing.B) {
		q := sim.Query("A", "as")
		q.Namespaces = []string{"ns", "other"}
		worked(b, objects, typedObject, collect.Options{}, &typedSlice{}, q).refreshed(b, 1, &typedSlice{})
	})
}

// BenchmarkEventUnderSlowReader: an event costs the same however long nobody has read. Each
// reader that does not read adds next to nothing.
func BenchmarkEventUnderSlowReader(b *testing.B) {
	const objects = 10_000
	for _, readers := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(readers, " readers"), func(b *testing.B) {
			w := worked(b, objects, typedObject, collect.Options{}, &typedSlice{})
			for range readers - 1 {
				other, err := New(context.Background(), w.streams, []query.Query{sim.Query("A", "as")}, collect.Options{})
				if err != nil {
					b.Fatal(err)
				}
				_, _ = other.Update(context.Background(), &typedSlice{}, nil)
			}
			b.ReportAllocs()
			for b.Loop() {
				w.change(1)
			}
		})
	}
}

// BenchmarkFirstTake: the cost of the first reading of a stream that has its list.
func BenchmarkFirstTake(b *testing.B) {
	for _, objects := range []int{1_000, 10_000, 50_000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			w := worked(b, objects, typedObject, collect.Options{}, &typedSlice{})
			b.ReportAllocs()
			for b.Loop() {
				fresh, err := New(context.Background(), w.streams, []query.Query{sim.Query("A", "as")}, collect.Options{})
				if err != nil {
					b.Fatal(err)
				}
				var snap typedSlice
				if _, err := fresh.Update(context.Background(), &snap, nil); err != nil || len(snap.A) != objects {
					b.Fatal(len(snap.A), err)
				}
				b.StopTimer()
				fresh.Close()
				b.StartTimer()
			}
		})
	}
}
