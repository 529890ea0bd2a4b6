package tree

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/base/footprint"
	"github.com/kates-go/kates/internal/test/suite/realistic"
)

func textOf(t require.TestingT, v any) []byte {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}

func decoded(t require.TestingT, table *Table, raw []byte, share bool) map[string]any {
	m, ok := table.Decode(raw, share)
	require.True(t, ok, "%s", raw)
	return m
}

// at is what a path of keys and indexes leads to.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return v
}

// address tells maps and slices apart.
func address(v any) uintptr { return reflect.ValueOf(v).Pointer() }

// values are JSON values of which many are equal.
func values(levels int) *rapid.Generator[any] {
	text := rapid.SampledFrom([]string{"", "a", "b", "k:{\"name\":\"app\"}", "é\n", "<&>", "1"})
	all := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), text.AsAny(),
		rapid.SampledFrom([]any{int64(0), int64(7), int64(-1 << 63), 0.5, 1e300}),
	}
	if levels > 0 {
		all = append(all, rapid.SliceOfN(values(levels-1), 0, 4).AsAny(), rapid.MapOfN(text, values(levels-1), 0, 4).AsAny())
	}
	return rapid.OneOf(all...)
}

func TestADecodedObjectIsTheSameWhateverTheTableHas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var table Table
		var all, want []map[string]any
		for range rapid.IntRange(1, 12).Draw(rt, "objects") {
			raw := textOf(rt, rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), values(4), 0, 3).Draw(rt, "object"))
			for range 3 {
				share := rapid.Bool().Draw(rt, "share")
				m, valid := plain(raw)
				require.True(rt, valid)
				all, want = append(all, decoded(rt, &table, raw, share)), append(want, m)
			}
		}
		if !reflect.DeepEqual(want, all) {
			rt.Fatalf("%v, want %v", all, want)
		}
	})
}

// spacious returns an empty table in which the parts of these texts have places of their own, so
// that none of them displaces another. The seed decides the places, and differs in each run.
func spacious(t require.TestingT, texts ...[]byte) *Table {
	for {
		p := newPlaces(least, maphash.MakeSeed())
		in, taken := map[string]bool{}, map[uint64]bool{}
		for _, text := range texts {
			var s scanner
			require.True(t, s.scan(text))
			for _, n := range s.nodes {
				part := text[n.from:n.to]
				if !in[string(part)] {
					in[string(part)] = true
					taken[maphash.Bytes(p.seed, part)%uint64(len(p.all)/ways)] = true
				}
			}
		}
		if len(in) == len(taken) { // in groups of their own
			table := new(Table)
			table.current.Store(p)
			return table
		}
	}
}

func TestEqualPartsOfObjectsAreTheSameFromTheThirdOn(t *testing.T) {
	pod := func(name string) []byte {
		return []byte(`{"metadata":{"name":"` + name + `"},"spec":{"hosts":[{"port":8080,"name":"` + name + `"},{"port":8080}]}}`)
	}
	table := spacious(t, pod("a"), pod("b"))
	var all []map[string]any
	for _, name := range []string{"a", "b", "a", "b"} {
		all = append(all, decoded(t, table, pod(name), true))
	}
	host := []any{"spec", "hosts", 1}
	assert.NotEqual(t, address(at(all[0], host...)), address(at(all[1], host...)))
	assert.Equal(t, address(at(all[1], host...)), address(at(all[2], host...)))
	assert.Equal(t, address(at(all[1], host...)), address(at(all[3], host...)))
	for _, path := range [][]any{{}, {"metadata"}, {"spec"}, {"spec", "hosts"}, {"spec", "hosts", 0}} {
		assert.NotEqual(t, address(at(all[2], path...)), address(at(all[3], path...)), path)
	}
	again := decoded(t, table, pod("b"), true)
	assert.Equal(t, address(at(all[3], "spec")), address(at(again, "spec")), "a part of any size")
	assert.NotEqual(t, address(all[3]), address(again), "the object's own map, to which its kind may be written")
}

func TestWhoMayWriteHasMapsAndSlicesOfItsOwn(t *testing.T) {
	raw := []byte(`{"a":{"b":[{"c":"d","e":[]},{}]},"f":[1,2]}`)
	table := spacious(t, raw)
	for range 3 {
		decoded(t, table, raw, true)
	}
	shared := decoded(t, table, raw, true)
	for range 3 {
		own := decoded(t, table, raw, false)
		spoil(own)
	}
	want, _ := plain(raw)
	assert.Equal(t, want, shared)
	assert.Equal(t, want, decoded(t, table, raw, true))
	assert.Equal(t, want, decoded(t, table, raw, false))
}

// spoil writes to all that may be written to.
func spoil(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			spoil(x)
			v[k] = "spoilt"
		}
		v["more"] = true
	case []any:
		for i, x := range v {
			spoil(x)
			v[i] = "spoilt"
		}
	}
}

