package patch

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatTheAnswerLacksIsDroppedAndWhatItHasOtherwiseIsNot(t *testing.T) {
	condition := func(kind, status string) obj { return obj{"type": kind, "status": status} }
	for what, c := range map[string]struct {
		before, after, answer any
		want                  []string
	}{
		"all of a status":       {obj{}, obj{"status": obj{"conditions": []any{condition("A", "True")}}}, obj{}, []string{"status"}},
		"an unknown field":      {obj{}, obj{"a": obj{"b": "c"}, "d": int64(1)}, obj{"d": int64(1)}, []string{"a"}},
		"fields of a known one": {nil, obj{"a": obj{"b": "c", "d": "e", "f": true}}, obj{"a": obj{"d": "e"}}, []string{"a.b", "a.f"}},
		"a field of an element": {nil, obj{"l": []any{obj{"name": "x", "b": "c"}}}, obj{"l": []any{obj{"name": "x"}}}, []string{"l[0].b"}},
		"a new element":         {obj{"l": []any{condition("A", "True")}}, obj{"l": []any{condition("A", "True"), condition("B", "True")}}, obj{"l": []any{condition("A", "True")}}, []string{"l[1]"}},
		"an element that another one replaces": {nil, []any{condition("A", "1"), condition("B", "1")},
			[]any{condition("A", "1"), condition("C", "1")}, []string{"[1]"}},
		"an element among others'": {nil, []any{condition("A", "1")},
			[]any{condition("B", "1"), condition("C", "1")}, []string{"[0]"}},
		"an element without a key":    {nil, []any{"a", "b"}, []any{"b"}, []string{"[0]"}},
		"what was null":               {obj{"a": nil}, obj{"a": "b"}, obj{"a": nil}, []string{"a"}},
		"nothing: an altered value":   {obj{"a": "b"}, obj{"a": "c", "q": "1000m"}, obj{"a": "C", "q": "1"}, nil},
		"nothing: an altered kind":    {nil, obj{"a": obj{"b": "c"}, "l": []any{"x"}}, obj{"a": "text", "l": "text"}, nil},
		"nothing: altered elements":   {nil, []any{condition("a", "True"), "x"}, []any{condition("A", "True"), "y"}, nil},
		"nothing: an element once":    {nil, []any{"a", "a"}, []any{"a"}, nil},
		"nothing: elements moved":     {nil, []any{condition("A", "1"), condition("B", "2")}, []any{condition("B", "2"), condition("New", ""), condition("A", "1")}, nil},
		"nothing: additions":          {nil, obj{"a": obj{"b": "c"}}, obj{"a": obj{"b": "c", "default": "d"}, "more": "e"}, nil},
		"nothing: empty values":       {nil, obj{"s": "", "b": false, "i": int64(0), "f": 0.0, "m": obj{"n": obj{"o": ""}}, "l": []any{}, "n": nil}, obj{}, nil},
		"nothing: it was not altered": {obj{"made": "up", "a": "b"}, obj{"made": "up", "a": "c"}, obj{"a": "c"}, nil},
		"nothing: it was removed":     {obj{"a": "b", "l": []any{"x", "y"}}, obj{"l": []any{"x"}}, obj{"l": []any{"x"}}, nil},
		"nothing: an unaltered element": {[]any{condition("A", "made up")}, []any{condition("A", "made up"), condition("B", "1")},
			[]any{obj{"type": "A"}, condition("B", "1")}, nil},
	} {
		assert.Equal(t, c.want, Dropped(c.before, c.after, c.answer), what)
	}
}

func TestWhatIsKeptIsWhatTheTypeKnowsAsItWasWritten(t *testing.T) {
	value := obj{"q": "1000m", "no": "x", "empty": "", "list": []any{obj{"a": "1", "no": "x"}, "text"}, "in": obj{"no": obj{"x": "y"}}}
	known := obj{"q": "1", "made": "up", "list": []any{obj{"a": "1"}, "text"}, "in": obj{}}
	want := obj{"q": "1000m", "empty": "", "list": []any{obj{"a": "1"}, "text"}, "in": obj{}}
	assert.Equal(t, want, Kept(value, known))
	assert.Equal(t, obj{}, Kept(obj{"a": "b"}, nil))
	assert.Equal(t, []any{"a", "b"}, Kept([]any{"a", "b"}, []any{"a"}))
	assert.Len(t, value, 5, "it is not modified")
	assert.Len(t, value["list"].([]any)[0], 2)
}
