package coherence_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/coherence"
)

// pendingView is a view with that many pending writes.
func pendingView(pending int) (*coherence.View, []*thing) {
	v := coherence.NewView(coherence.Options{Whole: true})
	v.Advance("1")
	things := make([]*thing, 50_000)
	for i := range things {
		name := strconv.Itoa(i)
		key := types.NamespacedName{Namespace: "ns", Name: name}
		things[i] = &thing{key: key, uid: types.UID(name), rev: 1_000 + i}
		if i < pending {
			record(v, things[i])
		}
	}
	return v, things
}

func record(v *coherence.View, x *thing) {
	v.Begin(x.key)
	w := coherence.Write{Key: x.key, UID: x.uid, Version: x.GetResourceVersion(), Object: x}
	v.Record(w, nil, time.Time{})
	v.End(x.key)
}

// BenchmarkRead reads 50,000 objects through a view.
func BenchmarkRead(b *testing.B) {
	for _, pending := range []int{0, 10_000} {
		b.Run(fmt.Sprint(pending, " pending"), func(b *testing.B) {
			v, things := pendingView(pending)
			b.ReportAllocs()
			for b.Loop() {
				for _, x := range things {
					if v.Read(x.key, x) != x {
						b.Fatal(x.key)
					}
				}
			}
		})
	}
}

// BenchmarkRecord records a newer write of a key: O(1), however many writes are pending.
func BenchmarkRecord(b *testing.B) {
	for _, pending := range []int{0, 1_000, 10_000} {
		b.Run(fmt.Sprint(pending, " pending"), func(b *testing.B) {
			v, things := pendingView(pending)
			rev := 1_000_000
			b.ReportAllocs()
			for b.Loop() {
				x := *things[rev%max(pending, 1)]
				rev++
				x.rev = rev
				record(v, &x)
			}
			if n := v.Pending(); n != max(pending, 1) {
				b.Fatal(n)
			}
		})
	}
}

// BenchmarkObserve is an event that ends one of the pending writes, and a write in its place.
func BenchmarkObserve(b *testing.B) {
	for _, pending := range []int{1, 1_000, 10_000} {
		b.Run(fmt.Sprint(pending, " pending"), func(b *testing.B) {
			v, things := pendingView(pending)
			first, next := 0, pending
			b.ReportAllocs()
			for b.Loop() {
				x := *things[next%len(things)]
				x.rev = 1_000 + next
				record(v, &x)
				next++
				done := things[first%len(things)]
				ev := coherence.Event{Key: done.key, UID: done.uid, Object: done, Version: version(1_000 + first)}
				if ended := v.Observe(ev); len(ended) != 1 {
					b.Fatal(ended)
				}
				first++
			}
		})
	}
}

// BenchmarkRecordByContent is a write and its event, judged by content.
func BenchmarkRecordByContent(b *testing.B) {
	for _, pending := range []int{0, 1_000, 10_000} {
		b.Run(fmt.Sprint(pending, " pending"), func(b *testing.B) {
			unversioned := func(v *coherence.View, o *thing) {
				v.Record(coherence.Write{Key: o.key, Object: o}, nil, time.Now())
			}
			same := func(a, b coherence.Object) bool { return a == b }
			v := coherence.NewView(coherence.Options{Same: same})
			x := &thing{key: types.NamespacedName{Name: "x"}}
			for i := range pending {
				unversioned(v, &thing{key: types.NamespacedName{Name: strconv.Itoa(i)}})
			}
			b.ReportAllocs()
			for b.Loop() {
				unversioned(v, x)
				if v.Pending() != pending+1 || len(v.Observe(coherence.Event{Key: x.key, Object: x})) != 1 {
					b.Fatal(v.Pending())
				}
			}
		})
	}
}
