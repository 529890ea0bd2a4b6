package accumulator

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/intake"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// benchWrites makes count own writes of a resource. No watch shows them: events are late.
func benchWrites(b *testing.B, streams *streamset.Set, resource string, count int) {
	b.Helper()
	for i := range count {
		benchWrite(b, streams, resource, benchObject(i, 2_000_000_000+i))
	}
}

func benchWrite(b *testing.B, streams *streamset.Set, resource string, u *unstructured.Unstructured) {
	w := streams.Begin(sim.Resource(resource), object.Key{Namespace: u.GetNamespace(), Name: u.GetName()})
	out := intake.Outcome{}
	out.Key, out.UID, out.Version, out.Object = object.Key{Namespace: u.GetNamespace(), Name: u.GetName()}, u.GetUID(), u.GetResourceVersion(), u
	if err := w.Commit(context.Background(), out); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSnapshotWithPendingWrites: a first reading of 50,000 objects.
func BenchmarkSnapshotWithPendingWrites(b *testing.B) {
	for _, pending := range []int{0, 10_000} {
		b.Run(fmt.Sprint(pending, " pending"), func(b *testing.B) {
			st, a := benchReader(b, 50_000)
			benchWrites(b, a.streams, "as", pending)
			if n := st.Held().Pending; n != pending {
				b.Fatal(n)
			}
			b.ReportAllocs()
			for b.Loop() {
				fresh, err := New(context.Background(), a.streams, []query.Query{sim.Query("A", "as")}, collect.Options{})
				if err != nil {
					b.Fatal(err)
				}
				var snap one
				if _, err := fresh.Update(context.Background(), &snap, nil); err != nil || len(snap.A) != 50_000 {
					b.Fatal(len(snap.A), err)
				}
				b.StopTimer()
				fresh.Close()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkOwnWrite: a write costs the same, besides its request, however many are pending: a
// Begin and a Commit.
func BenchmarkOwnWrite(b *testing.B) {
	for _, pending := range []int{0, 1_000, 10_000} {
		b.Run(fmt.Sprint(pending, " pending"), func(b *testing.B) {
			_, a := benchReader(b, 50_000)
			benchWrites(b, a.streams, "as", pending)
			version := 2_100_000_000
			// the same one each time: no more are pending
			last := benchObject(max(pending-1, 0), 0).GetName()
			b.ReportAllocs()
			for b.Loop() {
				version++
				u := sim.Thing(last)
				u.SetUID("uid-x")
				u.SetResourceVersion(strconv.Itoa(version))
				benchWrite(b, a.streams, "as", u)
			}
		})
	}
}

// BenchmarkRefreshWithPendingWrites: an Update after one change costs what changed. Pending
// writes, of the queried kind or of another, add nothing.
func BenchmarkRefreshWithPendingWrites(b *testing.B) {
	for _, resource := range []string{"as", "bs"} {
		for _, pending := range []int{0, 10_000} {
			b.Run(fmt.Sprint(pending, " of ", map[string]string{"as": "the kind", "bs": "another kind"}[resource]), func(b *testing.B) {
				st, a := benchReader(b, 50_000)
				if _, err := New(context.Background(), a.streams, []query.Query{sim.Query("B", "bs")}, collect.Options{}); err != nil {
					b.Fatal(err)
				}
				benchWrites(b, a.streams, resource, pending)
				var snap one
				_, _ = a.Update(context.Background(), &snap, nil)
				version := 1_000_000
				b.ReportAllocs()
				for b.Loop() {
					version++
					_ = st.Event(benchObject(49_999, version), false)
					if r, err := a.Update(context.Background(), &snap, nil); err != nil || len(r.Differences) != 1 {
						b.Fatal(r, err)
					}
				}
			})
		}
	}
}

// BenchmarkRelistWithPendingWrites: a list of 50,000 objects while writes are pending.
func BenchmarkRelistWithPendingWrites(b *testing.B) {
	for _, pending := range []int{0, 10_000} {
		b.Run(fmt.Sprint(pending, " pending"), func(b *testing.B) {
			st, a := benchReader(b, 50_000)
			benchWrites(b, a.streams, "as", pending)
			position := listener(a, 0).State().PositionRV
			b.ReportAllocs()
			for b.Loop() {
				if err := st.List(st.Objects(), position, position); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
