package object

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// A stream may have alternatives ([Spec].AnyOf): an object has to be selected by one of them, too.
// A server cannot be asked for alternatives. The rules:
//
//   - D2. The server selects by what all alternatives have in common ([Common]).
//   - D3. Each version of an object is judged here by the alternatives, before anything is made of
//     it: in a list, an event, and the answer to an own write. An object comes and goes as one does
//     that is relabelled. What is left out is not held, and not named in a file. Nobody hears of
//     it.
//
// A field that cannot be read from the objects of the stream is an error of [Unjudged]. An object
// that does not decode is judged by its metadata. What that does not tell counts as selected, so
// that somebody hears of the object.

// ErrUnjudged is wrapped by the error of [Unjudged] for alternatives that only a server could
// judge.
var ErrUnjudged = errors.New("a field that cannot be judged here")

// Common returns what several selections have in common, and what each of them selects by besides.
// The rest is nil if what they have in common says it all. Where all of them want a label to have
// one of some values, the common one wants it to have one of all these values. Selections without
// an object do not count. The shards of selections are ignored.
func Common(all []Selection) (common Selection, rest []Selection) {
	var left []terms
	for _, s := range all {
		if t, some := termsOf(s); some {
			left = append(left, t)
		}
	}
	if len(left) == 0 {
		return Selection{Labels: labels.Nothing()}, nil
	}
	shared := left[0].in(left[1:])
	for _, t := range left {
		t.less(shared)
	}
	said := false
	for _, r := range left[0].labels {
		if either, ok := eitherOf(r.Key(), left); ok {
			shared.labels[labelTerm(either)] = either
			// Nothing else is left of any of them.
			said = said || !slices.ContainsFunc(left, func(t terms) bool { return len(t.labels)+len(t.fields) > 1 })
		}
	}
	common = shared.selection()
	for _, t := range left {
		if said || len(t.labels)+len(t.fields) == 0 {
			return common, nil
		}
		rest = append(rest, t.selection())
	}
	return common, rest
}

// terms are what a selection requires. Terms that say the same have one text.
type terms struct {
	labels map[string]labels.Requirement
	fields map[string]fields.Requirement
}

// termsOf returns the terms of a selection; some is false if it selects nothing.
func termsOf(s Selection) (t terms, some bool) {
	t = terms{labels: make(map[string]labels.Requirement), fields: make(map[string]fields.Requirement)}
	if s.Labels != nil {
		required, selectable := s.Labels.Requirements()
		if !selectable {
			return t, false
		}
		for _, r := range required {
			t.labels[labelTerm(r)] = r
		}
	}
	if s.Fields != nil {
		required := s.Fields.Requirements()
		if len(required) == 0 && !s.Fields.Empty() {
			return t, false
		}
		for _, r := range required {
			t.fields[fieldTerm(r)] = r
		}
	}
	return t, true
}

// in returns the terms that are also in all others.
func (t terms) in(others []terms) terms {
	all := terms{labels: maps.Clone(t.labels), fields: maps.Clone(t.fields)}
	for _, o := range others {
		maps.DeleteFunc(all.labels, func(text string, _ labels.Requirement) bool { return !has(o.labels, text) })
		maps.DeleteFunc(all.fields, func(text string, _ fields.Requirement) bool { return !has(o.fields, text) })
	}
	return all
}

// less removes terms.
func (t terms) less(o terms) {
	maps.DeleteFunc(t.labels, func(text string, _ labels.Requirement) bool { return has(o.labels, text) })
	maps.DeleteFunc(t.fields, func(text string, _ fields.Requirement) bool { return has(o.fields, text) })
}

func has[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

// selection returns a selection with these terms.
func (t terms) selection() (s Selection) {
	if len(t.labels) > 0 {
		s.Labels = labels.NewSelector()
		for _, text := range slices.Sorted(maps.Keys(t.labels)) {
			s.Labels = s.Labels.Add(t.labels[text])
		}
	}
	var all []fields.Requirement
	for _, text := range slices.Sorted(maps.Keys(t.fields)) {
		all = append(all, t.fields[text])
	}
	s.Fields = RequireFields(all)
	return s
}

// eitherOf returns the requirement that a label has one of the values that any of the terms want.
// ok is false unless all of them want some value.
func eitherOf(key string, all []terms) (either labels.Requirement, ok bool) {
	var values []string
	for _, t := range all {
		wants := false
		for _, text := range slices.Sorted(maps.Keys(t.labels)) {
			if r := t.labels[text]; r.Key() == key && wantsValue(r) && !wants {
				values, wants = append(values, r.ValuesUnsorted()...), true
			}
		}
		if !wants {
			return either, false
		}
	}
	slices.Sort(values)
	r, err := labels.NewRequirement(key, selection.In, slices.Compact(values))
	if err != nil {
		return either, false
	}
	return *r, true
}

func wantsValue(r labels.Requirement) bool {
	return r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals || r.Operator() == selection.In
}

// RequireFields returns a selector with some requirements; nil if there are none.
func RequireFields(all []fields.Requirement) fields.Selector {
	if len(all) == 0 {
		return nil
	}
	terms := make([]fields.Selector, len(all))
	for i, r := range all {
		if terms[i] = fields.OneTermEqualSelector(r.Field, r.Value); r.Operator == selection.NotEquals {
			terms[i] = fields.OneTermNotEqualSelector(r.Field, r.Value)
		}
	}
	return fields.AndSelectors(terms...)
}

// Alternatives is AnyOf in one form, whatever the order.
func (s Spec) Alternatives() string {
	all := make([]string, len(s.AnyOf))
	for i, one := range s.AnyOf {
		all[i] = strings.Trim(strconv.Quote(one.LabelSelector())+" "+strconv.Quote(one.FieldSelector()), " ")
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " or ")
}

// Unjudged is an error that names a field of alternatives that cannot be read from the objects of
// a stream.
func Unjudged(r Resource, spec Spec) error {
	_, projects := spec.Form.Projection()
	partly := spec.Form == Metadata || projects
	var o Object = &unstructured.Unstructured{Object: map[string]any{}}
	if partly {
		o = &metav1.PartialObjectMetadata{}
	}
	for _, one := range spec.AnyOf {
		if one.Fields == nil {
			continue
		}
		for _, q := range one.Fields.Requirements() {
			if _, ok := valueOf(o, q.Field, r.Field); ok {
				continue
			}
			why := "the server alone knows it"
			if partly {
				why = "it does not come with the form of the objects"
			}
			return fmt.Errorf("%w: %q of %s: %s, and a server cannot be asked for alternatives", ErrUnjudged, q.Field, r.Resource, why)
		}
	}
	return nil
}
