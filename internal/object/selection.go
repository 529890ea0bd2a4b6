package object

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kates-go/kates/internal/base/shardrange"
)

// Selection narrows a query; nil selects everything. The server evaluates both selectors. Own
// writes are judged here as well: by labels, name, namespace, and what [Resource.Field] reads.
type Selection struct {
	Labels labels.Selector
	Fields fields.Selector
	// Shard, unless it is the zero value, narrows it to a share of the objects (KEP-5866).
	Shard shardrange.Shard
}

// LabelSelector is the label selector as the server takes it. Selectors that say the same in
// other words have one form, so that they share a stream.
func (s Selection) LabelSelector() string {
	if s.Labels == nil {
		return ""
	}
	requirements, _ := s.Labels.Requirements()
	terms := make([]string, len(requirements))
	for i, r := range requirements {
		terms[i] = labelTerm(r)
	}
	return conjunction(terms)
}

// labelTerm is a requirement of a label selector.
func labelTerm(r labels.Requirement) string {
	values := r.ValuesUnsorted()
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		if len(values) == 1 {
			return r.Key() + "=" + values[0]
		}
	case selection.NotEquals, selection.NotIn:
		if len(values) == 1 {
			return r.Key() + "!=" + values[0]
		}
	}
	return r.String()
}

func conjunction(terms []string) string {
	slices.Sort(terms)
	return strings.Join(slices.Compact(terms), ",")
}

// FieldSelector is the field selector as the server takes it.
func (s Selection) FieldSelector() string {
	if s.Fields == nil {
		return ""
	}
	requirements := s.Fields.Requirements()
	terms := make([]string, len(requirements))
	for i, r := range requirements {
		terms[i] = fieldTerm(r)
	}
	return conjunction(terms)
}

// fieldTerm is a requirement of a field selector.
func fieldTerm(r fields.Requirement) string {
	op := "="
	if r.Operator == selection.NotEquals {
		op = "!="
	}
	return r.Field + op + fields.EscapeValue(r.Value)
}

// And returns what both select. The shard is that of s: what narrows a selection has none.
func (s Selection) And(more Selection) Selection {
	switch {
	case s.Labels == nil:
		s.Labels = more.Labels
	case more.Labels != nil:
		requirements, _ := more.Labels.Requirements()
		s.Labels = s.Labels.Add(requirements...)
	}
	switch {
	case s.Fields == nil:
		s.Fields = more.Fields
	case more.Fields != nil:
		s.Fields = fields.AndSelectors(s.Fields, more.Fields)
	}
	return s
}

// Spec says what one stream lists and watches of a resource, and how it holds it. Equal Specs
// share one stream.
type Spec struct {
	Namespace string // "" for all
	Selection
	// AnyOf, if not nil, are alternatives: one of them has to select an object, too. The server
	// does not know of them, see alternatives.go. Their shards are ignored.
	AnyOf     []Selection
	Where     *Where // decides as well; nil: everything is in
	Form      Form
	Transform *Transform
	Valid     Valid // judges what is held; nil: everything is valid
}

// OnlyName is the only name that is selected; "" for all.
func (s Spec) OnlyName() (name string) {
	if s.Fields != nil {
		name, _ = s.Fields.RequiresExactMatch("metadata.name")
	}
	return name
}
