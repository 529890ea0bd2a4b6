package kates

import (
	"fmt"
	"maps"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// shownNames is a snapshot: the UID and version under each name.
type shownNames map[place][2]int

// between returns the deltas of an Update.
func between(from, to shownNames) (all []*Delta) {
	delta := func(t DeltaType, at place, o [2]int) {
		d := &Delta{DeltaType: t, Query: at.query}
		d.Namespace, d.Name = at.Namespace, at.Name
		d.UID, d.ResourceVersion = types.UID(fmt.Sprint(o[0])), fmt.Sprint(o[1])
		all = append(all, d)
	}
	for _, query := range []string{"B", "A"} {
		for _, name := range []string{"x", "y", "z"} {
			at := place{query, types.NamespacedName{Name: name}}
			old, was := from[at]
			now, is := to[at]
			switch {
			case was && is && old == now, !was && !is:
			case was && is && old[0] == now[0]:
				delta(ObjectUpdate, at, now)
			default:
				if was {
					delta(ObjectDelete, at, old)
				}
				if is {
					delta(ObjectAdd, at, now)
				}
			}
		}
	}
	return all
}

// TestG7TheDeltasOfSeveralSnapshotsAreThoseBetweenTheFirstAndTheLast: with two exceptions. An
// object that left and came back is an update, even if it is unchanged. A delete has the version
// that was seen last.
func TestG7TheDeltasOfSeveralSnapshotsAreThoseBetweenTheFirstAndTheLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChanges(reflect.TypeFor[struct{ B, A int }]())
		now, version := shownNames{}, 0
		step := func() {
			for range rapid.IntRange(0, 4).Draw(t, "writes") {
				at := place{rapid.SampledFrom([]string{"A", "B"}).Draw(t, "query"), types.NamespacedName{Name: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name")}}
				version++
				if uid := rapid.IntRange(0, 2).Draw(t, "uid"); uid == 0 {
					delete(now, at)
				} else {
					now[at] = [2]int{uid, version}
				}
			}
		}
		step()
		first := maps.Clone(now)
		for range rapid.IntRange(0, 5).Draw(t, "updates") {
			before := maps.Clone(now)
			step()
			c.add(between(before, now))
		}
		type short struct {
			is   string
			uid  types.UID
			name string
		}
		brief := func(all []*Delta) (b []short) {
			for _, d := range all {
				b = append(b, short{d.Query + " " + d.DeltaType.String(), d.UID, d.Name})
			}
			return b
		}
		require.Equal(t, brief(between(first, now)), brief(c.deltas()))
		c.clear()
		require.Empty(t, c.deltas())
	})
}
