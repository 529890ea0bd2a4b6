package query

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// ErrNotServed says that complete discovery has no such resource. [Query.Resolve] wraps it only
// if that is certain: an optional query then counts as empty.
var ErrNotServed = errors.New("not served")

// ErrUnfit says that the kind is served, but that the query does not fit it: it names namespaces
// of a kind that is in none, or the kind cannot be watched. [Query.Resolve] wraps it. No waiting
// helps, so it is an error of an optional query too. If the kind comes while the query runs, the
// query counts as empty, and its status has the error.
var ErrUnfit = errors.New("the query does not fit its kind")

// ErrUnknownQuery says that no query has the given name.
var ErrUnknownQuery = errors.New("there is no query of that name")

// ErrOvertaken says that a query was to take the place of one that another one has replaced
// meanwhile, see [Query].After.
var ErrOvertaken = errors.New("another query has its place by now")

// Given is a query in the words of the program that wrote it.
type Given struct {
	As any // of the reader's own type; nil: there are no words but the field of a struct
}

// Query says which objects are wanted: those of a kind, in a namespace or in all, narrowed by
// selectors. Each is one field of a snapshot.
type Query struct {
	// Name is the name of the snapshot's field, unique among the queries of a reader.
	Name string
	// Kind is the kind as the user wrote it, for messages.
	Kind string
	// Namespace is the only namespace, or "" for all.
	Namespace string
	// Namespaces, if not nil, are watched one by one, in place of Namespace. Rights in these
	// namespaces suffice.
	Namespaces []string
	// Spaces, if not nil, narrows a query over all namespaces to those that it selects.
	Spaces *Spaces
	// Labels and Fields narrow the query; nil selects everything.
	Labels labels.Selector
	Fields fields.Selector
	// Shard, unless it is the zero value, narrows the query to a share of the objects: its
	// streams bring that alone, where the server can send it.
	Shard shardrange.Shard
	// ShardBy is by what a reader may narrow the query to a share; empty: by nothing.
	ShardBy shardrange.Field
	// Apart: the query has streams of what it wants alone, and is not served by wider ones. So
	// what it does not want takes no memory.
	Apart bool
	// AnyOf, if not nil, are alternatives: an object is in the query if one of them selects it, and
	// so do Labels and Fields. The server selects what they have in common, and the rest is judged
	// here, see boxes.go. One that requires a namespace by the field metadata.namespace, or a name,
	// is watched there, unless it overlaps with another one.
	AnyOf []object.Selection
	// Optional: definite answers (not served, forbidden again and again) count as empty. Any
	// other error delays the first signal, as for other queries.
	Optional bool
	// Form is the form of the objects. Queries share a stream only if their forms are the same.
	Form object.Form
	// Transform, if any, changes each object before it is stored. Queries share a stream only if
	// their functions are one value. A closure that is made again is another value.
	Transform *object.Transform
	// Where, if any, decides which objects are in the query, as the selectors do. Queries share a
	// stream only if it is one value. Objects that it leaves out are not held.
	Where *object.Where
	// Valid, if any, says which objects no reader of the query can show, see [object.Valid].
	// Queries share a stream that has a part of its objects only if it is equal.
	Valid object.Valid
	// WholeTransform is Transform where whole objects turn out to be needed, see Refs.
	WholeTransform *object.Transform
	// Signal, if any, decides which changes are worth a signal; without it every change is. It
	// belongs to the listener, so queries with other Signals share a stream.
	Signal object.Signal
	// Key, for partitions, returns the keys of an object; without it, the object belongs to every
	// partition. Other readers ignore it.
	Key KeyFunc
	// KeyOfMetadata: Key reads nothing but metadata. So an object that does not decode has keys,
	// too.
	KeyOfMetadata bool
	// KeyedBy is what the keys are, where that is the namespace or the UID.
	KeyedBy shardrange.Field
	// Refs, if not nil, limit the query to the objects that objects of other queries name. Each
	// is watched by itself. Labels and Fields narrow them.
	Refs []Ref
	// Given is what the query was made of. It tells the query from others of its name.
	Given *Given
	// After, if not nil, is what the query was made of that this one is to replace. If that has
	// been replaced or removed, this one replaces nothing.
	After *Given
	// Resolve finds the resource. It may ask the server.
	Resolve func(ctx context.Context) (object.Resource, error)
}

// Spaces selects namespaces by their labels.
type Spaces struct {
	Labels labels.Selector
	// Resolve finds the resource of namespaces.
	Resolve func(ctx context.Context) (object.Resource, error)
}

