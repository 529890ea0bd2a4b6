package patch

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/base/jsonform"
)

// shown is a Go type that knows a part of its objects. It has every way to write a zero value.
type shown struct {
	Name   string            `json:"name,omitempty"`
	Text   string            `json:"text"`
	Size   int64             `json:"size,omitempty"`
	Time   *string           `json:"time"`
	Labels map[string]string `json:"labels,omitempty"`
	Tags   []string          `json:"tags,omitempty"`
	Parts  []shown           `json:"parts"`
	Sub    *shown            `json:"sub,omitempty"`
	Fixed  struct {
		Text  string  `json:"text"`
		Parts []shown `json:"parts,omitempty"`
	} `json:"fixed"`
	Zero struct {
		Size int64 `json:"size"`
	} `json:"zero,omitzero"`
}

type fataler interface {
	require.TestingT
	Helper()
}

// viewed decodes an object into the Go type and encodes it again.
func viewed(t fataler, o any) obj {
	t.Helper()
	var s shown
	data, err := jsonform.Encode(o)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &s))
	data, err = jsonform.Encode(s)
	require.NoError(t, err)
	var view obj
	require.NoError(t, jsonform.Decode(data, &view))
	return view
}

// sent applies a patch to an object as the server does.
func sent(t fataler, o obj, p *Patch) obj {
	t.Helper()
	if p.Type == types.MergePatchType {
		return merged7396(o, p.Body).(obj)
	}
	object, err := jsonform.Encode(o)
	require.NoError(t, err)
	data, err := jsonform.Encode(p.Body)
	require.NoError(t, err)
	operations, err := jsonpatch.DecodePatch(data)
	require.NoError(t, err)
	object, err = operations.Apply(object)
	require.NoError(t, err, "%s", data)
	var out obj
	require.NoError(t, jsonform.Decode(object, &out))
	return out
}

// anObject draws an object of the server. It may have fields that the Go type lacks, and lack
// others.
func anObject(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		o := obj{}
		set := func(key string, g *rapid.Generator[any]) {
			if rapid.IntRange(0, 3).Draw(t, key+"?") > 0 {
				o[key] = g.Draw(t, key)
			}
		}
		text := rapid.SampledFrom([]any{"", "0", "a", "b/c", "d~e"})
		size := rapid.SampledFrom([]any{int64(0), int64(1), int64(2)})
		set("name", rapid.SampledFrom([]any{"a", "b", "c", "d", "e", "f", "g"}))
		set("text", text)
		set("size", size)
		set("time", rapid.SampledFrom([]any{nil, "now", "then"}))
		set("hidden", text)
		set("tags", rapid.SampledFrom([]any{nil, []any{}, []any{"a"}, []any{"1k", "b"}, []any{"b", "a", "a"}}))
		set("labels", rapid.SampledFrom([]any{nil, obj{}, obj{"x/y~1": "1"}, obj{"a": "", "b": "2"}}))
		set("zero", rapid.SampledFrom([]any{obj{"hidden": "z"}, obj{"size": int64(1), "hidden": "z"}}))
		if depth > 0 {
			parts := rapid.Map(rapid.SliceOfN(anObject(depth-1), 1, 5), func(all []any) any { return all })
			set("parts", parts)
			set("sub", anObject(depth-1))
			if fixed := (obj{"hidden": "f"}); rapid.Bool().Draw(t, "fixed?") {
				o["fixed"] = fixed
				for key, g := range map[string]*rapid.Generator[any]{"text": text, "parts": parts} {
					if rapid.Bool().Draw(t, "fixed."+key+"?") {
						fixed[key] = g.Draw(t, "fixed."+key)
					}
				}
			}
		}
		return o
	})
}

