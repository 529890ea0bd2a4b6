package accumulator

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// numbered takes a thing whose n is a number.
type numbered struct {
	Metadata struct{ Name string }
	Spec     struct{ N int }
}

type numbers struct{ A []*numbered }

func lettered(name string) *unstructured.Unstructured {
	u := sim.Thing(name)
	u.Object["spec"] = map[string]any{"n": "a letter"}
	return u
}

// replayed applies the differences to names that are shown.
func replayed(t *testing.T, shown map[string]bool, all []tables.Difference) {
	t.Helper()
	for _, d := range all {
		if d.Old != nil {
			require.True(t, shown[d.Old.GetName()], "%s goes, and was not there", d.Old.GetName())
			delete(shown, d.Old.GetName())
		}
		if d.New != nil {
			require.False(t, shown[d.New.GetName()], "%s comes, and is there", d.New.GetName())
			shown[d.New.GetName()] = true
		}
	}
}

func TestG7G8WhatATargetOfAnotherTypeLeavesOutIsADeleteAndReported(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		for _, name := range []string{"a", "c", "d"} {
			s.Create("as", lettered(name))
		}
		s.Create("as", sim.Thing("b"))
		var told []tables.Invalid
		a := watching(t, streams, collect.Options{Invalid: func(i tables.Invalid) { told = append(told, i) }}, sim.Query("A", "as"))
		synctest.Wait()
		var any one
		shown := map[string]bool{}
		replayed(t, shown, update(t, a, &any).Differences)
		require.Len(t, shown, 4)

		s.Touch("as", "c", 1) // it decodes by now
		s.Remove("as", "d")
		synctest.Wait()
		var some numbers
		r := update(t, a, &some)
		assert.True(t, r.Changed)
		replayed(t, shown, r.Differences)
		assert.Equal(t, map[string]bool{"b": true, "c": true}, shown)
		require.Len(t, r.Differences, 3, "one for each object")
		require.Len(t, some.A, 2)
		require.Len(t, r.Invalid, 1)
		assert.Equal(t, "a", r.Invalid[0].Object.GetName())
		assert.Equal(t, "a", told[0].Object.GetName())
		assert.False(t, update(t, a, &some).Changed)

		r = update(t, a, &any)
		assert.True(t, r.Changed)
		replayed(t, shown, r.Differences)
		assert.Equal(t, map[string]bool{"a": true, "b": true, "c": true}, shown)
		assert.Empty(t, r.Invalid)
	})
}

func TestG8WhatThePredicatePanickedOverIsNotShownInATargetOfAnotherTypeEither(t *testing.T) {
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("bad"))
		s.Create("as", sim.Thing("good"))
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		var snap one
		r, err := a.Update(t.Context(), &snap, Pass(func(u *unstructured.Unstructured) bool {
			if u.GetName() == "bad" {
				panic("no")
			}
			return true
		}))
		require.NoError(t, err)
		require.Len(t, r.Invalid, 1)
		var other struct{ A []map[string]any }
		r = update(t, a, &other)
		assert.Len(t, other.A, 1)
		assert.Len(t, r.Invalid, 1)
		assert.Empty(t, r.Differences)
	})
}

func TestDiffsThatFollowOthersAreOneForAKey(t *testing.T) {
	o := func(name string) object.Object { return sim.Thing(name) }
	diff := func(key string, before, after object.Object) tables.Diff {
		return tables.Diff{Key: object.Key{Name: key}, Old: before, New: after}
	}
	first, second, third := o("1"), o("2"), o("3")
	assert.Equal(t,
		[]tables.Diff{diff("a", first, nil), diff("b", first, third), diff("c", nil, second), diff("f", nil, first)},
		followed(
			[]tables.Diff{diff("a", first, nil), diff("b", first, nil), diff("d", nil, first), diff("e", first, nil)},
			[]tables.Diff{diff("b", nil, third), diff("c", nil, second), diff("d", first, nil), diff("e", nil, first), diff("f", nil, first)},
		))
}
