package shardrange

import (
	"fmt"
	"math"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func drawRanges(rt *rapid.T, label string) Ranges {
	var all []Range
	for range rapid.IntRange(0, 5).Draw(rt, label) {
		r := Range{drawHash(rt), drawHash(rt)}
		if r.Last < r.First {
			r.First, r.Last = r.Last, r.First
		}
		all = append(all, r)
	}
	return NewRanges(all...)
}

// drawHash prefers the ends, and neighbours of other hashes.
func drawHash(rt *rapid.T) uint64 {
	n := rapid.Uint64().Draw(rt, "hash")
	switch rapid.IntRange(0, 4).Draw(rt, "how") {
	case 0:
		return 0
	case 1:
		return math.MaxUint64
	case 2:
		return bits.RotateLeft64(n%8, -3) + n>>63 - n>>62&1
	}
	return n
}

func TestRangesAreSetsOfHashes(t *testing.T) {
	require.Equal(t, Ranges{{0, 9}, {11, 12}}, NewRanges(Range{5, 9}, Range{11, 12}, Range{0, 4}), "neighbours are one range")
	rapid.Check(t, func(rt *rapid.T) {
		a, b := drawRanges(rt, "a"), drawRanges(rt, "b")
		both, one, less := a.And(b), a.Or(b), a.Without(b)
		looks := []uint64{0, math.MaxUint64, drawHash(rt)}
		for _, r := range append(append(Ranges{}, a...), b...) {
			looks = append(looks, r.First, r.Last, r.First-1, r.Last+1)
		}
		for _, h := range looks {
			require.Equal(rt, a.Has(h) && b.Has(h), both.Has(h))
			require.Equal(rt, a.Has(h) || b.Has(h), one.Has(h))
			require.Equal(rt, a.Has(h) && !b.Has(h), less.Has(h))
		}
		require.True(rt, one.Covers(a) && one.Covers(b) && a.Covers(both) && a.Covers(less))
		require.Equal(rt, len(less) == 0, b.Covers(a))
		for _, rs := range []Ranges{both, one, less} {
			for i := 1; i < len(rs); i++ {
				require.Greater(rt, rs[i].First-1, rs[i-1].Last, "neighbours are one range")
			}
		}
	})
}

// TestAShardIsWhatTheServerMakesOfItsText compares with the code of the API server.
func TestAShardIsWhatTheServerMakesOfItsText(t *testing.T) {
	ends := []Ranges{{{0, 0}}, {{1, math.MaxUint64}}, {{0, math.MaxUint64 - 1}}, {{0, 0}, {math.MaxUint64, math.MaxUint64}}}
	rapid.Check(t, func(rt *rapid.T) {
		s := Shard{rapid.SampledFrom([]Field{UID, Namespace}).Draw(rt, "field"), drawRanges(rt, "ranges")}
		for _, ranges := range ends {
			requireTheServersShard(rt, Shard{s.Field, ranges})
		}
		requireTheServersShard(rt, s)
	})
}

// requireTheServersShard compares a shard with what the API server makes of its text.
func requireTheServersShard(rt *rapid.T, s Shard) {
	if s.Everything() || len(s.Ranges) == 0 {
		return
	}
	again, err := Parse(s.String())
	require.NoError(rt, err)
	require.Equal(rt, s, again)
	var rs []sharding.ShardRangeRequirement
	for _, r := range s.Ranges {
		q := sharding.ShardRangeRequirement{Key: string(s.Field), Start: fmt.Sprintf("0x%016x", r.First), End: "0x10000000000000000"}
		if r.Last != math.MaxUint64 {
			q.End = fmt.Sprintf("0x%016x", r.Last+1)
		}
		rs = append(rs, q)
	}
	server := sharding.NewSelector(rs...)
	require.Equal(rt, server.String(), s.String())
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: rapid.String().Draw(rt, "namespace"), UID: types.UID(rapid.String().Draw(rt, "uid")),
	}}
	want, err := server.Matches(o)
	require.NoError(rt, err)
	require.Equal(rt, want, s.Has(o.Namespace, string(o.UID)))
	require.True(rt, !want || s.HasNamespace(o.Namespace))
}

func TestAShardWithoutRangesAsksForNextToNothingAndHasNothing(t *testing.T) {
	s := Shard{Field: UID}
	assert.False(t, s.Has("ns", "u"))
	assert.False(t, s.Everything())
	assert.Equal(t, "shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000001')", s.String())
}

func TestAShardOfAllHashesAsksForNoShard(t *testing.T) {
	s := Shard{Namespace, All()}
	assert.True(t, s.Everything() && s.Has("ns", "u") && s.Covers(Shard{UID, All()}) && Shard{}.Covers(s))
	assert.Empty(t, s.String())
	half := Shard{UID, Ranges{{0, math.MaxInt64}}}
	assert.False(t, half.Covers(s) || half.Covers(Shard{Namespace, half.Ranges}))
	assert.True(t, s.Covers(half) && half.Covers(half))
}

// TestAShareByControllersIsAskedOfNoServer: whoever gets the objects judges them.
func TestAShareByControllersIsAskedOfNoServer(t *testing.T) {
	half := Ranges{{0, math.MaxInt64}}
	s := Shard{Controller, half}
	assert.Empty(t, s.String())
	assert.False(t, s.Everything())
	assert.True(t, s.Has("ns", "u") && s.HasNamespace("ns"))
	assert.False(t, s.Covers(Shard{UID, half}) || s.Covers(Shard{}))
	assert.True(t, s.Covers(s) && Shard{}.Covers(s))
}

// TestShardsThatDifferHaveOtherKeys: streams of the same key are one.
func TestShardsThatDifferHaveOtherKeys(t *testing.T) {
	seen := make(map[string]Shard)
	for _, field := range []Field{UID, Namespace, Controller} {
		for _, ranges := range []Ranges{nil, {{0, 7}}, {{0, 8}}, {{1, 8}}, {{0, 7}, {9, math.MaxUint64}}} {
			s := Shard{field, ranges}
			assert.NotEmpty(t, s.Key())
			assert.NotContains(t, seen, s.Key(), "%v and %v", seen[s.Key()], s)
			seen[s.Key()] = s
		}
		assert.Empty(t, Shard{field, All()}.Key())
	}
}

func TestATextThatIsNoShardIsAnErrorThatSaysWhy(t *testing.T) {
	for text, says := range map[string]string{
		"":  "is no range",
		"x": "is no range",
		"shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')": "is neither",
		"shardRange(object.metadata.uid, '0x0', '0x8000000000000000')":                 "has 1 digits",
		"shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')":  "ends before that",
		"shardRange(object.metadata.uid, '0x10000000000000000', '0x8000000000000000')": "has 17 digits",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || " +
			"shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')": "two fields",
	} {
		_, err := Parse(text)
		assert.ErrorContains(t, err, says, text)
	}
	s, err := Parse(`shardRange( object.metadata.uid,"0x8000000000000000", '0x10000000000000000' )||` +
		`shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')`)
	require.NoError(t, err)
	assert.True(t, s.Everything())
}

func FuzzATextIsAShardOrAnError(f *testing.F) {
	f.Add("shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000000')")
	f.Add("shardRange(object.metadata.namespace, '0x00000000000000ff', '0x8000000000000000') || x")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(s.String()); s.String() != "" && (err != nil || !again.Covers(s) || !s.Covers(again)) {
			t.Fatalf("%q is %v, and again %v: %v", text, s, again, err)
		}
	})
}
