package query

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/object"
)

// drawn draws a selection: some labels, and fields of the metadata and others.
var drawn = rapid.Custom(func(t *rapid.T) (s object.Selection) {
	for _, text := range rapid.SliceOfN(rapid.SampledFrom([]string{
		"a=1", "a=2", "a in (1,2)", "a!=1", "a", "!a", "b=1", "b in (2,3)", "a notin (2,3)",
	}), 0, 2).Draw(t, "labels") {
		parsed, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		s = s.And(object.Selection{Labels: parsed})
	}
	for _, text := range rapid.SliceOfN(rapid.SampledFrom([]string{
		"metadata.name=x", "metadata.name=y", "metadata.namespace=n", "metadata.namespace=m", "metadata.name!=x",
		"metadata.namespace!=n", "type=t", "type!=t",
	}), 0, 3).Draw(t, "fields") {
		s = s.And(object.Selection{Fields: fields.ParseSelectorOrDie(text)})
	}
	return s
})

// anObject draws an object that the drawn selections may select.
var anObject = rapid.Custom(func(t *rapid.T) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"type": rapid.SampledFrom([]string{"t", "u"}).Draw(t, "type")}}
	u.SetNamespace(rapid.SampledFrom([]string{"n", "m", "k"}).Draw(t, "namespace"))
	u.SetName(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name"))
	u.SetLabels(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), rapid.SampledFrom([]string{"1", "2", "3"}), 0, 2).Draw(t, "labels"))
	return u
})

// TestG5AnObjectIsInOneStreamOfAQueryForAllTime: its name says in which, whatever else changes.
func TestG5AnObjectIsInOneStreamOfAQueryForAllTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := drawn.Draw(t, "own")
		q := Query{Labels: own.Labels, Fields: own.Fields}
		if rapid.Bool().Draw(t, "any of") {
			q.AnyOf = rapid.SliceOfN(drawn, 1, 4).Draw(t, "alternatives")
		}
		switch rapid.IntRange(0, 3).Draw(t, "namespaces") {
		case 1:
			q.Namespace = "n"
		case 2:
			q.Namespaces = rapid.SliceOfN(rapid.SampledFrom([]string{"n", "m"}), 0, 3).Draw(t, "named")
		case 3:
			q.Spaces = &Spaces{}
		}
		r := object.Resource{Namespaced: true}
		watches := q.Watches(r)
		for _, o := range rapid.SliceOfN(anObject, 1, 5).Draw(t, "objects") {
			in, covering := 0, 0
			for _, w := range watches {
				if w.Namespace != "" && w.Namespace != o.GetNamespace() {
					continue
				}
				if name, required := name(w); !required || name == o.GetName() {
					covering++
				}
				if object.Selects(r, w, o) {
					in++
				}
			}
			if covering > 1 {
				t.Fatalf("%d streams cover %s: %+v", covering, o, watches)
			}
			want := 0
			if selects(q, r, o) {
				want = 1
			}
			if in != want {
				t.Fatalf("%d streams have %v, want %d: %+v", in, o, want, watches)
			}
		}
	})
}

func TestG1ALabelThatOneAlternativeWantsIsNotAskedOfTheServer(t *testing.T) {
	var q Query
	for _, text := range []string{"a=1", "a=2,b=1", "b=2"} {
		parsed, err := labels.Parse(text)
		require.NoError(t, err)
		q.AnyOf = append(q.AnyOf, object.Selection{Labels: parsed})
	}
	r := object.Resource{Namespaced: true}
	watches := q.Watches(r)
	for _, has := range []map[string]string{{"a": "1"}, {"a": "2", "b": "1"}, {"b": "2"}} {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetLabels(has)
		in := 0
		for _, w := range watches {
			if object.Selects(r, w, o) {
				in++
			}
		}
		assert.Equal(t, 1, in, has)
	}
}

func TestG5AnAlternativeOfTwoNamesHasNoStream(t *testing.T) {
	x, y := fields.OneTermEqualSelector("metadata.name", "x"), fields.OneTermEqualSelector("metadata.name", "y")
	for _, both := range []fields.Selector{fields.AndSelectors(x, y), fields.AndSelectors(y, x)} {
		q := Query{AnyOf: []object.Selection{{Fields: x}, {Fields: both}}}
		assert.Len(t, q.Watches(object.Resource{Namespaced: true}), 1, both)
	}
}

func name(s object.Spec) (string, bool) {
	if s.Fields == nil {
		return "", false
	}
	return s.Fields.RequiresExactMatch("metadata.name")
}

// selects is what the query says, without streams.
func selects(q Query, r object.Resource, o *unstructured.Unstructured) bool {
	if q.Namespace != "" && q.Namespace != o.GetNamespace() || q.Namespaces != nil && !slices.Contains(q.Namespaces, o.GetNamespace()) {
		return false
	}
	alone := func(s object.Selection) bool { return object.Selects(r, object.Spec{Selection: s}, o) }
	return alone(object.Selection{Labels: q.Labels, Fields: q.Fields}) && (q.AnyOf == nil || slices.ContainsFunc(q.AnyOf, alone))
}

// The server is asked for what alternatives have in common.
func TestTheServerSelectsWhatAlternativesHaveInCommon(t *testing.T) {
	by := func(label, field string) (s object.Selection) {
		s, err := ParseSelection(label, field)
		require.NoError(t, err)
		return s
	}
	for name, c := range map[string]struct {
		all            []object.Selection
		labels, fields string
		rest           int
	}{
		"one":                        {[]object.Selection{by("a=1,b", "type=t")}, "a=1,b", "type=t", 0},
		"a label and a field":        {[]object.Selection{by("a=1", ""), by("", "type=t")}, "", "", 2},
		"values of a label":          {[]object.Selection{by("a=1", ""), by("a in (2,3)", ""), by("a=1", "")}, "a in (1,2,3)", "", 0},
		"values of a label, and not": {[]object.Selection{by("a=1", ""), by("a!=2", "")}, "", "", 2},
		"more than values":           {[]object.Selection{by("a=1,c", ""), by("a=2", "type=t")}, "a in (1,2)", "", 2},
		"terms of all":               {[]object.Selection{by("b,a=1", "type=t"), by("c,a=1", "type=t")}, "a=1", "type=t", 2},
		"one that lies in another":   {[]object.Selection{by("a=1,b", ""), by("b", "")}, "b", "", 0},
		"everything":                 {[]object.Selection{by("a=1", ""), {}}, "", "", 0},
		"one that selects nothing":   {[]object.Selection{{Labels: labels.Nothing()}, {Fields: fields.Nothing()}, by("a=1", "")}, "a=1", "", 0},
	} {
		common, rest := object.Common(c.all)
		text := func(s interface{ String() string }, none bool) string {
			if none {
				return ""
			}
			return s.String()
		}
		assert.Equal(t, c.labels, text(common.Labels, common.Labels == nil), name)
		assert.Equal(t, c.fields, text(common.Fields, common.Fields == nil), name)
		assert.Len(t, rest, c.rest, name)
	}
}
