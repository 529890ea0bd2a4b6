//go:build !kates_safe

package accumulator

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/query"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/rounds"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// refreshAllocs returns the allocations for one change among many objects, from the event to the
// struct.
func refreshAllocs(t *testing.T, objects int, make func(i, version int) object.Object, target any, q query.Query) float64 {
	w := worked(t, objects, make, collect.Options{}, target, q)
	return rounds.Allocs(20, func() {
		w.change(1)
		if r := w.update(t, target, nil); len(r.Differences) != 1 {
			t.Fatal(len(r.Differences))
		}
	})
}

// refreshed are the forms of a field whose allocations do not depend on the number of unchanged
// objects. Those of a map do: a refresh clones it, a table of a thousand entries at a time.
var refreshed = map[string]struct {
	make   func(i, version int) object.Object
	target func() any
	query  func(q *query.Query)
}{
	"typed pointers":   {typedObject, func() any { return &typedSlice{} }, nil},
	"typed values":     {typedObject, func() any { return &valuesSlice{} }, nil},
	"untyped pointers": {untypedObject, func() any { return &one{} }, nil},
	"untyped, decoded": {untypedObject, func() any { return &typedSlice{} }, nil},
	"contents": {untypedObject, func() any {
		return &struct{ A []map[string]any }{}
	}, nil},
	"with a signal": {typedObject, func() any { return &typedSlice{} }, func(q *query.Query) {
		q.Signal = func(_, current object.Object) bool { return current.GetName() != "" }
	}},
	"of namespaces": {typedObject, func() any { return &typedSlice{} }, func(q *query.Query) {
		q.Namespaces = []string{"ns", "other"}
	}},
	"a union": {untypedObject, func() any { return &one{} }, func(q *query.Query) {
		for _, app := range []string{"bench", "other"} {
			q.AnyOf = append(q.AnyOf, object.Selection{Labels: labels.SelectorFromSet(labels.Set{"app": app})})
		}
	}},
}

func TestG3ARefreshAllocatesNothingForWhatDidNotChange(t *testing.T) {
	for name, form := range refreshed {
		t.Run(name, func(t *testing.T) {
			q := sim.Query("A", "as")
			if form.query != nil {
				form.query(&q)
			}
			few := refreshAllocs(t, 2*worthAhead, form.make, form.target(), q)
			many := refreshAllocs(t, 5000, form.make, form.target(), q)
			// An allocation for each object would make thousands. A few more come and go with the
			// timing of goroutines.
			assert.LessOrEqual(t, many, few+8)
			t.Log(few, many)
		})
	}
}

func TestG3ARefreshOfAMapAllocatesForFewOfManyThatDidNotChange(t *testing.T) {
	const few, many = 1000, 21_000
	for name, target := range map[string]func() any{
		"by name": func() any { return &mapByName{} }, "by UID": func() any { return &mapByUID{} },
		"by string": func() any { return &mapByString{} },
	} {
		t.Run(name, func(t *testing.T) {
			less := refreshAllocs(t, few, typedObject, target(), sim.Query("A", "as"))
			more := refreshAllocs(t, many, typedObject, target(), sim.Query("A", "as"))
			assert.Less(t, (more-less)/(many-few), 0.01)
		})
	}
}

func TestG3WhereNothingChangedNothingIsAllocated(t *testing.T) {
	for name, form := range refreshed {
		t.Run(name, func(t *testing.T) {
			q, target := sim.Query("A", "as"), form.target()
			if form.query != nil {
				form.query(&q)
			}
			w := worked(t, 1000, form.make, collect.Options{}, target, q)
			assert.Zero(t, rounds.Allocs(100, func() { w.update(t, target, nil) }))
		})
	}
	t.Run("with a predicate", func(t *testing.T) {
		var snap one
		w := worked(t, 1000, untypedObject, collect.Options{}, &snap)
		j := Pass(func(u *unstructured.Unstructured) bool { return u.GetName() != "7" })
		w.update(t, &snap, j)
		assert.Zero(t, rounds.Allocs(100, func() { w.update(t, &snap, j) }))
	})
}

func TestG3AnEventAllocatesNothingForEachSubscriber(t *testing.T) {
	events := func(readers int) float64 {
		w := worked(t, 100, typedObject, collect.Options{}, &typedSlice{})
		for range readers - 1 {
			a := watching(t, w.streams, collect.Options{}, sim.Query("A", "as"))
			update(t, a, &typedSlice{})
		}
		w.change(100) // the keys are dirty
		return rounds.Allocs(100, func() { w.change(1) })
	}
	assert.Equal(t, events(1), events(8))
	assert.LessOrEqual(t, events(100), events(1)+2, "one list of those to be woken; with the race detector, growing it takes two")
}

// Metrics and the status page are observers: they cost what snapshots cost, and nothing per event.
func TestAnEventAllocatesNothingForAnObserverAndIsNotToldToIt(t *testing.T) {
	told := 0
	events := func(o collect.Options) float64 {
		w := worked(t, 100, typedObject, o, &typedSlice{})
		before := told
		w.change(100) // the keys are dirty
		defer func() { assert.Equal(t, before, told, "an event is no snapshot") }()
		return rounds.Allocs(1000, func() { w.change(1) })
	}
	alone := events(collect.Options{})
	assert.Equal(t, alone, events(collect.Options{Observer: func(collect.Delivered) { told++ }}))
	assert.Equal(t, 1, told, "the first snapshot")
}

func TestG3ABurstThatHasPassedLeavesNoRoomBehind(t *testing.T) {
	var snap typedSlice
	w := worked(t, 10, typedObject, collect.Options{}, &snap)
	held := w.stream.Held
	w.objects = 3 * 1024
	w.change(w.objects)
	for i := range w.objects {
		w.version++
		_ = w.stream.Event(w.make(i, w.version), true)
	}
	assert.Equal(t, 10, held().Dirty, "the reader knows those, the others came and went")
	w.update(t, &snap, nil)
	assert.Zero(t, held().Room, "a fresh map")
	w.objects = 10
	w.change(10)
	w.update(t, &snap, nil)
	assert.Equal(t, 10, held().Room)
	assert.Len(t, snap.A, 10)
}

func TestTheNextSnapshotIsBegunWhileTheReaderIsBusyWithThisOne(t *testing.T) {
	for objects, want := range map[int]bool{worthAhead - 1: false, worthAhead: true} {
		w := worked(t, objects, typedObject, collect.Options{}, &typedSlice{})
		for range 3 {
			w.change(1)
			w.update(t, &typedSlice{}, nil)
			w.acc.leisure.Wait()
			assert.Equal(t, want, w.acc.collector.Fields()[0].Shown.table.Ahead() == nil, "%d objects: it has been asked for", objects)
		}
	}
}