// changed draws a change of view a, with parts of view b.
func changed(t *rapid.T, a, b any) any {
	switch x := a.(type) {
	case obj:
		y, _ := b.(obj)
		out := obj{}
		for _, key := range []string{"name", "text", "size", "time", "labels", "tags", "parts", "sub", "fixed", "zero", "x/y~1", "a", "b"} {
			mine, had := x[key]
			theirs, has := y[key]
			switch how := rapid.IntRange(0, 19).Draw(t, key); {
			case how == 0 && has:
				out[key] = theirs
			case how == 1:
			case (how < 8 || key == "parts") && had && has:
				out[key] = changed(t, mine, theirs)
			case had:
				out[key] = mine
			}
		}
		return out
	case []any:
		y, _ := b.([]any)
		var out []any
		for i, element := range x {
			switch how := rapid.IntRange(0, 5).Draw(t, "element"); {
			case how == 0:
				continue
			case how < 3 && i < len(y):
				element = changed(t, element, y[i])
			}
			out = append(out, element)
		}
		if len(y) > 0 && rapid.IntRange(0, 2).Draw(t, "more") == 0 {
			at := rapid.IntRange(0, len(out)).Draw(t, "at")
			out = append(out[:at:at], append([]any{y[0]}, out[at:]...)...)
		}
		if len(out) > 1 && rapid.Bool().Draw(t, "another order") {
			out = rapid.Permutation(out).Draw(t, "order")
		}
		return out
	}
	return b
}

// TestABlindPatchDoesWhatReadingTheObjectWouldHaveDone: the object may have fields that the Go
// type does not know.
func TestABlindPatchDoesWhatReadingTheObjectWouldHaveDone(t *testing.T) {
	counts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		object := anObject(2).Draw(t, "object").(obj)
		view := viewed(t, object)
		after := viewed(t, changed(t, view, viewed(t, anObject(2).Draw(t, "another"))))
		read := withoutNulls(merged7396(object, Merge(object, CarryObject(object, view, after))))
		blind := Blind(view, view, after, Merge(view, CarryObject(view, view, after)))
		if !blind.Unknown() {
			assert.Equal(t, read, withoutNulls(sent(t, object, blind)), "%v", blind)
		}
		operations, ok := jsonPatch(view, after) // also where it is not the first choice
		if ok {
			assert.Equal(t, read, withoutNulls(sent(t, object, &Patch{types.JSONPatchType, operations})), "%v", operations)
		}
		counts[ok]++
	})
	assert.Greater(t, counts[true], counts[false]/3, "how many of them could be told")
}

func at(path string, value any) operation { return operation{Op: "add", Path: path, Value: &value} }
func gone(path string) operation          { return operation{Op: "remove", Path: path} }

