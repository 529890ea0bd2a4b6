package stream

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/object"
)

// Key names an object within a resource.
type Key = object.Key

// Object is an object as a stream holds it. It is shared: nobody writes to it.
type Object = object.Object

// ErrClosed is the cause of an end by Close.
var ErrClosed = errors.New("closed")

// Resource is a resource of the API as it is watched.
type Resource struct {
	schema.GroupVersionResource
	Kind       schema.GroupVersionKind
	Namespaced bool
	// Storage names the stored resource. It is the same for every group and version through which
	// one set of objects is served.
	Storage string
	// Field reads the fields that the resource can be selected by; nil reads none.
	Field FieldReader
}

// Serves reports whether both are one resource, served in the same way.
func (r Resource) Serves(o Resource) bool {
	return r.GroupVersionResource == o.GroupVersionResource && r.Kind == o.Kind &&
		r.Namespaced == o.Namespaced && r.Storage == o.Storage
}

// ErrContradicts is wrapped by the errors of answers that contradict a [Resource]: the kind may be
// served in another way by now.
var ErrContradicts = errors.New("the kind may be served in another way by now")

// Check is an error that wraps [ErrContradicts], for an object that no resource has which is
// served in this way.
func (r Resource) Check(o Object) error {
	if err := r.checkKind(o); err != nil {
		return err
	}
	return r.checkNamespace(o.GetNamespace())
}

// checkKind is [Resource.Check] of the kind alone.
func (r Resource) checkKind(o Object) error {
	kind, want := o.GetObjectKind().GroupVersionKind().GroupKind(), r.Kind.GroupKind()
	if _, short := object.Bare(o).(*metav1.PartialObjectMetadata); !short && kind.Kind != "" && kind != want {
		return contradiction(fmt.Sprintf("an object of kind %s, where %s was asked for", brief(kind.String()), want))
	}
	return nil
}

// checkNamespace is [Resource.Check] of the namespace alone.
func (r Resource) checkNamespace(namespace string) error {
	switch {
	case !r.Namespaced && namespace != "":
		return contradiction(fmt.Sprintf("an object in the namespace %q, of a kind that has none", brief(namespace)))
	case r.Namespaced && namespace == "":
		return contradiction(`an object in the namespace "", which cannot be`)
	}
	return nil
}

// contradiction says how an answer contradicts a resource.
type contradiction string

func (c contradiction) Error() string { return string(c) }

// Is reports whether target is [ErrContradicts].
func (c contradiction) Is(target error) bool { return target == ErrContradicts }

// Misplaced reports whether err is one that a server answers if a kind is served in another way
// than a [Resource] says: with another scope, plural, version, kind or other verbs.
func Misplaced(err error) bool {
	return err != nil && (apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || errors.Is(err, ErrContradicts))
}

// FieldReader returns the value that the server compares a field selector with, for an object of
// one resource. It returns false for a field that it does not know, or cannot read from this
// object: then only the server can judge. It is never asked for metadata.name and
// metadata.namespace. It is pure, fast, and safe for concurrent use.
type FieldReader func(o Object, field string) (value string, ok bool)

// Selection narrows a query; nil selects everything. The server evaluates both selectors. Own
// writes are judged here as well: by labels, name, namespace, and what [Resource.Field] reads.
type Selection struct {
	Labels labels.Selector
	Fields fields.Selector
	// Shard, unless it is the zero value, narrows it to a share of the objects, see shard.go.
	Shard shardrange.Shard
}

// labelSelector is the label selector as the server takes it. Selectors that say the same in
// other words have one form, so that they share a stream.
func (s Selection) labelSelector() string {
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

// fieldSelector is the field selector as the server takes it.
func (s Selection) fieldSelector() string {
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
	Form      Form
	Transform Transform
}

// onlyName is the only name that is selected; "" for all.
func (s Spec) onlyName() (name string) {
	if s.Fields != nil {
		name, _ = s.Fields.RequiresExactMatch("metadata.name")
	}
	return name
}
