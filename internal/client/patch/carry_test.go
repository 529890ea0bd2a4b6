package patch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

type obj = map[string]any

func TestWhatAViewDoesNotShowStaysAsItIs(t *testing.T) {
	part := func(name string, size any, hidden string) any {
		return obj{"name": name, "size": size, "hidden": hidden}
	}
	seen := func(name string, size any) any { return obj{"name": name, "size": size} }
	port := func(number any, hidden string) any { return obj{"number": number, "hidden": hidden} }
	for what, c := range map[string]struct{ base, before, after, want any }{
		"a field beside": {
			obj{"a": int64(1), "hidden": int64(2)}, obj{"a": int64(1)}, obj{"a": int64(3)},
			obj{"a": int64(3), "hidden": int64(2)},
		},
		"a field that is removed": {obj{"a": int64(1), "hidden": int64(2)}, obj{"a": int64(1)}, obj{}, obj{"hidden": int64(2)}},
		"a field that the view writes otherwise": {
			obj{"q": "1000m", "a": "b"}, obj{"q": "1", "a": "b"}, obj{"q": "1", "a": "c"}, obj{"q": "1000m", "a": "c"},
		},
		"what the view makes up": {obj{}, obj{"status": obj{}, "spec": obj{"zero": int64(0)}},
			obj{"status": obj{}, "spec": obj{"zero": int64(0), "a": "b"}}, obj{"spec": obj{"a": "b"}}},
		"a field that was zero and left out by the view": {obj{"n": obj{"hidden": "h"}}, obj{}, obj{"n": obj{"a": "b"}},
			obj{"n": obj{"a": "b", "hidden": "h"}}},
		"an element that was put in front": {
			[]any{part("a", int64(1), "x"), part("b", int64(2), "y")}, []any{seen("a", int64(1)), seen("b", int64(2))},
			[]any{seen("c", int64(3)), seen("a", int64(1)), seen("b", int64(2))},
			[]any{seen("c", int64(3)), part("a", int64(1), "x"), part("b", int64(2), "y")},
		},
		"elements in another order, one of them altered": {
			[]any{part("a", int64(1), "x"), part("b", int64(2), "y")}, []any{seen("a", int64(1)), seen("b", int64(2))},
			[]any{seen("b", int64(2)), seen("a", int64(7))}, []any{part("b", int64(2), "y"), part("a", int64(7), "x")},
		},
		"an element in another's place": {
			[]any{part("a", int64(1), "x")}, []any{seen("a", int64(1))}, []any{seen("z", int64(1))}, []any{seen("z", int64(1))},
		},
		"an altered element without a key": {
			[]any{port(int64(1), "x"), port(int64(2), "y")}, []any{obj{"number": int64(1)}, obj{"number": int64(2)}},
			[]any{obj{"number": int64(1)}, obj{"number": int64(3)}}, []any{port(int64(1), "x"), port(int64(3), "y")},
		},
		"twins, the first of them altered": {
			[]any{port(int64(1), "x"), port(int64(1), "y")}, []any{obj{"number": int64(1)}, obj{"number": int64(1)}},
			[]any{obj{"number": int64(2)}, obj{"number": int64(1)}}, []any{port(int64(2), "x"), port(int64(1), "y")},
		},
		"a list of another length": {[]any{"a"}, []any{"a", "b"}, []any{"b"}, []any{"b"}},
	} {
		assert.Equal(t, c.want, carry(c.base, c.before, c.after), what)
	}
}

// anyJSON draws a JSON value without nulls, a few levels deep.
func anyJSON(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
		case kind == 2 && depth > 0:
			return rapid.SliceOfN(anyJSON(depth-1), 0, 4).Draw(t, "list")
		case kind == 3 && depth > 0:
			return jsonObjects(depth-1).Draw(t, "object")
		case kind == 1:
			return int64(rapid.IntRange(0, 2).Draw(t, "number"))
		}
		return rapid.SampledFrom([]string{"x", "y"}).Draw(t, "text")
	})
}

func jsonObjects(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "name"}), anyJSON(depth), 0, 3)
}

// merged7396 is RFC 7396's MergePatch.
func merged7396(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if o, ok := target.(map[string]any); ok {
		for key, value := range o {
			out[key] = value
		}
	}
	for key, value := range p {
		if value == nil {
			delete(out, key)
		} else {
			out[key] = merged7396(out[key], value)
		}
	}
	return out
}

func TestAPatchMakesOfTheOneWhatTheOtherIsAndAWholeViewHidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := jsonObjects(3).Draw(t, "from"), jsonObjects(3).Draw(t, "to")
		assert.Equal(t, any(to), merged7396(from, Merge(from, to)))
		assert.Equal(t, any(to), carry(from, from, to))
		assert.Empty(t, Merge(to, to))
	})
}

func TestAPatchTakesNullForAbsent(t *testing.T) {
	assert.Empty(t, Merge(obj{"a": nil}, obj{}))
	assert.Empty(t, Merge(obj{}, obj{"a": nil}))
	assert.Equal(t, obj{"a": nil}, Merge(obj{"a": "b"}, obj{"a": nil}))
}
