package stream

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kates-go/kates/internal/shardrange"
)

// selector judges objects as the server does, as far as that is possible here.
type selector struct {
	labels labels.Selector
	fields fields.Requirements
	read   FieldReader
	shard  shardrange.Shard
}

func newSelector(r Resource, q Selection) selector {
	s := selector{labels: q.Labels, read: r.Field, shard: q.Shard}
	if q.Fields != nil {
		s.fields = q.Fields.Requirements()
	}
	return s
}

// judge says whether the object is selected. It is not certain where that depends on a field that
// read cannot read: then only the server can say.
func (s selector) judge(o Object, read FieldReader) (selected, certain bool) {
	if !s.in(o) || s.labels != nil && !s.labels.Empty() && !s.labels.Matches(labels.Set(o.GetLabels())) {
		return false, true
	}
	certain = true
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

// byPath judges every field. A field that read cannot read is looked up by its path in the
// object; a missing field is empty. It stands in for a server that does not judge at all: a fake.
func (s selector) byPath(o Object) bool {
	selected, _ := s.judge(o, func(o Object, field string) (string, bool) {
		if s.read != nil {
			if v, ok := s.read(o, field); ok {
				return v, true
			}
		}
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return "", false
		}
		switch v, _, _ := unstructured.NestedFieldNoCopy(u.Object, strings.Split(field, ".")...); v := v.(type) {
		case string:
			return v, true
		case bool:
			return strconv.FormatBool(v), true
		}
		return "", true
	})
	return selected
}

// matches reports whether an object that the server has sent is in the stream's query. A real
// server has judged the fields already; a fake has not. The labels of an object that does not
// decode are not known: there the server's judgement stands.
func (s *shape) matches(o Object) bool {
	if !s.ours(o) {
		return false
	}
	if Fault(o) != nil {
		return true
	}
	if s.config.ByContent {
		return s.selector.byPath(o)
	}
	return s.selector.byMetadata(o)
}

// selects reports whether an object that this client wrote is in the stream's query, and
// whether that is certain.
func (s *shape) selects(o Object) (selected, certain bool) {
	if s.config.ByContent {
		return s.selector.byPath(o), true
	}
	return s.selector.judge(o, s.selector.read)
}

// Union is the selectors of a query whose streams may show the same objects.
type Union []selector

// NewUnion returns what any of several selections of a resource selects.
func NewUnion(r Resource, selections ...Selection) Union {
	u := make(Union, len(selections))
	for i, s := range selections {
		u[i] = newSelector(r, s)
	}
	return u
}

// excludes reports whether it is certain that no stream of the union selects an object. Where only
// the server can say, it has been asked: denied has the selectors for which it has no such object.
func (u Union) excludes(o Object, denied denials) bool {
	for _, s := range u {
		if denied[s.key()] {
			continue
		}
		if o == nil {
			return false
		}
		if selected, certain := s.judge(o, s.read); selected || !certain {
			return false
		}
	}
	return len(u) > 0
}

// denials are selectors for which the server, when it was asked, did not have an object.
type denials map[selectorKey]bool

// selectorKey tells selectors apart.
type selectorKey struct{ labels, fields, shard string }

func (s selector) key() (k selectorKey) {
	k.shard = s.shard.Key()
	if s.labels != nil {
		k.labels = s.labels.String()
	}
	for _, r := range s.fields {
		k.fields += strconv.Quote(r.Field) + string(r.Operator) + strconv.Quote(r.Value)
	}
	return k
}

// Selects judges an object by selectors as [Config].ByContent does: by the fields that the
// resource can read, by others through their path. Nil selectors select everything.
func Selects(r Resource, s Selection, o Object) bool {
	return newSelector(r, s).byPath(o)
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
