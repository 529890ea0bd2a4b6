package object

import (
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func FuzzSelectorsSelectWhatTheServerSelects(f *testing.F) {
	for _, text := range [][2]string{
		{"a=b,c!=d,!e,f", "metadata.name=x,metadata.namespace!=y"}, {"a in (b,c),d notin ()", "spec.a=\\=\\,,spec.a!="}, {",", "a==b,"},
		{"a>1,b<2", "spec.on=true"}, {"", "spec.b.c=7,status=x"}, {"a=", "=x"}, {"\xff", "\xff=\xff"},
	} {
		f.Add(text[0], text[1], `{"metadata":{"name":"x","namespace":"y","labels":{"a":"b","b":"1"}},"spec":{"a":"=,","on":true,"b":{"c":7}}}`)
		f.Add(text[0], text[1], `{"metadata":{"labels":{"a":7}},"spec":[]}`)
	}
	f.Fuzz(func(t *testing.T, labelText, fieldText, object string) {
		u := &unstructured.Unstructured{}
		if utiljson.Unmarshal([]byte(object), &u.Object) != nil || u.Object == nil {
			return
		}
		var s Selection
		var err error
		if s.Labels, err = labels.Parse(labelText); err != nil {
			return
		}
		if s.Fields, err = fields.ParseSelector(fieldText); err != nil {
			return
		}
		set := fields.Set{}
		for _, r := range s.Fields.Requirements() {
			set[r.Field] = fieldOf(u, r.Field)
		}
		want := s.Labels.Matches(labels.Set(u.GetLabels())) && s.Fields.Matches(set)
		if got := Selects(Resource{Field: byPath}, Spec{Selection: s}, u); got != want {
			t.Fatalf("%q and %q select %s: %v, want %v", labelText, fieldText, object, got, want)
		}
		// Other words for the same selectors select the same, and have one key.
		again := Selection{Labels: s.Labels}
		if again.Fields, err = fields.ParseSelector(s.Fields.String()); err != nil {
			t.Fatalf("%q is written as %q: %v", fieldText, s.Fields, err)
		}
		if got := Selects(Resource{Field: byPath}, Spec{Selection: again}, u); got != want {
			t.Fatalf("%q, written as %q, selects %v, want %v", fieldText, s.Fields, got, want)
		}
		if selected, certain := NewJudge(Resource{}, Spec{Selection: s}).Selects(u, nil); certain && selected != want {
			t.Fatalf("%q and %q are certain of %s: %v, want %v", labelText, fieldText, object, selected, want)
		}
	})
}

// byPath reads every text and truth value by its path; what is missing is empty.
func byPath(o Object, field string) (string, bool) {
	switch v, _, _ := unstructured.NestedFieldNoCopy(o.(*unstructured.Unstructured).Object, strings.Split(field, ".")...); v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", true
}

// fieldOf is the value of a field as a server would compare it: the only one with which the
// selector that wants just that value is fulfilled.
func fieldOf(u *unstructured.Unstructured, field string) string {
	values := append(texts(u.Object), u.GetName(), u.GetNamespace(), "true", "false")
	for _, value := range values {
		s := Judge{fields: fields.Requirements{{Operator: "=", Field: field, Value: value}}}
		if selected, _ := s.Selects(u, byPath); selected {
			return value
		}
	}
	return ""
}

// texts are all strings in a value.
func texts(value any) (all []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		for _, element := range v {
			all = append(all, texts(element)...)
		}
	case map[string]any:
		for _, member := range v {
			all = append(all, texts(member)...)
		}
	}
	return all
}
