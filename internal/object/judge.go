package object

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kates-go/kates/internal/base/shardrange"
)

// Judge says which objects are selected, as the server does, as far as that is possible here.
type Judge struct {
	Read   FieldReader // of the resource; nil reads no field
	Shard  shardrange.Shard
	labels labels.Selector
	fields fields.Requirements
	anyOf  []Judge // alternatives, see alternatives.go; nil: there are none
}

// NewJudge returns the judge of what a stream of a resource selects.
func NewJudge(r Resource, spec Spec) Judge {
	s := Judge{labels: spec.Labels, Read: r.Field, Shard: spec.Shard}
	if spec.Fields != nil {
		s.fields = spec.Fields.Requirements()
	}
	for _, one := range spec.AnyOf {
		one.Shard = shardrange.Shard{}
		s.anyOf = append(s.anyOf, NewJudge(r, Spec{Selection: one}))
	}
	return s
}

// Selects says whether the object is selected. It is not certain where that depends on a field that
// read cannot read, or on labels that are not known: then only the server can say. Of an object
// that does not decode, its metadata is known, or else its name and namespace.
func (s Judge) Selects(o Object, read FieldReader) (selected, certain bool) {
	if selected, certain = s.BySelection(o, read); !selected {
		return false, true
	}
	selected, sure := s.ByAlternatives(o, read)
	return selected, !selected || certain && sure
}

// BySelection is [Judge.Selects] without the alternatives.
func (s Judge) BySelection(o Object, read FieldReader) (selected, certain bool) {
	if !s.InShard(o) {
		return false, true
	}
	certain, o = true, Bare(o)
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

// ByMetadata judges by labels, name and namespace alone.
func (s Judge) ByMetadata(o Object) bool {
	selected, _ := s.Selects(o, nil)
	return selected
}

// Selects judges an object, as far as [Resource.Field] reads the fields. Nil selectors select
// everything.
func Selects(r Resource, spec Spec, o Object) bool {
	selected, _ := NewJudge(r, spec).Selects(o, r.Field)
	return selected
}

// SelectsAlternative judges an object that a server has selected by what alternatives have in
// common.
func SelectsAlternative(r Resource, spec Spec, o Object) bool {
	in, _ := NewJudge(r, spec).ByAlternatives(o, r.Field)
	return in
}

// ByAlternatives says whether one of the alternatives selects the object, and whether that is
// certain.
func (s Judge) ByAlternatives(o Object, read FieldReader) (selected, certain bool) {
	if len(s.anyOf) == 0 {
		return true, true
	}
	for _, one := range s.anyOf {
		in, sure := one.Selects(o, read)
		if in && sure {
			return true, true
		}
		selected = selected || in
	}
	return selected, !selected
}

// InShard reports whether an object is in the shard. The UID of one that does not decode may
// be unknown: then the server's judgement stands, so that somebody hears of it.
func (s Judge) InShard(o Object) bool {
	if s.Shard.Field == "" {
		return true // without a look at the object
	}
	if s.Shard.Field == shardrange.Controller {
		return controlled(s.Shard, o)
	}
	if s.Shard.Field == shardrange.UID && o.GetUID() == "" && Fault(o) != nil {
		return true
	}
	return s.Shard.Has(o.GetNamespace(), string(o.GetUID()))
}

// controlled reports whether an object's controller is in the shard.
func controlled(s shardrange.Shard, o Object) bool {
	if whole, ok := o.(*rejected); ok {
		if whole.metadata == nil {
			return true // nobody knows whose it is: so all hear of it
		}
		o = whole.metadata
	}
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil {
		return s.Everything()
	}
	return s.Ranges.Has(shardrange.Hash(string(owner.UID)))
}

// ShardIsFixed reports whether an object never enters the shard, or leaves it.
func (s Judge) ShardIsFixed() bool { return s.Shard.Field != shardrange.Controller }

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
