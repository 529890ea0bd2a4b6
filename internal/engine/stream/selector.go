package stream

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/object"
)

// selector judges objects as the server does, as far as that is possible here.
type selector struct {
	labels labels.Selector
	fields fields.Requirements
	read   FieldReader
	shard  shardrange.Shard
	anyOf  []selector // alternatives, see alternatives.go; nil: there are none
}

func newSelector(r Resource, spec Spec) selector {
	s := selector{labels: spec.Labels, read: r.Field, shard: spec.Shard}
	if spec.Fields != nil {
		s.fields = spec.Fields.Requirements()
	}
	for _, one := range spec.AnyOf {
		one.Shard = shardrange.Shard{}
		s.anyOf = append(s.anyOf, newSelector(r, Spec{Selection: one}))
	}
	return s
}

// judge says whether the object is selected. It is not certain where that depends on a field that
// read cannot read, or on labels that are not known: then only the server can say. Of an object
// that does not decode, its metadata is known, or else its name and namespace.
func (s selector) judge(o Object, read FieldReader) (selected, certain bool) {
	if selected, certain = s.byItself(o, read); !selected {
		return false, true
	}
	selected, sure := s.byAlternatives(o, read)
	return selected, !selected || certain && sure
}

// byItself is judge without the alternatives.
func (s selector) byItself(o Object, read FieldReader) (selected, certain bool) {
	if !s.in(o) {
		return false, true
	}
	certain, o = true, object.Bare(o)
	if bad, ok := o.(*rejected); ok {
		read = nil
		if bad.metadata != nil {
			o = bad.metadata
		} else if s.labels != nil && !s.labels.Empty() {
			s.labels, certain = nil, false
		}
	}
	if s.labels != nil && !s.labels.Empty() && !s.labels.Matches(labels.Set(o.GetLabels())) {
		return false, true
	}
	for _, r := range s.fields {
		v, ok := valueOf(o, r.Field, read)
		switch {
		case !ok:
			certain = false
		case !holds(r, v):
			return false, true
		}
	}
	return true, certain
}

// byMetadata judges by labels, name and namespace alone.
func (s selector) byMetadata(o Object) bool {
	selected, _ := s.judge(o, nil)
	return selected
}

// matches reports whether an object that the server has sent is in the stream's query. The server
// has judged the fields already, but for those of alternatives. The labels of an object that does
// not decode may not be known: there its judgement stands.
func (s *shape) matches(o Object) bool {
	if !s.ours(o) {
		return false
	}
	if in, _ := s.selector.byItself(o, nil); !in {
		return false
	}
	in, _ := s.selector.byAlternatives(o, s.selector.read)
	return in
}

// selects reports whether an object that this client wrote is in the stream's query, and
// whether that is certain.
func (s *shape) selects(o Object) (selected, certain bool) {
	return s.selector.judge(o, s.selector.read)
}

// Selects judges an object, as far as [Resource.Field] reads the fields. Nil selectors select
// everything.
func Selects(r Resource, spec Spec, o Object) bool {
	selected, _ := newSelector(r, spec).judge(o, r.Field)
	return selected
}

// SelectsAlternative judges an object that a server has selected by what alternatives have in
// common.
func SelectsAlternative(r Resource, spec Spec, o Object) bool {
	in, _ := newSelector(r, spec).byAlternatives(o, r.Field)
	return in
}

func valueOf(o Object, field string, read FieldReader) (string, bool) {
	switch {
	case field == "metadata.name":
		return o.GetName(), true
	case field == "metadata.namespace":
		return o.GetNamespace(), true
	case read == nil:
		return "", false
	}
	return read(o, field)
}

func holds(r fields.Requirement, value string) bool {
	equal := value == r.Value
	return equal == (r.Operator != selection.NotEquals)
}