func TestABlindPatchNamesWhatChangedWhereElementsStay(t *testing.T) {
	part := func(name string, more ...any) obj {
		o := obj{"name": name}
		for i := 0; i < len(more); i += 2 {
			o[more[i].(string)] = more[i+1]
		}
		return o
	}
	list := func(elements ...any) obj { return obj{"s": obj{"l": elements}} }
	replaced := at("/s/l/1", "z")
	replaced.Op = "replace"
	for what, c := range map[string]struct {
		from, to obj
		want     any // operations, a merge patch, or nil
	}{
		"no list":            {obj{"a": "b"}, obj{"a": "c"}, obj{"a": "c"}},
		"none was there":     {obj{"s": obj{}}, list(part("a")), list(part("a"))},
		"null was there":     {obj{"s": obj{"l": nil}}, list(part("a")), list(part("a"))},
		"an empty one was":   {list(), list(part("a")), list(part("a"))},
		"none is left":       {list(part("a")), list(), obj{"s": obj{"l": []any{}}}},
		"none of it stays":   {list(part("a")), list(part("b"), part("c")), list(part("b"), part("c"))},
		"words":              {list("a", "b"), list("b"), list("b")},
		"numbers":            {list(int64(1), int64(2)), list(int64(2)), []operation{gone("/s/l/0")}},
		"quantities":         {list("1k", "2"), list("1k", "z"), []operation{replaced}},
		"a field":            {list(part("a"), part("b", "n", int64(1))), list(part("a"), part("b", "n", int64(0))), []operation{at("/s/l/1/n", int64(0))}},
		"a field is null":    {list(part("a", "t", nil)), list(part("a", "t", "now")), []operation{at("/s/l/0/t", "now")}},
		"a field gets null":  {list(part("a", "t", "now")), list(part("a", "t", nil)), []operation{gone("/s/l/0/t")}},
		"a field is gone":    {list(part("a", "x/y~z", "1")), list(part("a")), []operation{gone("/s/l/0/x~1y~0z")}},
		"a made-up duration": {list(part("a", "d", "0s")), list(part("a")), nil},
		"a made-up quantity": {list(part("a", "q", "0")), list(part("a")), nil},
		"a made-up number":   {list(part("a", "n", int64(0))), list(part("a")), nil},
		"a made-up text":     {list(part("a", "t", "")), list(part("a")), nil},
		"more":               {list(part("a")), list(part("a"), part("b", "t", nil)), []operation{at("/s/l/1", part("b"))}},
		"some are gone":      {list(part("a"), part("b"), part("c"), part("d")), list(part("b"), part("d", "n", "m")), []operation{gone("/s/l/2"), gone("/s/l/0"), at("/s/l/1/n", "m")}},
		"one in between":     {list(part("a"), part("b")), list(part("a"), part("c"), part("b")), []operation{at("/s/l/1", part("c"))}},
		"another order": {list(part("a"), part("b"), part("c")), list(part("c"), part("a", "n", "m"), part("b")), []operation{
			{Op: "move", From: "/s/l/2", Path: "/s/l/0"}, at("/s/l/1/n", "m"),
		}},
		"a list in an element":           {list(part("a", "l", []any{part("x"), part("y")})), list(part("a", "l", []any{part("y")})), []operation{gone("/s/l/0/l/0")}},
		"beside a list":                  {obj{"s": obj{"l": []any{part("a")}, "n": int64(1)}}, obj{"s": obj{"l": []any{part("a", "n", "m")}, "n": int64(2)}}, []operation{at("/s/l/0/n", "m"), at("/s/n", int64(2))}},
		"an element that may be null":    {list(obj{"n": int64(0)}, obj{"n": int64(1)}), list(obj{"n": int64(2)}, obj{"n": int64(1)}), nil},
		"an object that may not be":      {obj{"l": []any{part("a")}, "s": obj{"n": int64(0)}}, obj{"l": []any{part("a", "n", "m")}, "s": obj{"n": int64(1)}}, nil},
		"an object that may be there":    {obj{"l": []any{part("a")}}, obj{"l": []any{part("a", "n", "m")}, "s": obj{"n": int64(1)}}, nil},
		"an object that may be removed":  {obj{"l": []any{part("a")}, "s": obj{}}, obj{"l": []any{part("a", "n", "m")}}, nil},
		"a list where an object was":     {obj{"l": []any{part("a")}, "s": obj{"n": "m"}}, obj{"l": []any{part("a", "n", "m")}, "s": []any{"x"}}, []operation{at("/l/0/n", "m"), at("/s", []any{"x"})}},
		"an object where a list was":     {obj{"l": []any{part("a")}, "s": []any{"x"}}, obj{"l": []any{part("a", "n", "m")}, "s": obj{"n": "m"}}, nil},
		"an object in place of a string": {obj{"l": []any{"x"}}, obj{"l": []any{part("a")}}, nil},
	} {
		blind := Blind(c.from, c.from, c.to, Merge(c.from, CarryObject(c.from, c.from, c.to)))
		if c.want == nil {
			assert.True(t, blind.Unknown(), "%s: %v", what, blind)
		} else {
			assert.Equal(t, c.want, blind.Body, what)
		}
	}
}

func TestABlindPatchIsNotLongAndNotOfWhatATypeReadsOtherwise(t *testing.T) {
	was, is := obj{"name": "a"}, obj{"name": "a"}
	for i := range maxOperations {
		was[strconv.Itoa(i)], is[strconv.Itoa(i)] = "b", "c"
	}
	from, to := obj{"l": []any{was}}, obj{"l": []any{is}}
	assert.Len(t, Blind(from, from, to, to).Body, maxOperations)
	is["more"] = "d"
	assert.True(t, Blind(from, from, to, to).Unknown())
	delete(is, "more")
	assert.True(t, Blind(from, obj{"l": from["l"], "x": "y"}, to, to).Unknown())
}
