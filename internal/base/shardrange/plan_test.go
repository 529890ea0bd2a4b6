package shardrange

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func hashesOf(form string, n int) (all []uint64) {
	for i := range n {
		all = append(all, Hash(fmt.Sprintf(form, i)))
	}
	return all
}

// world is a group whose members and objects come and go.
type world struct {
	plan    Plan
	members []string
	hashes  []uint64
}

func (w *world) has() map[string]int {
	has := make(map[string]int)
	for _, h := range w.hashes {
		has[w.plan.Owner(h)]++
	}
	return has
}

// divide divides, and checks what a division promises. It returns how many objects moved, and
// whether all was divided anew.
func (w *world) divide(t require.TestingT) (moved int, anew bool) {
	loads := Loads(w.hashes)
	heaviest := 0
	for _, l := range loads {
		heaviest = max(heaviest, l.Objects)
	}
	before := w.plan
	had := w.has()
	w.plan = before.Divide(w.members, loads)
	has := w.has()

	require.Equal(t, uint64(0), w.plan[0].From, "the first hash is somebody's")
	for i, c := range w.plan {
		require.Contains(t, w.members, c.Member)
		if i > 0 {
			require.Greater(t, c.From, w.plan[i-1].From)
			require.NotEqual(t, c.Member, w.plan[i-1].Member)
		}
	}
	var cover Ranges
	for _, m := range w.members {
		rs := w.plan.Ranges(m)
		require.Empty(t, cover.And(rs), "no hash is two members'")
		cover = cover.Or(rs)
		require.LessOrEqual(t, len(rs), RangesMost)
		for _, r := range rs {
			require.Equal(t, m, w.plan.Owner(r.First))
			require.Equal(t, m, w.plan.Owner(r.Last))
		}
	}
	require.Equal(t, All(), cover, "every hash is somebody's")

	part := (len(w.hashes) + len(w.members) - 1) / len(w.members)
	for _, m := range w.members {
		require.LessOrEqual(t, has[m], part+heaviest, "%s has about its part", m)
	}
	for _, h := range w.hashes {
		if was := before.Owner(h); was != w.plan.Owner(h) {
			moved++
		}
	}
	least := 0 // what has to move for all to have their parts
	for m, n := range had {
		if !slices.Contains(w.members, m) {
			least += n
		} else {
			least += max(0, n-part)
		}
	}
	anew = moved > least
	if anew {
		most := 0
		for _, m := range w.members {
			most = max(most, len(before.Ranges(m)))
		}
		require.Greater(t, most+len(w.members), RangesMost/2, "more moves than has to be, though there are few ranges")
	}
	return moved, anew
}

func TestAPlanIsBalancedWithoutGapsAndMovesNoMoreThanItMust(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		form := rapid.SampledFrom([]string{"n%d", "team-%d", "8a1c-%07d-uid", "%d"}).Draw(rt, "form")
		w := &world{hashes: hashesOf(form, rapid.IntRange(0, 300).Draw(rt, "objects"))}
		if rapid.Bool().Draw(rt, "heavy") && len(w.hashes) > 0 {
			w.hashes = append(w.hashes, slices.Repeat(w.hashes[:1], 100)...)
		}
		for i := range rapid.IntRange(1, 6).Draw(rt, "members") {
			w.members = append(w.members, fmt.Sprint("m", i))
		}
		w.divide(rt)
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			at := rapid.IntRange(0, len(w.members)-1).Draw(rt, "at")
			switch rapid.IntRange(0, 2).Draw(rt, "step") {
			case 0:
				if len(w.members) > 1 {
					w.members = slices.Delete(w.members, at, at+1)
				}
			case 1:
				if name := fmt.Sprint("m", rapid.IntRange(0, 8).Draw(rt, "new")); !slices.Contains(w.members, name) {
					w.members = append(w.members, name)
				}
			default:
				w.hashes = append(w.hashes, hashesOf(form+"x", rapid.IntRange(0, 30).Draw(rt, "more"))...)
			}
			w.divide(rt)
		}
	})
}

