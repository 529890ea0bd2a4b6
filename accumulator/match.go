package accumulator

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// selector judges objects as the server does, as far as that is possible here.
type selector struct {
	labels labels.Selector
	fields fields.Requirements
	// opaque: some field is not evaluated here (spec.nodeName and the like): what the server
	// makes of it is for the server to say.
	opaque bool
}

func newSelector(q Selection) selector {
	s := selector{labels: q.Labels}
	if q.Fields == nil {
		return s
	}
	s.fields = q.Fields.Requirements()
	for _, r := range s.fields {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			s.opaque = true
		}
	}
	return s
}

// matches judges by labels, name and namespace, which the server judges alike.
func (s selector) matches(o Object) bool {
	if s.labels != nil && !s.labels.Empty() && !s.labels.Matches(labels.Set(o.GetLabels())) {
		return false
	}
	for _, r := range s.fields {
		switch r.Field {
		case "metadata.name":
			if !holds(r, o.GetName()) {
				return false
			}
		case "metadata.namespace":
			if !holds(r, o.GetNamespace()) {
				return false
			}
		}
	}
	return true
}

// matchesAll judges every field by its path in the object, missing ones as empty. It
// stands in for a server that does not judge at all: a fake.
func (s selector) matchesAll(o Object) bool {
	if !s.matches(o) {
		return false
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return true
	}
	for _, r := range s.fields {
		v, _, _ := unstructured.NestedFieldNoCopy(u.Object, strings.Split(r.Field, ".")...)
		text, _ := v.(string)
		if b, ok := v.(bool); ok {
			text = map[bool]string{true: "true", false: "false"}[b]
		}
		if !holds(r, text) {
			return false
		}
	}
	return true
}

// Selects judges an object by selectors as a fake's watch does: fields by their path.
// Nil selectors select everything.
func Selects(l labels.Selector, f fields.Selector, o Object) bool {
	return newSelector(Selection{l, f}).matchesAll(o)
}

func holds(r fields.Requirement, value string) bool {
	equal := value == r.Value
	return equal == (r.Operator != selection.NotEquals)
}