// KeyFunc returns the keys of the partitions that an object belongs to. An object without keys
// belongs to no partition, and one with [EveryPartition] among them to all. The same object must
// give the same keys. An empty key is none.
//
// It is called for each version of an object, as the stream holds it, without locks, and again by
// [Query].Valid. It must not write to the object. The caller owns the result. If it panics, that
// object is left out as invalid until its next version.
type KeyFunc func(object.Object) []string

// Judge is Valid where a stream holds less of an object than its reader reports of it.
func (q Query) Judge() object.Valid {
	if q.Form.Projects() || q.Form.Kept() != nil || q.Transform.Changes() {
		return q.Valid
	}
	return nil
}

// KeyPanicked is what happened to an object that is left out because its Key function panicked.
const KeyPanicked = "the key function panicked"

// EveryPartition is what a [KeyFunc] returns for an object that belongs to every partition. No
// key equals it.
const EveryPartition = "\x00every"

// Ref says that objects of another query name objects of this one.
type Ref struct {
	// Query is the name of the other query.
	Query string
	// Names returns the keys that an object names. A key without a namespace is in the object's
	// namespace. Names is called once per version of an object, as the stream holds it, without
	// locks, by one goroutine at a time. It must not write to the object. If it fails or panics,
	// the names of the version before count.
	Names func(object.Object) ([]object.Key, error)
	// Takes is the type that Names makes of an object, or that its pointer has; nil: any object.
	Takes reflect.Type
}

// Reads reports whether Names can read objects of a form: of a projection, if it takes the type.
func (r Ref) Reads(f object.Form) bool {
	p, projects := f.Projection()
	return !projects || p.Into == r.Takes
}

// Reshapes reports whether one version of an object may look different in two queries.
func Reshapes(old, q Query) bool {
	return !alike(old.Form, q.Form) || old.Transform != q.Transform
}

// alike reports whether objects of two forms look the same. Of projections to one struct type that
// is so, whatever they hold beside it.
func alike(a, b object.Form) bool {
	if a == b {
		return true
	}
	pa, some := a.Projection()
	pb, others := b.Projection()
	return some && others && pa.Into == pb.Into
}

// Error returns an error that names the query.
func (q Query) Error(err error) error { return fmt.Errorf("query %q: %w", q.Name, err) }

// narrowed returns what of a selection the query has.
func (q Query) narrowed(s object.Selection) object.Selection {
	return object.Selection{Labels: q.Labels, Fields: q.Fields, Shard: q.Shard}.And(s)
}

// place returns the namespace in which fields select something, and what else they require. ok is
// false if they select nothing in the given namespace, which is "" for all.
func place(namespace string, f fields.Selector) (in string, rest fields.Selector, ok bool) {
	if f == nil {
		return namespace, nil, true
	}
	required, found := f.RequiresExactMatch(namespaceField)
	if !found || required == "" {
		return namespace, f, true
	}
	if namespace != "" && namespace != required {
		return "", nil, false
	}
	others := slices.DeleteFunc(slices.Clone(f.Requirements()), func(r fields.Requirement) bool {
		return r.Operator != selection.NotEquals && r.Field == namespaceField && r.Value == required
	})
	return required, object.RequireFields(others), true
}

const nameField, namespaceField = "metadata.name", "metadata.namespace"

// Compile finds the field of each query in a struct type.
func Compile(t reflect.Type, queries []Query) (*snapshot.Binding, error) {
	all := make([]snapshot.Query, len(queries))
	for i, q := range queries {
		all[i] = snapshot.Query{Name: q.Name, SpansNamespaces: q.Namespace == ""}
	}
	return snapshot.Compile(t, all)
}

// ParseSelection returns what the selectors in words select; nil where there are none.
func ParseSelection(labelText, fieldText string) (none object.Selection, err error) {
	var s object.Selection
	if s.Labels, err = ParseLabels("label", labelText); err != nil {
		return none, err
	}
	if s.Fields, err = parseSelector("field", fieldText, fields.ParseSelector); err != nil {
		return none, err
	}
	return s, nil
}

// errSelectsAll is the error of a selector that is there, but selects everything, like " " and ",".
// The program that composed it meant fewer objects, and may be about to delete them.
var errSelectsAll = errors.New("it says nothing, so everything would be selected: leave it empty for that")

// ParseLabels parses a selector of labels; nil if it is empty. what names it in the error.
func ParseLabels(what, selector string) (labels.Selector, error) {
	return parseSelector(what, selector, func(s string) (labels.Selector, error) { return labels.Parse(s) })
}

func parseSelector[S interface{ Empty() bool }](
	what, text string, parser func(string) (S, error),
) (S, error) {
	var none S
	if text == "" {
		return none, nil
	}
	selector, err := parser(text)
	if err == nil && selector.Empty() {
		err = errSelectsAll
	}
	if err != nil {
		return none, fmt.Errorf("%s selector %q: %w", what, text, err)
	}
	return selector, nil
}