func TestAMemberThatComesOrGoesMovesItsShareAlone(t *testing.T) {
	for _, form := range []string{"n%d", "team-%d", "8a1c-%07d-uid"} {
		w := &world{hashes: hashesOf(form, 1000)}
		anews := 0
		for n := 1; n <= 20; n++ {
			w.members = append(w.members, fmt.Sprint("m", n))
			moved, _ := w.divide(t)
			if n > 1 {
				assert.InDelta(t, 1000/float64(n), moved, float64(n)+2, "%s: member %d comes", form, n)
			}
		}
		for len(w.members) > 1 {
			gone := w.members[0]
			share := w.has()[gone]
			w.members = w.members[1:]
			if moved, anew := w.divide(t); anew {
				anews++
			} else {
				assert.Equal(t, share, moved, "%s: %s goes", form, gone)
			}
		}
		assert.LessOrEqual(t, anews, 1, form)
	}
}

func TestAPlanIsSeldomDividedAnewWhileMembersComeAndGo(t *testing.T) {
	w := &world{hashes: hashesOf("8a1c-%07d-uid", 1000), members: []string{"m0", "m1", "m2", "m3"}}
	w.divide(t)
	anews := 0
	for i := range 400 {
		if i/4%2 == 0 {
			w.members = append(w.members, fmt.Sprint("m", i+4))
		} else {
			at := i * 7 % len(w.members)
			w.members = slices.Delete(w.members, at, at+1)
		}
		if _, anew := w.divide(t); anew {
			anews++
		}
	}
	assert.LessOrEqual(t, anews, 20)
}

func TestAPlanIsTheSameForTheSameMembers(t *testing.T) {
	loads := Loads(hashesOf("n%d", 100))
	a := Plan(nil).Divide([]string{"x", "y", "z", "x"}, loads)
	assert.Equal(t, a, Plan(nil).Divide([]string{"z", "y", "x"}, loads))
	assert.Equal(t, a, a.Divide([]string{"y", "x", "z"}, loads), "nothing moves if nothing has changed")
	assert.Equal(t, []string{"x", "y", "z"}, a.Members())
	assert.Nil(t, a.Divide(nil, loads))
	assert.Empty(t, Plan(nil).Owner(7))
}

func TestHashesOfWhichNothingIsKnownAreCutIntoEqualParts(t *testing.T) {
	p := Plan(nil).Divide([]string{"a", "b", "c", "d"}, nil)
	assert.Equal(t, Plan{{0, "a"}, {1 << 62, "b"}, {1 << 63, "c"}, {1<<63 + 1<<62, "d"}}, p)
	assert.Equal(t, Ranges{{1<<63 + 1<<62, math.MaxUint64}}, p.Ranges("d"))
}

func TestADigestHasAllObjectsInFewLoads(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var loads []Load
		total, largest := 0, 0
		for _, objects := range rapid.SliceOfN(rapid.IntRange(1, 50), 1, 60).Draw(rt, "objects") {
			loads = append(loads, Load{uint64(10 * len(loads)), objects})
			total, largest = total+objects, max(largest, objects)
		}
		most := rapid.IntRange(1, 30).Draw(rt, "most")
		digest := Digest(loads, most)
		require.LessOrEqual(rt, len(digest), most)
		sum, last := 0, -1
		for _, d := range digest {
			sum += d.Objects
			at := slices.IndexFunc(loads, func(l Load) bool { return l.Hash == d.Hash })
			require.Greater(rt, at, last, "each begins where one of the loads does, in their order")
			last = at
			if len(loads) > most {
				require.LessOrEqual(rt, d.Objects, total/most+largest+1, "none stands for much more than the others")
			}
		}
		require.Equal(rt, total, sum)
		if len(loads) <= most {
			require.Equal(rt, loads, digest)
		}
	})
}

func TestLoadsOfOneHashAreOne(t *testing.T) {
	assert.Equal(t, []Load{{1, 2}, {5, 1}, {7, 3}}, Loads([]uint64{7, 1, 7, 5, 1, 7}))
	given := []Load{{7, 2}, {1, 1}, {7, 3}, {1, 4}}
	assert.Equal(t, []Load{{1, 5}, {7, 5}}, Merge(given))
	assert.Equal(t, []Load{{7, 2}, {1, 1}, {7, 3}, {1, 4}}, given, "it is the caller's")
	assert.Empty(t, Merge(nil))
}
