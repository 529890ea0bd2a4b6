package tree

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/base/footprint"
	"github.com/kates-go/kates/internal/test/suite/realistic"
)

func TestAnObjectThatSharesPartsIsTheSameAndNothingIsWrittenTo(t *testing.T) {
	odd := rapid.SampledFrom([]any{int64(1), 1.0, "1", true, 1, []string{"a"}, map[string]any(nil), []any(nil), map[string]any{}, []any{}})
	rapid.Check(t, func(rt *rapid.T) {
		var table Table
		var all, was, shared []map[string]any
		for range rapid.IntRange(1, 20).Draw(rt, "objects") {
			m := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), values(4), 0, 3).Draw(rt, "object")
			if rapid.Bool().Draw(rt, "an odd one") {
				m["odd"] = map[string]any{"in": []any{odd.Draw(rt, "odd")}}
			}
			copied := copyOf(m).(map[string]any)
			all, was, shared = append(all, m), append(was, copied), append(shared, table.Share(m))
		}
		if !reflect.DeepEqual(was, shared) || !reflect.DeepEqual(was, all) {
			rt.Fatalf("%v, and %v, want %v", shared, all, was)
		}
	})
}

// copyOf copies maps and slices.
func copyOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		m := map[string]any{}
		for k, x := range v {
			m[k] = copyOf(x)
		}
		return m
	case []any:
		if v == nil {
			return v
		}
		l := make([]any, len(v))
		for i, x := range v {
			l[i] = copyOf(x)
		}
		return l
	}
	return v
}

func TestObjectsThatWereTransformedShareEqualPartsFromTheThirdOn(t *testing.T) {
	object := func(name string) map[string]any {
		return map[string]any{"name": name, "spec": map[string]any{"hosts": []any{map[string]any{"port": int64(80)}}, "of": name}}
	}
	for range 1000 { // until no part displaces another one, which the seed decides
		table := new(Table)
		table.current.Store(newPlaces(least, maphash.MakeSeed()))
		var all []map[string]any
		for i := range 4 {
			m := object(fmt.Sprint(i))
			spec, hosts := address(at(m, "spec")), address(at(m, "spec", "hosts"))
			all = append(all, table.Share(m))
			assert.Equal(t, spec, address(at(m, "spec")), "nothing is written to")
			assert.Equal(t, hosts, address(at(m, "spec", "hosts")), "nothing is written to")
		}
		assert.NotEqual(t, address(at(all[2], "spec")), address(at(all[3], "spec")))
		if address(at(all[1], "spec", "hosts")) == address(at(all[2], "spec", "hosts")) {
			assert.Equal(t, address(at(all[1], "spec", "hosts")), address(at(all[3], "spec", "hosts")))
			return
		}
	}
	t.Error("nothing is shared")
}

func TestWhatHoldsItselfIsLeftAsItIs(t *testing.T) {
	var table Table
	m := map[string]any{"a": map[string]any{}}
	m["a"].(map[string]any)["b"] = m
	assert.Equal(t, address(m), address(table.Share(m)))
	bomb := map[string]any{}
	for range deepest - 2 { // 2 to the power of 62 paths
		bomb = map[string]any{"a": bomb, "b": bomb}
	}
	assert.Equal(t, len(bomb), len(table.Share(bomb)))
	assert.Nil(t, table.Share(nil))
	assert.Equal(t, address(m), address((*Table)(nil).Share(m)))
}

func TestTransformedPodsTakeLessThanHalfOfTheMemory(t *testing.T) {
	var table Table
	var one, other []map[string]any
	for i := range 200 {
		raw := textOf(t, realistic.Pod(i))
		m, _ := plain(raw)
		one = append(one, m)
		m = decoded(t, &table, raw, false)
		delete(m["metadata"].(map[string]any), "managedFields")
		other = append(other, table.Share(m))
	}
	whole, shared := footprint.Of(one), footprint.Of(other)
	t.Logf("%d bytes per pod, %d before", shared/200, whole/200)
	assert.Less(t, shared*2, whole)
}