func TestTextsOfOneHashAreToldApart(t *testing.T) {
	p := newPlaces(least, maphash.MakeSeed())
	for i := range ways {
		p.put(&entry{hash: 7, text: fmt.Sprint(i), value: int64(i)})
	}
	for i := range ways {
		v, ok := p.find(7, []byte(fmt.Sprint(i)))
		assert.True(t, ok)
		assert.Equal(t, int64(i), v)
	}
	_, ok := p.find(7, []byte("9"))
	assert.False(t, ok)
	_, ok = p.find(8, []byte("1"))
	assert.False(t, ok)
}

func TestWhatIsAskedForKeepsItsPlace(t *testing.T) {
	p := newPlaces(least, maphash.MakeSeed())
	p.put(&entry{hash: 7, text: "asked for"})
	for i := range 100 {
		p.put(&entry{hash: 7, text: fmt.Sprint(i)})
		_, ok := p.find(7, []byte("asked for"))
		require.True(t, ok, i)
	}
}

// held counts what a table has, and the bytes of the texts.
func held(table *Table) (places, entries, text int) {
	p := table.current.Load()
	for i := range p.all {
		if e := p.all[i].Load(); e != nil {
			entries++
			text += len(e.text)
		}
	}
	return len(p.all), entries, text
}

func TestWhatIsInOneObjectAloneIsNotHeld(t *testing.T) {
	var table Table
	for i := range 5000 {
		decoded(t, &table, fmt.Appendf(nil, `{"name":"object-%d","labels":{"only":"here-%d"}}`, i, i), true)
	}
	_, entries, _ := held(&table)
	assert.Less(t, entries, 20)
}

func TestATableIsBoundedWhateverComes(t *testing.T) {
	for name, parts := range map[string]struct{ n, size int }{"many texts": {80_000, 1}, "long texts": {20_000, longest - 20}} {
		var table Table
		pad := strings.Repeat("x", parts.size)
		for i := 0; i < parts.n; i += 1000 {
			var texts []string
			for j := range 1000 {
				texts = append(texts, strconv.Itoa(i+j)+pad)
			}
			raw := textOf(t, map[string]any{"texts": texts})
			decoded(t, &table, raw, true)
			decoded(t, &table, raw, true)
		}
		places, entries, text := held(&table)
		assert.LessOrEqual(t, places, most, name)
		assert.LessOrEqual(t, entries, places, name)
		assert.LessOrEqual(t, text, mostText+ways*longest, name)
		assert.EqualValues(t, text, table.current.Load().text.Load(), name)
	}
}

func TestWhatIsNestedDeeplyIsLeftToPlainDecoding(t *testing.T) {
	nested := func(n int) []byte {
		return []byte(strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n))
	}
	var table Table
	want, _ := plain(nested(deepest))
	assert.Equal(t, want, decoded(t, &table, nested(deepest), true))
	_, ok := table.Decode(nested(deepest+1), true)
	assert.False(t, ok)
	_, ok = (*Table)(nil).Decode(nested(1), true)
	assert.False(t, ok)
}

func TestATableMayBeUsedByManyAtOnce(t *testing.T) {
	var table Table
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 50 {
				raw := textOf(t, realistic.Pod(i))
				want, _ := plain(raw)
				assert.Equal(t, want, decoded(t, &table, raw, i%3 > 0))
			}
		})
	}
	all.Wait()
}

func TestPodsTakeLessThanHalfOfTheMemory(t *testing.T) {
	var table Table
	var one, other []map[string]any
	for i := range 200 {
		raw := textOf(t, realistic.Pod(i))
		m, _ := plain(raw)
		one, other = append(one, m), append(other, decoded(t, &table, raw, true))
	}
	whole, shared := footprint.Of(one), footprint.Of(other)
	t.Logf("%d bytes per pod, %d before", shared/200, whole/200)
	assert.Less(t, shared*2, whole)
}

func BenchmarkDecodePod(b *testing.B) {
	raw := make([][]byte, 100)
	for i := range raw {
		raw[i] = textOf(b, realistic.Pod(i))
	}
	for name, decode := range map[string]func(*Table, []byte) (map[string]any, bool){
		"plain":   func(_ *Table, raw []byte) (map[string]any, bool) { return plain(raw) },
		"private": func(t *Table, raw []byte) (map[string]any, bool) { return t.Decode(raw, false) },
		"shared":  func(t *Table, raw []byte) (map[string]any, bool) { return t.Decode(raw, true) },
	} {
		b.Run(name, func(b *testing.B) {
			var table Table
			b.ReportAllocs()
			for i := range b.N {
				if _, ok := decode(&table, raw[i%100]); !ok {
					b.Fatal("it does not decode")
				}
			}
		})
	}
}
